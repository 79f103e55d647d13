"""A linear or mixed-integer program, built from arrays and solved by HiGHS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate.model.arrays import Floats, Ints

__all__ = ["LinearProgram", "Solved"]


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """The solver's solution, if any, and its bound."""

    objective: float | None
    bound: float
    """No solution is above it."""

    values: Floats
    """By column; empty where nothing was found."""

    prices: Floats
    """What one more of each row's limit would bring; empty with whole numbers."""

    infeasible: bool = False


@dataclass(slots=True)
class LinearProgram:
    """Maximise; columns and rows are added as arrays and addressed by index.

    >>> program = LinearProgram()
    >>> x = program.columns(2, objective=[3.0, 2.0], upper=1.0)
    >>> row = program.rows(1, upper=1.5)
    >>> program.put(row, x, 1.0)
    >>> program.solved().values.tolist()
    [1.0, 0.5]
    """

    _cost: list[Floats] = field(default_factory=list)
    _lower: list[Floats] = field(default_factory=list)
    _upper: list[Floats] = field(default_factory=list)
    _whole: list[npt.NDArray[np.bool_]] = field(default_factory=list)
    _row_lower: list[Floats] = field(default_factory=list)
    _row_upper: list[Floats] = field(default_factory=list)
    _entries: list[tuple[Ints, Ints, Floats]] = field(default_factory=list)
    width: int = 0
    height: int = 0

    def columns(
        self,
        count: int,
        objective: npt.ArrayLike = 0.0,
        lower: npt.ArrayLike = 0.0,
        upper: npt.ArrayLike = np.inf,
        whole: bool = False,
    ) -> Ints:
        """New unknowns; returns their places."""
        for into, value in ((self._cost, objective), (self._lower, lower), (self._upper, upper)):
            into.append(np.broadcast_to(np.asarray(value, dtype=np.float64).ravel(), count))
        self._whole.append(np.full(count, whole))
        self.width += count
        return np.arange(self.width - count, self.width)

    def rows(self, count: int, lower: npt.ArrayLike = -np.inf, upper: npt.ArrayLike = np.inf) -> Ints:
        """New limits; returns their places."""
        for into, value in ((self._row_lower, lower), (self._row_upper, upper)):
            into.append(np.broadcast_to(np.asarray(value, dtype=np.float64).ravel(), count))
        self.height += count
        return np.arange(self.height - count, self.height)

    def put(self, rows: npt.ArrayLike, columns: npt.ArrayLike, values: npt.ArrayLike) -> None:
        """Factors of columns in rows; what is put twice in one place is added."""
        r, c, v = np.broadcast_arrays(np.asarray(rows), np.asarray(columns), np.asarray(values, dtype=np.float64))
        self._entries.append((r.ravel().astype(np.int64), c.ravel().astype(np.int64), v.ravel()))

    def row(self, lower: float, upper: float, terms: Mapping[int, float]) -> None:
        """One new limit, of factors by column."""
        self.put(self.rows(1, lower, upper), list(terms), list(terms.values()))

    def solved(
        self,
        time_limit_s: float = 60.0,
        gap: float = 1e-6,
        start: Mapping[int, float] | None = None,
        tolerance: float | None = None,
    ) -> Solved:
        """Solve, within a time limit and to an absolute gap, from what is known of a solution, by column."""
        solver = self.solver(time_limit_s, gap)
        for option in ("mip_feasibility_tolerance", "primal_feasibility_tolerance") if tolerance else ():
            solver.setOptionValue(option, tolerance)
        if start:
            solver.setSolution(len(start), np.array([*start], dtype=np.int32), np.array([*start.values()]))
        solver.run()
        return outcome_of(solver, bool(np.concatenate(self._whole).any()))

    def solver(self, time_limit_s: float = 60.0, gap: float = 1e-6) -> Any:
        """HiGHS with the program in it, for those who go on to change it."""
        highspy: Any = import_module("highspy")
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("time_limit", max(time_limit_s, 0.05))
        solver.setOptionValue("mip_rel_gap", 0.0)
        solver.setOptionValue("mip_abs_gap", gap)
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("random_seed", 1)
        solver.passModel(self._model(highspy))
        return solver

    def _model(self, highspy: Any) -> Any:
        rows, columns, values = self._merged()
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = self.width, self.height
        model.sense_ = highspy.ObjSense.kMaximize
        model.col_cost_ = np.concatenate(self._cost)
        model.col_lower_, model.col_upper_ = np.concatenate(self._lower), np.concatenate(self._upper)
        model.row_lower_ = np.concatenate([*self._row_lower, np.zeros(0)])
        model.row_upper_ = np.concatenate([*self._row_upper, np.zeros(0)])
        matrix = model.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kRowwise
        matrix.start_ = np.searchsorted(rows, np.arange(self.height + 1))
        matrix.index_, matrix.value_ = columns, values
        whole = np.concatenate(self._whole)
        if whole.any():
            kinds = highspy.HighsVarType
            model.integrality_ = [kinds.kInteger if each else kinds.kContinuous for each in whole]
        return model

    def _merged(self) -> tuple[Ints, Ints, Floats]:
        """Entries by row and column, those of one place added."""
        if not self._entries:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
        rows, columns, values = (np.concatenate(each) for each in zip(*self._entries, strict=True))
        keys, inverse = np.unique(rows * max(self.width, 1) + columns, return_inverse=True)
        total = np.bincount(inverse, weights=values, minlength=len(keys))
        there = total != 0.0
        keys, total = keys[there], total[there]
        return keys // max(self.width, 1), keys % max(self.width, 1), total


def outcome_of(solver: Any, whole: bool) -> Solved:
    """The result of a solver that has run."""
    import highspy

    status, info = solver.getModelStatus(), solver.getInfo()
    kinds = highspy.HighsModelStatus
    infeasible = status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible)
    nothing = np.zeros(0)
    bound = info.mip_dual_bound if whole else np.inf
    if infeasible or info.primal_solution_status != 2:
        return Solved(None, -np.inf if infeasible else bound, nothing, nothing, infeasible)
    solution = solver.getSolution()
    if not whole and status == kinds.kOptimal:
        bound = info.objective_function_value
    prices = nothing if whole else np.array(solution.row_dual)
    return Solved(info.objective_function_value, bound, np.array(solution.col_value), prices)
