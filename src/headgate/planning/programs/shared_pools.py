r"""Which alternates and how many machines where tasks share the cores of pools: a program on counts, for HiGHS.

    maximise    sum of worth_i value_ij A_ij  -  per_money sum of price_g m_g  -  short
    subject to  sum_j A_ij = 1
                (1 + margin) sum over tasks of pool P of rate_i c_ij A_ij  <=
                                                       sum over machines of P of gain_g m_g - lost_P + short_P
                (1 + margin) sum over tasks of fragment f of rate_i c_ij A_ij  <=
                                                       cap_f + per_power_f sum of P's power_g m_g + short_f
                sum price_g m_g <= budget,  sum cores_g m_g <= cores_max,  m_g at least one in each pool

The rates of tasks must be settled by the selectivities of the alternates that are allowed. What is short costs more
than all else is worth, so that there is always a solution: where machines are too few, the least overloaded one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headgate.model.arrays import Floats, Ints, Shape
from headgate.planning.programs.linear import LinearProgram
from headgate.planning.programs.serving import Allowed

__all__ = ["MachineChoice", "PoolChoice", "PoolProblem"]


@dataclass(frozen=True, slots=True)
class MachineChoice:
    """Machines that count alike: those of a kind that are there, or a class of which new ones can be had."""

    pool: int
    gain: float
    """What one adds to what its pool can use, in reference cores."""

    power: float
    """All its cores, in reference cores."""

    price_per_h: float
    """What one weighs in the decision."""

    cores: int
    most: float = np.inf
    least: int = 0
    cost_per_h: float = 0.0
    """What one costs, for the budget."""

    kind: int = 0
    """Its place in the cloud."""


@dataclass(frozen=True, slots=True, eq=False)
class PoolProblem:
    """One decision."""

    shape: Shape
    worth: Floats
    """By task, what a unit of its alternate's value adds."""

    per_money: float
    pool_of: Ints
    """By task."""

    fragment_of: Ints
    machines: Sequence[MachineChoice]
    lost: Floats
    """By pool, what is lost in any case."""

    caps: Floats
    """By fragment, what it can use whatever machines there are; infinite where that is not limited."""

    per_power: Floats
    """By fragment, what it can use of each reference core of its pool; 0 where ``caps`` says all."""

    margin: float = 0.0
    budget_per_h: float | None = None
    cores_max: int | None = None

    def solved(self, allowed: Allowed, rates: Floats, time_limit_s: float, gap: float = 1e-7) -> PoolChoice | None:
        """The best of some alternates, all of which leave the rates as they are."""
        program, shape = LinearProgram(), self.shape
        pools = program.rows(len(self.lost), upper=-self.lost)
        limited = np.flatnonzero(np.isfinite(self.caps))
        fragments = dict(zip(limited.tolist(), program.rows(len(limited), upper=self.caps[limited]), strict=True))
        growing = np.flatnonzero(self.per_power > 0)
        wide = dict(zip(growing.tolist(), program.rows(len(growing), upper=0.0), strict=True))
        columns: list[Ints] = []
        for task, ways in enumerate(allowed):
            chosen = program.columns(
                len(ways), self.worth[task] * shape.value[task, ways], upper=1.0, whole=len(ways) > 1
            )
            program.put(program.rows(1, 1.0, 1.0), chosen, 1.0)
            work = rates[task] * shape.cost_s[task, ways] * (1.0 + self.margin)
            program.put(pools[self.pool_of[task]], chosen, work)
            for rows in (fragments, wide):
                if int(self.fragment_of[task]) in rows:
                    program.put(rows[int(self.fragment_of[task])], chosen, work)
            columns.append(chosen)
        counts = self._machines(program, pools)
        for fragment, row in wide.items():
            pool = self.pool_of[np.flatnonzero(self.fragment_of == fragment)[0]]
            for column, each in zip(counts, self.machines, strict=True):
                if each.pool == pool:
                    program.put(row, column, -each.power * self.per_power[fragment])
        penalty = self._penalty()
        for row in [*pools, *fragments.values(), *wide.values()]:
            program.put(row, program.columns(1, -penalty), -1.0)
        result = program.solved(time_limit_s, gap)
        if result.objective is None:
            return None
        active = [ways[int(np.argmax(result.values[chosen]))] for ways, chosen in zip(allowed, columns, strict=True)]
        machines = np.round(result.values[counts]).astype(np.int64)
        return PoolChoice(np.array(active, dtype=np.int64), machines, result.objective, result.bound)

    def _machines(self, program: LinearProgram, pools: Ints) -> Ints:
        counts = np.concatenate(
            [
                program.columns(1, -self.per_money * each.price_per_h, each.least, each.most, whole=True)
                for each in self.machines
            ]
            or [np.zeros(0, dtype=np.int64)]
        )
        for pool in range(len(self.lost)):
            mine = [int(column) for column, each in zip(counts, self.machines, strict=True) if each.pool == pool]
            if sum(each.most for each in self.machines if each.pool == pool) >= 1:
                program.put(program.rows(1, lower=1.0), mine, 1.0)
        for column, each in zip(counts, self.machines, strict=True):
            program.put(pools[each.pool], column, -each.gain)
        if self.budget_per_h is not None and self.machines:
            # What is paid already stays, and a pool has one machine at least.
            least = max(self._held_cost(), len(self.lost) * min(each.cost_per_h for each in self.machines))
            row = program.rows(1, upper=max(self.budget_per_h, least))
            program.put(row, counts, [each.cost_per_h for each in self.machines])
        if self.cores_max is not None and self.machines:
            held = sum(each.cores * each.least for each in self.machines)
            held = max(held, len(self.lost) * min(each.cores for each in self.machines))
            program.put(
                program.rows(1, upper=max(self.cores_max, held)), counts, [each.cores for each in self.machines]
            )
        return counts

    def _held_cost(self) -> float:
        return sum(each.cost_per_h * each.least for each in self.machines)

    def _penalty(self) -> float:
        """Of a reference core that is missing: more than any machine costs and any alternate is worth for it."""
        dearest = max((each.price_per_h / each.gain for each in self.machines if each.gain > 1e-9), default=1.0)
        return 10.0 * (self.per_money * dearest + float(self.worth.sum()))


@dataclass(frozen=True, slots=True, eq=False)
class PoolChoice:
    """Alternates by task, counts by machine choice, and how good they are."""

    active: Ints
    machines: Ints
    objective: float
    bound: float
