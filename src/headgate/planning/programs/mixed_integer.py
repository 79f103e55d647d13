"""The planning problem as a mixed-integer program on counts, for HiGHS.

Machines of one class are alike, and so are the instances of a task on cores of one power. So the program has the number
of machines of each class and the number of instances of each task by power, not who sits where: its size does not grow
with rates. With ``A`` the alternates, ``x`` the messages processed, ``z`` those achievable, ``n`` instances and ``m``
machines:

    maximise    mean of gamma A  -  sigma sum of price m
    subject to  sum_j A_ij = 1
                sum_j x_ij <= external_i + sum over streams of share s x        (Eq. 6)
                sum_g power_g n_ig >= sum_j c_ij x_ij                           (Eq. 4)
                sum_i n_ig <= sum over classes of power g of cores m
                mean over outputs of x_k / R_k >= Omega_hat                     (Eq. 7)

``R``, what is achievable, follows from the selectivities of the active alternates. Where these are settled it is a
constant and the program is exact. Where they are not, ``z`` bounds it and the ratio is relaxed by McCormick's
envelopes: then the optimum is an upper bound only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headgate.model.arrays import Floats, Ints
from headgate.planning.problem import Problem
from headgate.planning.programs.linear import LinearProgram

__all__ = ["Goal", "Program", "Solution"]

Terms = dict[int, float]


@dataclass(frozen=True, slots=True)
class Goal:
    """The objective, value minus ``per_money`` per unit of cost and so on, and the limits."""

    per_value: float
    per_money: float
    per_throughput: float = 0.0
    throughput_min: float | None = None
    budget_per_h: float | None = None
    cores_max: int | None = None
    per_core: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The solution, if any, and the bound."""

    objective: float | None
    bound: float
    active: Ints | None
    instances: Ints | None
    """By task and power."""

    machines: Ints | None
    """By class."""

    infeasible: bool
    omega: float = 0.0
    power: Floats | None = None
    """Reference cores that each task has, before counts were rounded."""

    torn: Ints | None = None
    """Tasks of which no alternate is wholly active, in a linear program."""


