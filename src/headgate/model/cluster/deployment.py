"""What runs where: alternates, and which task has how many cores of which machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from headgate.errors import BadValue
from headgate.model.cluster.vm_class import Cloud

__all__ = ["Deployment", "Machine"]


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of a VM class, and the tasks that have cores of it for themselves."""

    vm_class: str
    cores: Mapping[str, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "cores", MappingProxyType(dict(self.cores)))
        if any(count < 1 for count in self.cores.values()):
            raise BadValue(f"a machine of class '{self.vm_class}' gives a task less than one core", "whole cores")


@dataclass(frozen=True, slots=True)
class Deployment:
    """The active alternates of tasks that have a choice, and the machines."""

    machines: tuple[Machine, ...]
    alternates: Mapping[str, str] = field(default_factory=dict)
    """By task; the first alternate where none is named."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "alternates", MappingProxyType(dict(self.alternates)))

    def check(self, cloud: Cloud) -> None:
        """Raise :class:`~headgate.errors.BadValue` unless every VM class exists and no core is assigned twice."""
        for number, machine in enumerate(self.machines):
            kind = cloud.vm_class(machine.vm_class)
            if sum(machine.cores.values()) > kind.cores:
                message = f"machine {number + 1} gives away {sum(machine.cores.values())} cores"
                raise BadValue(message, f"at most the {kind.cores} of a {kind.name}")

    @property
    def cores(self) -> Mapping[str, int]:
        """Cores by task.

        >>> two = Machine("m1.large", {"a": 1, "b": 1}), Machine("m1.small", {"a": 1})
        >>> dict(Deployment(two).cores)
        {'a': 2, 'b': 1}
        """
        cores: dict[str, int] = {}
        for machine in self.machines:
            for task, count in machine.cores.items():
                cores[task] = cores.get(task, 0) + count
        return cores
