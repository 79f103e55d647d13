"""Fragments, which wait together, and pools, which share cores."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.errors import BadValue

__all__ = ["CoreShare", "FragmentLoad", "Pool", "StageLoad"]


@dataclass(frozen=True, slots=True)
class StageLoad:
    """What a fragment runs between two barriers."""

    tasks: tuple[str, ...]
    partitions: int | None = None
    """Equal parts that its rows are cut into; none if they are always enough to use every core."""

    def __post_init__(self) -> None:
        if self.partitions is not None and self.partitions < 1:
            raise BadValue(f"a stage has {self.partitions} partitions", "at least 1")


@dataclass(frozen=True, slots=True)
class FragmentLoad:
    """Tasks whose rows wait before the first of them and pass all of them in one epoch."""

    id: str
    pool: str
    stages: tuple[StageLoad, ...]
    fixed_s: float = 0.0
    """Seconds of the driver in each epoch, for planning and commit (f). No core is used."""

    task_s: float = 0.0
    """Core-seconds of a partition without rows."""

    trigger_s: float = 0.0
    weight: float = 1.0
    """In sharing."""

    def __post_init__(self) -> None:
        if min(self.fixed_s, self.task_s, self.trigger_s) < 0 or not self.weight > 0:
            raise BadValue(f"fragment '{self.id}' has a negative time or no weight", "seconds of at least 0, a weight")

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(task for stage in self.stages for task in stage.tasks)


@dataclass(frozen=True, slots=True)
class CoreShare:
    """What a pool has of a machine."""

    machine: str
    cores: int
    speed: float
    """Power of one core, in reference cores."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Cores that fragments share. Epochs aim at ``epoch_s`` seconds (L); 0 is the papers' limit of flowing messages."""

    name: str
    shares: tuple[CoreShare, ...] = ()
    epoch_s: float = 0.0
    used: float | None = None
    """Usable part of the power (u), where it was measured."""

    @property
    def power(self) -> float:
        r"""Reference cores: :math:`\Phi = \sum_k \pi_k`."""
        return sum(share.cores * share.speed for share in self.shares)

    @property
    def speeds(self) -> list[float]:
        """The power of each core."""
        return [share.speed for share in self.shares for _ in range(share.cores)]
