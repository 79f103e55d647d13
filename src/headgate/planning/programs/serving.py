r"""Serving the load of a whole period, as a linear program that contains every run of the simulator.

Intervals are t, blocks of intervals b. Flows are in messages a second, and what waits is counted as if it were worked
off in one interval. Tasks are outputs k or others i; a mode c is a combination of selectivities of the others.

    z_ct                   share of mode c;  sum_c z_ct = 1
    A_ckjt                 alternate j of output k is active;  sum_j A_ckjt = z_ct
    o_ckjt <= A_ckjt       relative throughput of an output (Eq. 7): x_kjt / a_ckt at most, a_ckt being what comes for
                           it if nothing holds it up, with what waits counted or not
    x_ijb                  what the others process in a block, with whichever alternate
    S_b+1 = S_b + came in - processed >= 0                                       (Eq. 4 and 6), by task and block
    W_b = sum over b of c_kj a_ckt o_ckjt + sum of c_ij x_ijb <= sum over b of power_t          work, by block
    sum over b of n_kt + sum of c_ij x_ijb / fastest_b <= sum over b of cores_t
    n_kt >= sum o_ckjt,   n_kt >= work of k / fastest_b
    mean of o >= Omega_hat
    Gamma = mean over t of (sum_c z_ct Gamma_c + sum A gamma / tasks)

Every run of the simulator satisfies all of it, whatever the policy decides. What is left out can only help:

- an output does not process more than counts for its throughput, which costs power and brings nothing;
- within a block, power may be used whenever it is wanted, and the others may work before they are given what they work
  on. In blocks of one interval nothing of this is left open; blocks of a paid hour lose little, since that is how long
  machines are held. A core may be shared by those that are no outputs: instances are not whole;
- what they process counts by the cheapest way to do it, while the alternate of most value counts for Gamma. This is no
  fault of the relaxation alone: who lets messages wait for a task, and works them off with a cheap alternate in one
  interval of many, has nearly that;
- the network holds nothing up, and neither moving an instance nor switching an alternate costs time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, product

import numpy as np

from headgate.model.arrays import Floats, Ints, Shape
from headgate.planning.programs.linear import LinearProgram

__all__ = ["Allowed", "Fluid", "Future", "achievable", "combinations_of", "modes_of"]

MOST_MODES = 8
Allowed = list[list[int]]


@dataclass(frozen=True, slots=True, eq=False)
class Future:
    """Rates and requirements over the period."""

    shape: Shape
    external: Floats
    """Messages per second from outside, by task and interval."""

    throughput_min: float
    """The mean that is asked of relative throughput, over intervals and outputs."""

    fastest: float
    """The power that a core has at most."""

    block: int = 1
    """Intervals within which the order of work is left open; 1 leaves nothing open."""

    @property
    def intervals(self) -> int:
        return int(self.external.shape[1])

    @property
    def block_of(self) -> Ints:
        """The block of each interval."""
        return np.arange(self.intervals) // self.block

    @property
    def others(self) -> list[int]:
        return [task for task in range(self.shape.tasks) if task not in self.shape.outputs]


def combinations_of(shape: Shape, most: int) -> list[Allowed] | None:
    """The alternates allowed in each combination of selectivities; none if they are more than ``most``.

    What an output puts out is compared with what it might: its selectivity plays no part.
    """
    choices: list[list[list[int]]] = []
    for task, ways in enumerate(shape.alternates):
        by_selectivity: dict[float, list[int]] = {}
        for way in range(len(ways)):
            key = 0.0 if task in shape.outputs else float(shape.selectivity[task, way])
            by_selectivity.setdefault(key, []).append(way)
        choices.append(list(by_selectivity.values()))
    combinations = [list(each) for each in islice(product(*choices), most + 1)]
    return combinations if len(combinations) <= most else None


def modes_of(shape: Shape) -> list[Allowed]:
    """The combinations of selectivities; all alternates in one where they are too many."""
    return combinations_of(shape, MOST_MODES) or [[list(range(len(ways))) for ways in shape.alternates]]


def achievable(shape: Shape, external: Floats, allowed: Allowed) -> Floats:
    """The least input of each task, by interval, with allowed alternates and no bottleneck."""
    out = [min(shape.selectivity[task, way] for way in ways) for task, ways in enumerate(allowed)]
    return shape.achievable(external, np.array(out))


class Fluid:
    """The serving part of the program; machines contribute to the rows ``power`` and ``cores``, by block."""

    def __init__(self, program: LinearProgram, future: Future, whole: bool = False) -> None:
        self.program, self.future, self.whole = program, future, whole
        self.modes = modes_of(future.shape)
        count = future.intervals
        self.starts = list(range(0, count, future.block))
        self.power, self.cores = (program.rows(len(self.starts), upper=0.0) for _ in range(2))
        """Work minus what machines can do, and instances minus their cores."""

        self.active: dict[tuple[int, int, int], Ints] = {}
        """Columns of the outputs' alternates, by mode, task and alternate; each has one for every interval."""

        self.share: dict[tuple[int, int, int], Ints] = {}
        """Columns of relative throughput, likewise."""

        self.coming = [achievable(future.shape, future.external, allowed) for allowed in self.modes]
        self.mode = self._modes()
        for mode, allowed in enumerate(self.modes):
            for task in future.shape.outputs:
                self._output(mode, task, allowed[task])
        for task in future.shape.outputs:
            self._instances(task)
        self._upstream()
        asked = program.rows(1, lower=future.throughput_min * count * len(future.shape.outputs))
        for columns in self.share.values():
            program.put(asked, columns, 1.0)

    def _modes(self) -> list[Ints]:
        """Modes, with the value of the best alternates that each allows to the others."""
        program, shape, count = self.program, self.future.shape, self.future.intervals
        rows = program.rows(count, 1.0, 1.0)
        modes = []
        for allowed in self.modes:
            best = sum(max(shape.value[task, way] for way in allowed[task]) for task in self.future.others)
            whole = self.whole and len(self.modes) > 1
            modes.append(program.columns(count, best / shape.tasks / count, upper=1.0, whole=whole))
            program.put(rows, modes[-1], 1.0)
        return modes

    def _output(self, mode: int, task: int, ways: list[int]) -> None:
        program, shape, count = self.program, self.future.shape, self.future.intervals
        one = program.rows(count, 0.0, 0.0)
        program.put(one, self.mode[mode], -1.0)
        for way in ways:
            key = (mode, task, way)
            worth = shape.value[task, way] / shape.tasks / count
            self.active[key] = program.columns(count, worth, upper=1.0, whole=self.whole and len(ways) > 1)
            self.share[key] = program.columns(count, upper=1.0)
            program.put(one, self.active[key], 1.0)
            rows = program.rows(count, upper=0.0)
            program.put(rows, self.share[key], 1.0)
            program.put(rows, self.active[key], -1.0)
            work = shape.cost_s[task, way] * self.coming[mode][task]
            program.put(self.power[self.future.block_of], self.share[key], work)

    def _instances(self, task: int) -> None:
        program, shape, future = self.program, self.future.shape, self.future
        needed = program.columns(future.intervals, whole=self.whole)
        program.put(self.cores[future.block_of], needed, 1.0)
        one, enough = program.rows(future.intervals, upper=0.0), program.rows(future.intervals, upper=0.0)
        program.put(one, needed, -1.0)
        program.put(enough, needed, -future.fastest)
        for (mode, output, way), columns in self.share.items():
            coming, cost = self.coming[mode][task], float(shape.cost_s[task, way])
            if output == task and cost > 0:
                # What has nothing to do needs no core for its throughput of 1.
                program.put(one, columns, (coming > 0).astype(np.float64))
                program.put(enough, columns, cost * coming)

    def _upstream(self) -> None:
        """Flows between tasks, by block, and the work of those that are no outputs."""
        program, future, shape = self.program, self.future, self.future.shape
        blocks = len(self.starts)
        came = np.add.reduceat(future.external, self.starts, axis=1)
        level = []
        for task in range(shape.tasks):
            stock = program.columns(blocks)
            rows = program.rows(blocks, came[task], came[task])
            program.put(rows, stock, 1.0)
            program.put(rows[1:], stock[:-1], -1.0)
            level.append(rows)
        for task in future.others:
            leaving = np.flatnonzero(shape.stream_source == task)
            for way in range(len(shape.alternates[task])):
                done = program.columns(blocks)
                program.put(level[task], done, 1.0)
                program.put(self.power, done, float(shape.cost_s[task, way]))
                program.put(self.cores, done, float(shape.cost_s[task, way]) / future.fastest)
                for stream in leaving:
                    made = float(shape.stream_share[stream] * shape.selectivity[task, way])
                    program.put(level[int(shape.stream_target[stream])], done, -made)
        for (mode, task, _), columns in self.share.items():
            program.put(level[task][future.block_of], columns, self.coming[mode][task])

    def peak_work(self) -> Floats:
        """Reference cores for which everything is done in the interval in which it comes, by the cheapest ways."""
        shape = self.future.shape
        least = [min(shape.cost_s[task, : len(ways)]) for task, ways in enumerate(shape.alternates)]
        return np.asarray(np.array(least) @ self.coming[0])

    def omega(self, values: Floats) -> Floats:
        """Relative throughput by interval, of a solution."""
        total = sum((values[columns] for columns in self.share.values()), np.zeros(self.future.intervals))
        return total / len(self.future.shape.outputs)

    def gamma(self, values: Floats) -> float:
        """The value of a solution, a mean over intervals."""
        shape, count = self.future.shape, self.future.intervals
        gamma = 0.0
        for allowed, columns in zip(self.modes, self.mode, strict=True):
            best = sum(max(shape.value[task, way] for way in allowed[task]) for task in self.future.others)
            gamma += float(values[columns].sum()) * best
        for (_, task, way), columns in self.active.items():
            gamma += float(values[columns].sum()) * float(shape.value[task, way])
        return gamma / shape.tasks / count
