"""A simulated world as planning and adaptation must know it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from headgate.model.arrays import Floats, Shape
from headgate.model.cluster.vm_class import Cloud
from headgate.model.dataflow import Dataflow

__all__ = ["World"]


class World(Protocol):
    """A dataflow, a cloud and a period; :class:`headgate.simulation.setting.Setting` is one."""

    @property
    def dataflow(self) -> Dataflow: ...
    @property
    def cloud(self) -> Cloud: ...
    @property
    def intervals(self) -> int: ...
    @property
    def interval_s(self) -> float: ...
    @property
    def hours(self) -> float: ...
    @property
    def seed(self) -> int: ...
    @property
    def warm(self) -> bool: ...
    @property
    def counts_queues(self) -> bool: ...
    @property
    def message_bytes(self) -> float: ...
    @property
    def costs(self) -> Mapping[tuple[str, str], tuple[float, float]]: ...
    @property
    def shares(self) -> Mapping[tuple[str, str], float]: ...
    def shape(self) -> Shape: ...
    def mean_rates(self) -> dict[str, float]: ...
    def peak_rates(self) -> dict[str, float]: ...
    def external(self, shape: Shape) -> Floats:
        """Rates from outside: replications × intervals × sources."""

    def machine_speeds(self, replication: int, count: int) -> Floats:
        """The speed of the first machines that are acquired: machines × intervals."""
