"""Profiles of operators as values: what a row costs in each, every figure with where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from types import MappingProxyType
from typing import Any

from headgate.errors import BadValue
from headgate.model.cluster.alternate_cost import Origin
from headgate.planning.known_figures import Figure

__all__ = ["FIELDS", "NOTHING", "OperatorProfile"]

NOTHING = Figure(0.0, Origin.DEFAULT)

FIELDS: Mapping[str, tuple[str, str]] = {
    "cpu_s": ("s", "CPU seconds of a row on the reference core (c_p)"),
    "transfer_s": ("s", "CPU seconds to send or receive a row between machines (c_t)"),
    "sojourn_s": ("s", "seconds that a row holds an instance, waiting included (t_soj)"),
    "memory_bytes": ("bytes", "memory of an instance for each row per second that passes it (m)"),
    "instance_bytes": ("bytes", "memory of an instance without rows"),
    "row_bytes": ("bytes", "size of a row that it sends"),
    "batch_s": ("s", "CPU seconds of an instance's micro-batch without rows"),
}
"""The figures of a profile with their units and meanings; selectivities come beside them."""


@dataclass(frozen=True, slots=True)
class OperatorProfile:
    """What a row costs in an operator, and how many rows it makes of one, by reader (P-DEPLOY, Table 1).

    The paper counts CPU in points, a hundred for a core; here it is seconds of the reference core. All instances of an
    operator have the same profile. ``version`` grows with every correction.
    """

    task: str
    alternate: str
    cpu_s: Figure
    sojourn_s: Figure
    transfer_s: Figure = NOTHING
    memory_bytes: Figure = NOTHING
    instance_bytes: Figure = NOTHING
    row_bytes: Figure = NOTHING
    batch_s: Figure = NOTHING
    selectivity: Mapping[str, Figure] = field(default_factory=dict)
    """Rows to each reader per row in; 1 for a reader that is not named."""

    instances_max: int | None = None
    """More instances than this it cannot have; none if any number."""

    version: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "selectivity", MappingProxyType(dict(self.selectivity)))
        figures = {name: getattr(self, name) for name in FIELDS} | {f"selectivity to {k}": v for k, v in self.outputs}
        for name, figure in figures.items():
            if not (isfinite(figure.value) and figure.value >= 0):
                raise BadValue(f"{name} of task '{self.task}' is {figure.value:g}", "a finite number of at least 0")
        if self.instances_max is not None and self.instances_max < 1:
            raise BadValue(f"task '{self.task}' may have {self.instances_max} instances", "at least 1")

    @property
    def outputs(self) -> list[tuple[str, Figure]]:
        """The selectivity to each reader that is named."""
        return sorted(self.selectivity.items())

    def selectivity_to(self, reader: str) -> float:
        known = self.selectivity.get(reader)
        return 1.0 if known is None else known.value

    def corrected(self, **values: float) -> OperatorProfile:
        """The next version, with figures that were measured; the same profile where nothing differs.

        >>> one = OperatorProfile("t", "t", Figure(0.001, Origin.DECLARED), Figure(0.001, Origin.DECLARED))
        >>> two = one.corrected(cpu_s=0.002)
        >>> two.version, two.cpu_s.value, two.cpu_s.origin.value, two.sojourn_s.origin.value
        (2, 0.002, 'measured', 'declared')
        """
        new = {name: value for name, value in values.items() if getattr(self, name).value != value}
        if not new:
            return self
        figures: dict[str, Any] = {name: Figure(value, Origin.MEASURED) for name, value in new.items()}
        return replace(self, version=self.version + 1, **figures)
