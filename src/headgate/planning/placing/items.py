"""Instances as items whose size depends on who is beside them, and machines as bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headgate.model.arrays import Floats, Ints
from headgate.planning.placing.loads import OperatorLoads
from headgate.planning.placing.parallelism import Parallelism

__all__ = ["InstanceItems"]


@dataclass(frozen=True, slots=True, eq=False)
class InstanceItems:
    r"""The instances of all operators. Those of an operator are equal, so a machine is a count of each.

    With parallelism :math:`P` of an operator, :math:`P_k` of its neighbour :math:`k` and :math:`Adj_k` of that
    neighbour's instances on the same machine, an instance needs

    .. math:: C = \sum_{in} \frac{S_k}{P} c_p + \left( \sum_{in} \frac{S_k}{P_k P} (P_k - Adj_k)
              + \sum_{out} \frac{S'_k}{P_k P} (P_k - Adj_k) \right) c_t + f \cdot [\text{no } Adj_k > 0 \text{ in}]

    cores. The last term is ours: what a micro-batch costs without rows. An instance beside one that feeds it runs in
    the same job and pays none.

    Reference: P-DEPLOY, Eq. 1 to 4; Eq. 3 with the plus sign before its second sum, which the print lacks.
    """

    names: tuple[str, ...]
    count: Ints
    """P."""

    work: Floats
    """Cores of an instance for its rows."""

    transfer: Floats
    """Cores of an instance for transfer if all its neighbours are elsewhere."""

    batch: Floats
    """Cores of an instance's micro-batches without rows (f)."""

    memory: Floats
    """Bytes of an instance."""

    own_saving: Floats
    """[a, b]: cores that an instance of a saves for each instance of b beside it."""

    feeds: Ints
    """[a, b]: 1 where b feeds a."""

    saving: Floats = field(init=False)
    """[a, b]: what both of them save."""

    largest: Floats = field(init=False)
    """Cores of an instance with no neighbour beside it (C_max, with f)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "saving", self.own_saving + self.own_saving.T)
        object.__setattr__(self, "largest", self.work + self.transfer + self.batch)

    @classmethod
    def of(cls, loads: OperatorLoads, parallelism: Sequence[Parallelism], trigger_s: float = 0.0) -> InstanceItems:
        """With micro-batches every ``trigger_s`` seconds; 0 for rows that flow one by one."""
        count = np.array([each.instances for each in parallelism], dtype=np.int64)
        c_t, operators = loads.values("transfer_s"), len(count)
        own = np.zeros((operators, operators))
        feeds = np.zeros((operators, operators), dtype=np.int64)
        for a, b, rows in zip(loads.source, loads.target, loads.stream_per_s, strict=True):
            of_a_pair = rows / (count[a] * count[b])
            own[a, b] += of_a_pair * c_t[a]
            own[b, a] += of_a_pair * c_t[b]
            feeds[b, a] = 1
        passing = loads.in_per_s + loads.out_per_s
        return cls(
            loads.names,
            count,
            loads.in_per_s / count * loads.values("cpu_s"),
            (loads.inside_per_s + loads.out_per_s) / count * c_t,
            loads.values("batch_s") / trigger_s if trigger_s > 0 else np.zeros(operators),
            passing / count * loads.values("memory_bytes") + loads.values("instance_bytes"),
            own,
            feeds,
        )

    def cpu_of(self, on: Ints) -> float:
        """Cores that a machine with so many instances of each operator needs (the sum of C over them)."""
        needed = float(on @ (self.work + self.transfer)) + self.batch_of(on)
        return needed - float(on @ self.own_saving @ on)

    def batch_of(self, on: Ints) -> float:
        """Cores that a machine's micro-batches need without rows."""
        alone = ~((self.feeds @ (on > 0)) > 0)
        return float((on * self.batch) @ alone)

    def memory_of(self, on: Ints) -> float:
        """Bytes that a machine with so many instances of each operator needs."""
        return float(on @ self.memory)

    def cpu_by_operator(self, on: Ints) -> Floats:
        """Cores of each operator's instances on a machine."""
        alone = ~((self.feeds @ (on > 0)) > 0)
        each: Floats = on * (self.work + self.transfer + self.batch * alone - self.own_saving @ on)
        return each

    def growth(self, on: Ints) -> tuple[Floats, Floats]:
        """For an instance more of each operator: its own cores there (C), and by how much the machine's grow."""
        there = on > 0
        covered = (self.feeds @ there) > 0
        own = self.work + self.transfer - self.own_saving @ on + self.batch * ~covered
        # Instances that had nobody feeding them here, and would have.
        freed = self.feeds.T @ (on * self.batch * (there & ~covered))
        grown: Floats = own - self.own_saving.T @ on - freed
        return own, grown
