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
from typing import Any

import numpy as np

from headgate.model.arrays import Floats, Ints
from headgate.planning.problem import Problem

__all__ = ["Goal", "Program", "Solution"]

Terms = list[tuple[int, float]]


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

    _cost: list[float] = field(default_factory=list)
    _lower: list[float] = field(default_factory=list)
    _upper: list[float] = field(default_factory=list)
    _whole: list[bool] = field(default_factory=list)
    _rows: list[tuple[float, float, Terms]] = field(default_factory=list)
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
        self._cost.append(objective)
        self._lower.append(lower)
        self._upper.append(upper)
        self._whole.append(whole)
        return len(self._cost) - 1

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
        self._omega = self._column(self.goal.per_throughput, 0.0, 1.0)

    def _row(self, lower: float, upper: float, terms: Terms) -> None:
        merged: dict[int, float] = {}
        for column, factor in terms:
            merged[column] = merged.get(column, 0.0) + factor
        self._rows.append((lower, upper, list(merged.items())))

    def _into(self, task: int, flows: dict[tuple[int, int], int]) -> Terms:
        """What the tasks before send, negated, in units of what the task gets at most."""
        shape, unit = self.problem.shape, self._unit
        terms: Terms = []
        for stream in np.flatnonzero(shape.stream_target == task):
            source, share = int(shape.stream_source[stream]), float(shape.stream_share[stream])
            for way in self.allowed[source]:
                factor = share * float(shape.selectivity[source, way]) * unit[source] / unit[task]
                terms.append((flows[source, way], -factor))
        return terms

    @property
    def _unit(self) -> Floats:
        """Flows are counted in shares of the most that a task may get: numbers around 1 are solved best."""
        return np.where(self.high > 0, self.high, 1.0)

    def _task_rows(self) -> None:
        problem, shape, powers, unit = self.problem, self.problem.shape, self.powers, self._unit
        settled = self.settled
        for task, ways in enumerate(self.allowed):
            external = float(problem.external[task] / unit[task])
            if len(ways) > 1:
                self._row(1.0, 1.0, [(self._a[task, way], 1.0) for way in ways])
            self._row(-np.inf, external, [(self._x[task, way], 1.0) for way in ways] + self._into(task, self._x))
            costs = [(way, float(shape.cost_s[task, way] * unit[task])) for way in ways]
            most = max(max(cost for _, cost in costs), 1.0)
            work: Terms = [(self._x[task, way], -cost / most) for way, cost in costs]
            self._row(0.0, np.inf, [(self._n[task, g], power / most) for g, power in enumerate(powers)] + work)
            costly: Terms = [(self._a[task, way], -1.0) for way, cost in costs if shape.cost_s[task, way] > 0]
            if costly:
                self._row(0.0, np.inf, [(self._n[task, g], 1.0) for g in range(len(powers))] + costly)
            if settled:
                for way in ways if len(ways) > 1 else ():
                    self._row(-np.inf, 0.0, [(self._x[task, way], 1.0), (self._a[task, way], -1.0)])
                continue
            self._row(external, external, [(self._z[task, way], 1.0) for way in ways] + self._into(task, self._z))
            least = float(self.low[task] / unit[task])
            for way in ways:
                a, z = self._a[task, way], self._z[task, way]
                self._row(-np.inf, 0.0, [(z, 1.0), (a, -1.0)])
                self._row(0.0, np.inf, [(z, 1.0), (a, -least)])
                self._row(-np.inf, 0.0, [(self._x[task, way], 1.0), (z, -1.0)])

    def _throughput_rows(self) -> None:
        outputs, settled = self.problem.shape.outputs, self.settled
        shares: Terms = []
        idle = 0
        for task in outputs:
            if self.high[task] <= 0:
                idle += 1
                continue
            least = float(self.low[task] / self.high[task])
            processed = [self._x[task, way] for way in self.allowed[task]]
            if settled:
                shares += [(x, 1.0 / len(outputs)) for x in processed]
                continue
            # McCormick's envelopes of share = processed / achievable, from below and from above.
            share = self._column(0.0, 0.0, 1.0)
            shares.append((share, 1.0 / len(outputs)))
            self._row(0.0, np.inf, [(x, 1.0) for x in processed] + [(share, -least)])
            over = [(x, 1.0) for x in processed] + [(self._z[task, way], -1.0) for way in self.allowed[task]]
            self._row(-1.0, np.inf, [*over, (share, -1.0)])
        self._row(-idle / len(outputs), np.inf, [*shares, (self._omega, -1.0)])
        if self.goal.throughput_min is not None:
            self._lower[self._omega] = self.goal.throughput_min

    def _limit_rows(self) -> None:
        classes, goal = self.problem.cloud.classes, self.goal
        for group, power in enumerate(self.powers):
            room: Terms = [
                (self._m[k], float(each.cores)) for k, each in enumerate(classes) if each.core_power == power
            ]
            self._row(0.0, np.inf, room + [(self._n[task, group], -1.0) for task in range(self.problem.tasks)])
        if goal.budget_per_h is not None:
            self._row(
                -np.inf,
                goal.budget_per_h,
                [(self._m[k], float(each.price_per_h)) for k, each in enumerate(classes)],
            )
        if goal.cores_max is not None:
            self._row(-np.inf, float(goal.cores_max), [(column, 1.0) for column in self._n.values()])

    def solved(self, time_limit_s: float, gap: float, start: Solution | None = None) -> Solution:
        """Solve within a time limit, to an absolute gap, from a solution that is known."""
        import highspy

        solver = _solver(highspy, time_limit_s, gap)
        solver.passModel(self._model(highspy, any(self._whole)))
        if start is not None and start.active is not None:
            self._start(solver, start)
        solver.run()
        status, info = solver.getModelStatus(), solver.getInfo()
        unbounded = highspy.HighsModelStatus.kUnboundedOrInfeasible
        infeasible = status in (highspy.HighsModelStatus.kInfeasible, unbounded)
        bound = -info.mip_dual_bound if any(self._whole) else -info.objective_function_value
        if infeasible or info.primal_solution_status != 2:
            return Solution(None, -np.inf if infeasible else bound, None, None, None, infeasible)
        values = np.array(solver.getSolution().col_value)
        active = [max(ways, key=lambda way, t=task: values[self._a[t, way]]) for task, ways in enumerate(self.allowed)]  # type: ignore[misc]
        groups = range(len(self.powers))
        instances = np.array([[values[self._n[task, g]] for g in groups] for task in range(self.problem.tasks)])
        return Solution(
            -info.objective_function_value,
            bound,
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

    def _model(self, highspy: Any, whole: bool) -> Any:
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(self._cost), len(self._rows)
        model.col_cost_ = -np.array(self._cost)
        model.col_lower_, model.col_upper_ = np.array(self._lower), np.array(self._upper)
        model.row_lower_ = np.array([low for low, _, _ in self._rows])
        model.row_upper_ = np.array([high for _, high, _ in self._rows])
        matrix = model.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kRowwise
        matrix.start_ = np.cumsum([0] + [len(terms) for _, _, terms in self._rows])
        matrix.index_ = np.array([column for _, _, terms in self._rows for column, _ in terms])
        matrix.value_ = np.array([factor for _, _, terms in self._rows for _, factor in terms])
        if whole:
            kinds = highspy.HighsVarType
            model.integrality_ = [kinds.kInteger if whole else kinds.kContinuous for whole in self._whole]
        return model

    def _start(self, solver: Any, known: Solution) -> None:
        """Alternates and counts of a known plan; HiGHS finds the flows that go with them."""
        assert known.active is not None
        assert known.instances is not None
        assert known.machines is not None
        columns = [(self._a[t, w], float(w == known.active[t])) for t, ways in enumerate(self.allowed) for w in ways]
        columns += [(column, float(known.instances[key])) for key, column in self._n.items()]
        columns += [(column, float(count)) for column, count in zip(self._m, known.machines, strict=True)]
        places = np.array([column for column, _ in columns], dtype=np.int32)
        solver.setSolution(len(columns), places, np.array([value for _, value in columns]))


def _solver(highspy: Any, time_limit_s: float, gap: float) -> Any:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("time_limit", max(time_limit_s, 0.05))
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.setOptionValue("mip_abs_gap", gap)
    solver.setOptionValue("mip_feasibility_tolerance", 1e-9)
    solver.setOptionValue("primal_feasibility_tolerance", 1e-9)
    solver.setOptionValue("random_seed", 1)
    return solver
