"""What a policy sees: the measurements of a window as columns, tasks in the order of the graph, machines as rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from headgate.adaptation.policy import Capabilities, Terms
from headgate.capacity.sharing import Sharing
from headgate.errors import BadValue
from headgate.model.arrays import Floats, Ints, Shape
from headgate.model.cluster.observation import Observation

__all__ = ["MachineColumns", "Window"]


@dataclass(frozen=True, slots=True, eq=False)
class MachineColumns:
    """The machines that work or start; a row for each."""

    names: tuple[str, ...]
    kind: Ints
    """The place of its class in the terms' cloud."""

    speed: Floats
    """Measured power of one core, in reference cores; the rated power while it starts."""

    left_s: Floats
    """Seconds until its next billing period begins."""

    starts_s: Floats
    """Seconds until it is ready; 0 if it is."""

    cores: Ints
    """Its cores by pool: machines × pools, in the order of the capabilities' pools."""

    def __post_init__(self) -> None:
        count = len(self.names)
        if {len(each) for each in (self.kind, self.speed, self.left_s, self.starts_s, self.cores)} != {count}:
            raise BadValue(f"columns of other lengths beside {count} machines", "a row for each machine")

    @classmethod
    def none(cls, pools: int) -> MachineColumns:
        """No machine at all."""
        empty = np.zeros(0)
        return cls((), np.zeros(0, dtype=np.int64), empty, empty, empty, np.zeros((0, pools), dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """What was measured of a running graph; arrays are by task unless said otherwise, and not to be written to."""

    terms: Terms
    capabilities: Capabilities
    ended_s: float
    """When it ended, in seconds since 1970 or since the beginning of a simulation."""

    shape: Shape
    """The graph with costs and selectivities as they are known now."""

    active: Ints
    """The place of the active alternate."""

    external: Floats
    """Messages per second from outside."""

    waiting: Floats
    """What waits, in messages."""

    omega: float
    """Relative throughput of the last interval."""

    machines: MachineColumns
    sharing: Sharing | None = None
    """The fragments and pools, with epochs as they were measured; none where each task has cores of its own."""

    latency_s: dict[str, float] = field(default_factory=dict)
    """Of each dataflow that has rows at a sink: the mean."""

    measured: Observation | None = None
    """The measurements behind it, where they come from a running engine."""
