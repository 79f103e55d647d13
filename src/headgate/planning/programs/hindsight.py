r"""A bound on the profit of every policy, computed in hindsight from the true rates and machines.

The program of :mod:`headgate.planning.programs.serving` is solved with the true rates and machines. The n-th machine
of a simulated world performs as the world's seed says, whichever policy acquires it; so machines are known by their
number, and a policy with the seventh has paid for the six before it (for a period at least). Leases are generated as
needed (column generation): at the program's prices of power, the best lease of each machine is looked up among all.

Any prices give a bound (Lagrange): what serving brings at these prices, and the best prefix of machines,

    Theta <= serving(p) + max over K of sum over k <= K of max over ways (p . power - sigma cost)

so the bound holds whether or not the prices are the best. It is a bound on :math:`\Gamma - \sigma\mu`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from headgate.errors import InputError
from headgate.model.arrays import Floats, Ints
from headgate.planning.objective import BreakEven
from headgate.planning.programs.leases import Leases
from headgate.planning.programs.linear import LinearProgram, outcome_of
from headgate.planning.programs.serving import Fluid, Future
from headgate.planning.world import World

__all__ = ["Hindsight", "Lease", "future_of", "hindsight"]

MOST_MACHINES = 4_000


@dataclass(frozen=True, slots=True)
class Lease:
    """A machine of the plan: its number, class, first and last interval."""

    number: int
    kind: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Hindsight:
    """The bound and its plan, in which machines and alternates may be fractional."""

    bound: float
    """No policy that meets the throughput has a larger :math:`\\Gamma - \\sigma\\mu`."""

    relaxed: float
    """The optimum over the ways that were looked at; the difference to the bound is what was not proven."""

    gamma: float
    cost: float
    omega: Floats
    """Relative throughput by interval."""

    held: tuple[tuple[Lease, float], ...]
    """Machines with the share that the plan has of them."""

    rounds: int
    took_s: float
    break_even: BreakEven

    def theta(self, net_value: float) -> float:
        """A profit in PLAN-AHEAD's form as one in DYN's, which is 0 on both break-even points."""
        even = self.break_even
        return net_value - even.value_max + even.sigma * even.cost_at_max


def hindsight(
    setting: World,
    row: int = 0,
    time_limit_s: float = 120.0,
    gap: float = 1e-3,
    progress: Callable[[str], None] | None = None,
) -> Hindsight:
    """The bound of one replication of a setting."""
    even = BreakEven.of(setting.dataflow)
    if even is None or even.sigma <= 0:
        message = f"dataflow '{setting.dataflow.name}' has no break-even costs, so its profit is undefined"
        raise InputError("NO_BREAK_EVEN", f"{message}; give break-even costs and alternates of different value")
    if setting.shape().stream_returns.any():
        raise InputError("LOOP", f"dataflow '{setting.dataflow.name}' has a loop, for which there is no bound")
    return _Search(setting, row, even.times(setting.hours), time_limit_s, gap).run(progress)


class _Search:
    def __init__(self, setting: World, row: int, even: BreakEven, time_limit_s: float, gap: float) -> None:
        self.even, self.gap = even, gap
        self.began = time.perf_counter()
        self.deadline = self.began + time_limit_s
        self.leases = Leases.of(setting.cloud, setting.interval_s, setting.intervals, setting.warm)
        # Whoever spends more than this has less than nothing.
        self.most = int(min(even.value_max / even.sigma / self.leases.least_cost(), MOST_MACHINES)) + 1
        self.speed = setting.machine_speeds(row, self.most)
        self.program = LinearProgram()
        self.future = future_of(setting, row, self.speed)
        self.serving = Fluid(self.program, self.future)
        self.columns: list[tuple[int, int, int]] = []
        """(machine, class, way) of every column of machines."""

        self.worths: list[Floats] = []
        self.known: set[tuple[int, int, int]] = set()
        self._emergency(setting)
        self.first = self.program.width
        self.rows: Ints = np.zeros(0, dtype=np.int64)
        self.machines = 0
        self.solver: Any = self.program.solver(time_limit_s)
        peak = float(self.serving.peak_work().max())
        self._more_machines(min(self.most, int(peak / (0.8 * setting.cloud.largest.power)) + 2))

    def _emergency(self, setting: World) -> None:
        """Power and cores at a price that no machine has, so that there is a solution before there are machines."""
        hours = max(self.leases.billing.period_s, setting.interval_s) / 3_600
        for rows, of in ((self.serving.power, "power"), (self.serving.cores, "cores")):
            price = max(float(each.price_per_h) / float(getattr(each, of)) for each in setting.cloud.classes)
            columns = self.program.columns(len(rows), -2.0 * self.even.sigma * price * hours)
            self.program.put(rows, columns, -1.0)

    def run(self, progress: Callable[[str], None] | None) -> Hindsight:
        bound, rounds = np.inf, 0
        best: tuple[Floats, float] | None = None
        while best is None or time.perf_counter() < self.deadline:
            rounds += 1
            left_s = max(self.deadline - time.perf_counter(), 1.0)
            self.solver.setOptionValue("time_limit", self.solver.getRunTime() + left_s)
            self.solver.run()
            solution = outcome_of(self.solver, whole=False)
            if solution.objective is None or not np.isfinite(solution.bound):
                break
            best = (solution.values, solution.objective)
            power, cores = np.abs(solution.prices[self.serving.power]), np.abs(solution.prices[self.serving.cores])
            # What serving brings at these prices is what is left of the optimum without the machines' part.
            serves = solution.objective - self._prefix(self._known_worth(power, cores))[0]
            prices = power[self.future.block_of], cores[self.future.block_of]
            worth, ways = self._best_ways(self.speed[: self.machines], *prices)
            missing = serves + self._prefix(worth)[0] - solution.objective
            if missing > self.gap / 2 and self._add(ways):
                continue
            # The program has what it needs of the machines it knows: now those that it does not know.
            every = self._best_ways(self.speed, *prices)[0]
            total, last = self._prefix(every)
            bound = min(bound, serves + total)
            if progress is not None:
                known = f"{self.machines} machines and {len(self.columns)} ways"
                progress(f"bound {bound:.4f}, plan {solution.objective:.4f}, {known}")
            if bound - solution.objective <= self.gap or last <= self.machines:
                break
            self._more_machines(min(last - self.machines, max(4, self.machines // 3)))
        if best is None:
            raise InputError("NO_BOUND", "no bound was found in the time given; give more time, or a shorter period")
        if self.most > MOST_MACHINES:
            # More machines were not considered; a policy that has them has paid for them.
            bound = max(bound, self.even.value_max - self.even.sigma * MOST_MACHINES * self.leases.least_cost())
        return self._result(max(bound, 0.0), best[1], best[0], rounds)

    def _best_ways(self, speed: Floats, power: Floats, cores: Floats) -> tuple[Floats, list[tuple[Ints, Floats]]]:
        """What each machine brings at most, and for each class the best way to hold each machine."""
        best = []
        for kind in range(len(self.leases.cloud.classes)):
            value = self.leases.worth(kind, speed, power, cores) - self.even.sigma * self.leases.cost(kind)
            way = value.argmax(axis=1)
            best.append((way, value[np.arange(len(value)), way]))
        return np.max([value for _, value in best], axis=0), best

    def _known_worth(self, power: Floats, cores: Floats) -> Floats:
        """The same among the ways that the program has."""
        prices = np.concatenate([power, cores, [1.0]])
        values = np.array(self.worths) @ prices
        worth = np.full(self.machines, -np.inf)
        np.maximum.at(worth, np.array([machine for machine, _, _ in self.columns]), values)
        return worth

    @staticmethod
    def _prefix(worth: Floats) -> tuple[float, int]:
        """The best sum of the first so many, and how many these are."""
        total = np.concatenate([[0.0], np.cumsum(worth)])
        return float(total.max()), int(total.argmax())

    def _more_machines(self, count: int) -> None:
        """Rows that say: a machine is had once, and only with those before it."""
        new = range(self.machines, self.machines + count)
        for machine in new:
            before = [self.first + place for place, each in enumerate(self.columns) if each[0] == machine - 1]
            places, values = np.array(before, dtype=np.int32), np.full(len(before), -1.0)
            self.solver.addRow(-np.inf, 1.0 if machine == 0 else 0.0, len(places), places, values)
        self.rows = np.concatenate([self.rows, np.arange(self.solver.getNumRow() - count, self.solver.getNumRow())])
        self.machines += count
        cheap = min(range(len(self.leases.cloud.classes)), key=lambda kind: float(self.leases.cost(kind)[0]))
        large = self.leases.cloud.place(self.leases.cloud.largest.name)
        throughout = int(np.flatnonzero((self.leases.begin == 0) & (self.leases.end == self.leases.intervals))[0])
        for machine in new:
            self._column(machine, large, throughout)
            self._column(machine, cheap, 0)

    def _add(self, ways: list[tuple[Ints, Floats]]) -> int:
        """The best ways at the present prices, for machines that the program has."""
        return sum(
            self._column(machine, kind, int(way[machine]))
            for kind, (way, _) in enumerate(ways)
            for machine in range(self.machines)
        )

    def _column(self, machine: int, kind: int, way: int) -> bool:
        if (machine, kind, way) in self.known:
            return False
        self.known.add((machine, kind, way))
        self.columns.append((machine, kind, way))
        vm, works = self.leases.cloud.classes[kind], self.leases.works(kind, way)
        blocks, starts = len(self.serving.starts), self.serving.starts
        gives = np.add.reduceat(vm.cores * vm.core_power * works * self.speed[machine], starts)
        cores = np.add.reduceat(vm.cores * (works > 0.0), starts).astype(np.float64)
        cost = self.even.sigma * float(self.leases.cost(kind)[way])
        self.worths.append(np.concatenate([gives, cores, [-cost]]))
        rows = np.concatenate([self.serving.power, self.serving.cores, self.rows[machine : machine + 2]])
        values = np.concatenate([-gives, -cores, [1.0, -1.0][: len(rows) - 2 * blocks]])
        there = np.flatnonzero(values)
        self.solver.addCol(-cost, 0.0, np.inf, len(there), rows[there].astype(np.int32), values[there])
        return True

    def _result(self, bound: float, relaxed: float, values: Floats, rounds: int) -> Hindsight:
        shares = values[self.first : self.first + len(self.columns)]
        held, cost = [], 0.0
        for (machine, kind, way), share in zip(self.columns, shares.tolist(), strict=False):
            if share > 1e-7:
                ends = (int(self.leases.begin[way]), int(self.leases.end[way]))
                held.append((Lease(machine, kind, *ends), share))
                cost += share * float(self.leases.cost(kind)[way])
        return Hindsight(
            bound,
            relaxed,
            self.serving.gamma(values),
            cost,
            self.serving.omega(values),
            tuple(held),
            rounds,
            time.perf_counter() - self.began,
            self.even,
        )


def future_of(setting: World, row: int, speed: Floats) -> Future:
    shape = setting.shape()
    external = np.zeros((shape.tasks, setting.intervals))
    external[list(shape.sources)] = setting.external(shape)[row].T[: len(shape.sources)]
    fastest = max(each.core_power for each in setting.cloud.classes) * float(speed.max())
    asked = setting.dataflow.service_level.throughput_min
    # Up to some thousand unknowns nothing need be left open.
    block = 1 if shape.tasks * setting.intervals <= 500 else max(1, round(3_600 / setting.interval_s))
    return Future(shape, external, asked, fastest, block)