@dataclass(slots=True)
class Program:
    """One program: the allowed alternates of each task, and between what its achievable rate may lie."""

    problem: Problem
    goal: Goal
    allowed: Sequence[Sequence[int]]
    low: Floats
    high: Floats
    whole: bool = True
    """Whether counts are whole numbers; otherwise the optimum is an upper bound, quickly found."""

    whole_instances: bool = True
    """Whether that holds for instances too, and not for machines alone."""

    most: Sequence[float] | None = None
    """The number of available machines by class; none if unlimited."""

    either: bool = True
    """Whether an alternate is active or not; otherwise it may be so in part, and the program is linear."""

    _linear: LinearProgram = field(default_factory=LinearProgram)
    _a: dict[tuple[int, int], int] = field(default_factory=dict)
    _x: dict[tuple[int, int], int] = field(default_factory=dict)
    _z: dict[tuple[int, int], int] = field(default_factory=dict)
    _n: dict[tuple[int, int], int] = field(default_factory=dict)
    _m: list[int] = field(default_factory=list)
    _omega: int = -1

    @property
    def settled(self) -> bool:
        """Whether achievable rates are constants, so that the program is exact."""
        return bool(np.allclose(self.low, self.high, rtol=1e-12, atol=0.0))

    def __post_init__(self) -> None:
        self._columns()
        self._task_rows()
        self._throughput_rows()
        self._limit_rows()

    @property
    def powers(self) -> list[float]:
        return sorted({each.core_power for each in self.problem.cloud.classes})

    def _column(self, objective: float, lower: float, upper: float, whole: bool = False) -> int:
        return int(self._linear.columns(1, objective, lower, upper, whole)[0])

    def _columns(self) -> None:
        problem, shape, settled = self.problem, self.problem.shape, self.settled
        for task, ways in enumerate(self.allowed):
            for way in ways:
                worth = self.goal.per_value * shape.value[task, way] / problem.tasks
                self._a[task, way] = self._column(
                    worth, 1.0 if len(ways) == 1 else 0.0, 1.0, self.either and len(ways) > 1
                )
                self._x[task, way] = self._column(0.0, 0.0, 1.0)
                if not settled:
                    self._z[task, way] = self._column(0.0, 0.0, 1.0)
            for group in range(len(self.powers)):
                self._n[task, group] = self._column(
                    -self.goal.per_core, 0.0, np.inf, self.whole and self.whole_instances
                )
        for kind, each in enumerate(problem.cloud.classes):
            worth = -self.goal.per_money * float(each.price_per_h)
            self._m.append(self._column(worth, 0.0, np.inf if self.most is None else self.most[kind], self.whole))
        self._omega = self._column(self.goal.per_throughput, self.goal.throughput_min or 0.0, 1.0)

    def _into(self, task: int, flows: dict[tuple[int, int], int]) -> Terms:
        """What the tasks before send, negated, in units of what the task gets at most."""
        shape, unit = self.problem.shape, self._unit
        terms: Terms = {}
        for stream in np.flatnonzero(shape.stream_target == task):
            source, share = int(shape.stream_source[stream]), float(shape.stream_share[stream])
            for way in self.allowed[source]:
                factor = share * float(shape.selectivity[source, way]) * unit[source] / unit[task]
                terms[flows[source, way]] = terms.get(flows[source, way], 0.0) - factor
        return terms

    @property
    def _unit(self) -> Floats:
        """Flows are counted in shares of the most that a task may get: numbers around 1 are solved best."""
        return np.where(self.high > 0, self.high, 1.0)

    def _task_rows(self) -> None:
        problem, shape, unit, row = self.problem, self.problem.shape, self._unit, self._linear.row
        settled = self.settled
        for task, ways in enumerate(self.allowed):
            external = float(problem.external[task] / unit[task])
            if len(ways) > 1:
                row(1.0, 1.0, {self._a[task, way]: 1.0 for way in ways})
            row(-np.inf, external, {self._x[task, way]: 1.0 for way in ways} | self._into(task, self._x))
            costs = {way: float(shape.cost_s[task, way] * unit[task]) for way in ways}
            most = max(*costs.values(), 1.0)
            cores = {self._n[task, group]: power for group, power in enumerate(self.powers)}
            work = {self._x[task, way]: -cost / most for way, cost in costs.items()}
            row(0.0, np.inf, {column: power / most for column, power in cores.items()} | work)
            costly = {self._a[task, way]: -1.0 for way in ways if shape.cost_s[task, way] > 0}
            if costly:
                row(0.0, np.inf, dict.fromkeys(cores, 1.0) | costly)
            if settled:
                for way in ways if len(ways) > 1 else ():
                    row(-np.inf, 0.0, {self._x[task, way]: 1.0, self._a[task, way]: -1.0})
                continue
            row(external, external, {self._z[task, way]: 1.0 for way in ways} | self._into(task, self._z))
            least = float(self.low[task] / unit[task])
            for way in ways:
                a, z = self._a[task, way], self._z[task, way]
                row(-np.inf, 0.0, {z: 1.0, a: -1.0})
                row(0.0, np.inf, {z: 1.0, a: -least})
                row(-np.inf, 0.0, {self._x[task, way]: 1.0, z: -1.0})

    def _throughput_rows(self) -> None:
        outputs, settled, row = self.problem.shape.outputs, self.settled, self._linear.row
        shares: Terms = {self._omega: -1.0}
        idle = 0
        for task in outputs:
            if self.high[task] <= 0:
                idle += 1
                continue
            least = float(self.low[task] / self.high[task])
            processed = [self._x[task, way] for way in self.allowed[task]]
            if settled:
                shares |= dict.fromkeys(processed, 1.0 / len(outputs))
                continue
            # McCormick's envelopes of share = processed / achievable, from below and from above.
            share = self._column(0.0, 0.0, 1.0)
            shares[share] = 1.0 / len(outputs)
            row(0.0, np.inf, dict.fromkeys(processed, 1.0) | {share: -least})
            over = {self._z[task, way]: -1.0 for way in self.allowed[task]} | {share: -1.0}
            row(-1.0, np.inf, dict.fromkeys(processed, 1.0) | over)
        row(-idle / len(outputs), np.inf, shares)

    def _limit_rows(self) -> None:
        classes, goal, row = self.problem.cloud.classes, self.goal, self._linear.row
        for group, power in enumerate(self.powers):
            room = {self._m[k]: float(each.cores) for k, each in enumerate(classes) if each.core_power == power}
            row(0.0, np.inf, room | {self._n[task, group]: -1.0 for task in range(self.problem.tasks)})
        if goal.budget_per_h is not None:
            prices = [float(each.price_per_h) for each in classes]
            row(-np.inf, goal.budget_per_h, dict(zip(self._m, prices, strict=True)))
        if goal.cores_max is not None:
            row(-np.inf, float(goal.cores_max), dict.fromkeys(self._n.values(), 1.0))

    def solved(self, time_limit_s: float, gap: float, start: Solution | None = None) -> Solution:
        """Solve within a time limit, to an absolute gap, from a solution that is known."""
        known = {} if start is None or start.active is None else self._known(start)
        solved = self._linear.solved(time_limit_s, gap, known, 1e-9)
        if solved.objective is None:
            return Solution(None, solved.bound, None, None, None, solved.infeasible)
        values = solved.values
        active = [max(ways, key=lambda way, t=task: values[self._a[t, way]]) for task, ways in enumerate(self.allowed)]  # type: ignore[misc]
        groups = range(len(self.powers))
        instances = np.array([[values[self._n[task, g]] for g in groups] for task in range(self.problem.tasks)])
        return Solution(
            solved.objective,
            solved.bound,
            np.array(active, dtype=np.int64),
            np.ceil(instances - 1e-6).astype(np.int64),
            np.ceil(values[self._m] - 1e-6).astype(np.int64),
            False,
            float(values[self._omega]),
            instances @ np.array(self.powers),
            np.array([task for task in range(self.problem.tasks) if self._is_torn(task, values)], dtype=np.int64),
        )

    def _is_torn(self, task: int, values: Floats) -> bool:
        return bool(max(values[self._a[task, way]] for way in self.allowed[task]) < 1 - 1e-6)

    def _known(self, known: Solution) -> Terms:
        """Alternates and counts of a known plan, by column; HiGHS finds the flows that go with them."""
        assert known.active is not None
        assert known.instances is not None
        assert known.machines is not None
        active = {self._a[t, w]: float(w == known.active[t]) for t, ways in enumerate(self.allowed) for w in ways}
        active |= {column: float(known.instances[key]) for key, column in self._n.items()}
        return active | dict(zip(self._m, map(float, known.machines), strict=True))
