r"""Which machines to hold over the next hours, for several scenarios: a program on counts, for HiGHS.

Time is cut into blocks of steps, short ones first. Machines are the same in all scenarios, what they serve is not:

    k_gm            machines of group g kept for their m-th further paid period;  k_g,m+1 <= k_gm <= machines there are
    b_cth           machines of class c bought in block t for h periods
    A_isjt, x_isjt  alternate j of task i in scenario s, and what it processes: x <= a A
    n_ist           its cores: n >= work / power of the fastest core, n >= x / a
    o_skt           relative throughput of an output: x_kt / a_kt
    short           what is missing of the throughput that is asked for

    maximise  mean of Gamma - sigma cost - changes - penalty short

Work and cores are at most what machines give, by block and scenario. Alternates are the same in all blocks of the first
hour and in all scenarios; a task that changes its own now costs ``per_switch``. What is bought or kept now is a whole
number. Where what waits counts, every block has to reach the throughput by itself: what is not served now waits, and
counts later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headgate.model.arrays import Floats, Ints, Shape
from headgate.model.cluster.vm_class import Cloud
from headgate.planning.programs.leases import presence
from headgate.planning.programs.linear import LinearProgram
from headgate.planning.programs.serving import achievable, modes_of

__all__ = ["Group", "Horizon", "HorizonSteps", "Scenario", "blocks_of"]

SHORT = 3.0
"""Penalty for throughput that is missing, in units of value."""


@dataclass(frozen=True, slots=True)
class Group:
    """Equal machines: class, speed, remaining paid steps, count."""

    kind: int
    speed: float
    paid: int
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """Messages per second from outside, by task and block, and their probability."""

    external: Floats
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class HorizonSteps:
    """What to do now."""

    active: Ints
    kept: dict[int, int]
    """Of groups that are due, how many stay, by place."""

    bought: dict[int, int]
    """By class."""

    omega: Floats
    """Relative throughput that is expected, by block."""

    power: Floats
    """Reference cores there will be, by block."""

    objective: float
    switch_gain: float


def blocks_of(steps: int, hour: int) -> list[int]:
    """Lengths of the blocks of a horizon: fine in the first hour, then two of an hour, then of two hours.

    >>> blocks_of(64, 12)
    [1, 2, 3, 6, 12, 12, 24, 4]
    """
    blocks: list[int] = []
    for length in (1, hour // 6, hour // 4, hour // 2):
        if length > 0 and sum(blocks) < min(hour, steps):
            blocks.append(min(max(length, 1), steps - sum(blocks), hour - sum(blocks)))
    while sum(blocks) < steps:
        blocks.append(min(hour if sum(blocks) < 3 * hour else 2 * hour, steps - sum(blocks)))
    return blocks


@dataclass(slots=True)
class Horizon:
    """The program of one decision."""

    shape: Shape
    cloud: Cloud
    groups: Sequence[Group]
    scenarios: Sequence[Scenario]
    blocks: Sequence[int]
    interval_s: float
    hour: int
    """Steps of a paid period."""

    active: Ints
    usual: float
    """What new machines do of what they are rated for."""

    asked: float
    """Mean relative throughput that is asked of all blocks together."""

    each: float
    """The least of any block; 0 where they may make up for each other."""

    per_money: float
    """What a unit of money is worth, in value over the steps of the horizon."""

    per_switch: float
    ends: bool = False
    """Whether the horizon is the end of the period, so that what is paid for beyond it is lost."""

    shared: bool = False
    """Whether tasks share cores: then only their power counts, and nobody has cores of his own (n)."""

    program: LinearProgram = field(default_factory=LinearProgram)
    _power: list[Ints] = field(default_factory=list)
    _cores: list[Ints] = field(default_factory=list)
    _kept: dict[int, int] = field(default_factory=dict)
    _bought: dict[int, list[int]] = field(default_factory=dict)
    _omega: list[tuple[float, int, Ints]] = field(default_factory=list)
    _gives: list[tuple[int, Floats]] = field(default_factory=list)
    _fixed: Floats = field(default_factory=lambda: np.zeros(0))

    def solved(self, time_limit_s: float) -> HorizonSteps | None:
        """The best steps found within a time limit; none if there are none."""
        count = len(self.blocks)
        self._fixed = np.zeros(count)
        for _ in self.scenarios:
            self._power.append(self.program.rows(count, upper=0.0))
            self._cores.append(self.program.rows(count, upper=0.0))
        first = self._first_alternates()
        for place, scenario in enumerate(self.scenarios):
            self._serve(place, scenario, first)
        self._throughput()
        for place, group in enumerate(self.groups):
            self._keep(place, group)
        for kind in range(len(self.cloud.classes)):
            self._buy(kind)
        solution = self.program.solved(time_limit_s, 2e-4)
        return None if solution.objective is None else self._steps(solution.values, solution.objective, first)

    @property
    def _lengths(self) -> Floats:
        return np.array(self.blocks, dtype=np.float64) / sum(self.blocks)

    @property
    def _ends(self) -> Ints:
        return np.cumsum(self.blocks)

    @property
    def _near(self) -> int:
        """Blocks of the first hour, which share their alternates."""
        return max(1, int((self._ends <= self.hour).sum()))

    def _first_alternates(self) -> list[Ints]:
        program, shape = self.program, self.shape
        chosen = []
        near = float(self._lengths[: self._near].sum())
        for task, ways in enumerate(shape.alternates):
            worth = shape.value[task, : len(ways)] * near / shape.tasks
            worth = worth + np.where(np.arange(len(ways)) == self.active[task], self.per_switch, 0.0)
            columns = program.columns(len(ways), worth, upper=1.0)
            program.put(program.rows(1, 1.0, 1.0), columns, 1.0)
            chosen.append(columns)
        return chosen

    def _serve(self, place: int, scenario: Scenario, first: list[Ints]) -> None:
        program, shape, count = self.program, self.shape, len(self.blocks)
        modes = modes_of(shape)
        fastest = max(each.core_power for each in self.cloud.classes) * max(self.usual, 1e-6)
        shares = [program.columns(count, upper=1.0) for _ in modes]
        one = program.rows(count, 1.0, 1.0)
        needed = [program.columns(count) for _ in range(shape.tasks)]
        arriving = [program.rows(count, upper=scenario.external[task]) for task in range(shape.tasks)]
        busy, there = [], []
        for task in range(0 if self.shared else shape.tasks):
            program.put(self._cores[place], needed[task], 1.0)
            busy.append(program.rows(count, upper=0.0))
            there.append(program.rows(count, upper=0.0))
            program.put(busy[task], needed[task], -fastest)
            program.put(there[task], needed[task], -1.0)
        picked: dict[tuple[int, int], list[Ints]] = {}
        for mode, allowed in enumerate(modes):
            program.put(one, shares[mode], 1.0)
            coming = achievable(shape, scenario.external, allowed)
            for task, ways in enumerate(allowed):
                sums = program.rows(count, 0.0, 0.0)
                program.put(sums, shares[mode], -1.0)
                unit = np.maximum(coming[task], 1e-9)
                for way in ways:
                    worth = scenario.weight * self._lengths * shape.value[task, way] / shape.tasks
                    worth[: self._near] = 0.0
                    active = program.columns(count, worth, upper=1.0)
                    picked.setdefault((task, way), []).append(active)
                    program.put(sums, active, 1.0)
                    # In shares of what comes, so that numbers are about 1.
                    done = program.columns(count, upper=1.0)
                    link = program.rows(count, upper=0.0)
                    program.put(link, done, 1.0)
                    program.put(link, active, -1.0)
                    cost = float(shape.cost_s[task, way])
                    program.put(self._power[place], done, cost * unit)
                    program.put(arriving[task], done, unit)
                    if cost > 0 and not self.shared:
                        program.put(busy[task], done, cost * unit)
                        program.put(there[task], done, 1.0)
                    for stream in np.flatnonzero(shape.stream_source == task):
                        made = float(shape.stream_share[stream] * shape.selectivity[task, way])
                        program.put(arriving[int(shape.stream_target[stream])], done, -made * unit)
                    if task in shape.outputs:
                        self._omega.append((scenario.weight, place, done))
        for (task, way), columns in picked.items():
            rows = program.rows(self._near, 0.0, 0.0)
            program.put(rows, first[task][way], -1.0)
            for active in columns:
                program.put(rows, active[: self._near], 1.0)

    def _throughput(self) -> None:
        program, outputs = self.program, len(self.shape.outputs)
        short = program.columns(1, -SHORT)
        asked = program.rows(1, lower=self.asked)
        program.put(asked, short, 1.0)
        for weight, _, done in self._omega:
            program.put(asked, done, weight * self._lengths / outputs)
        if self.each > 0:
            for place in range(len(self.scenarios)):
                count = len(self.blocks)
                missing = program.columns(count, -SHORT * self._lengths * self.scenarios[place].weight)
                rows = program.rows(count, lower=self.each)
                program.put(rows, missing, 1.0)
                for _, of, done in self._omega:
                    if of == place:
                        program.put(rows, done, 1.0 / outputs)

    def _give(self, column: int, kind: int, speed: float, works: Floats) -> None:
        """What one machine adds in each block, ``works`` being the share of it for which it works."""
        vm = self.cloud.classes[kind]
        for power, cores in zip(self._power, self._cores, strict=True):
            self.program.put(power, column, -vm.cores * speed * works)
            self.program.put(cores, column, -vm.cores * (works > 0.0))
        self._gives.append((column, vm.cores * speed * works))

    def _covered(self, begin: int, end: int) -> Floats:
        """The share of each block that lies between two steps."""
        ends = self._ends
        starts = ends - np.array(self.blocks)
        return np.asarray(np.clip(np.minimum(ends, end) - np.maximum(starts, begin), 0, None) / np.array(self.blocks))

    def _price(self, kind: int) -> float:
        vm = self.cloud.classes[kind]
        return self.per_money * float(vm.price_per_h) * self.cloud.billing.period_s / 3_600

    def _paid(self, steps: int) -> float:
        """Periods that are paid for so many steps.

        Of one that reaches beyond the horizon its part, for it will be of use, unless all ends there.
        """
        return float(-(-steps // self.hour)) if self.ends else steps / self.hour

    def _keep(self, place: int, group: Group) -> None:
        program, total = self.program, int(sum(self.blocks))
        paid = program.columns(1, lower=float(group.count), upper=float(group.count))
        if group.paid > 0:
            self._give(int(paid[0]), group.kind, group.speed, self._covered(0, group.paid))
        before = int(paid[0])
        for turn, begin in enumerate(range(group.paid, total, self.hour)):
            end = min(begin + self.hour, total)
            price = self._price(group.kind) * self._paid(end - begin)
            kept = int(program.columns(1, -price, upper=float(group.count), whole=begin == 0)[0])
            row = program.rows(1, upper=0.0)
            program.put(row, [kept, before], [1.0, -1.0])
            self._give(kept, group.kind, group.speed, self._covered(begin, end))
            if turn == 0 and group.paid == 0:
                self._kept[place] = kept
            before = kept

    def _buy(self, kind: int) -> None:
        vm, total = self.cloud.classes[kind], int(sum(self.blocks))
        starts = self._ends - np.array(self.blocks)
        speed = vm.core_power * self.usual
        for block, start in enumerate(starts.tolist()):
            if 0 < start < self.hour and block > 2:
                continue
            for end in range(start + self.hour, total + self.hour, self.hour):
                held = min(end, total) - start
                price = self._price(kind) * self._paid(held)
                works = self._covered(start, min(end, total))
                late = 1.0 - presence(vm.boot_s, self.interval_s, max(held, 1))
                works[block] = max(works[block] - float(late[: self.blocks[block]].sum()) / self.blocks[block], 0.0)
                column = int(self.program.columns(1, -price, whole=start == 0)[0])
                self._give(column, kind, speed, works)
                if start == 0:
                    self._bought.setdefault(kind, []).append(column)

    def _steps(self, values: Floats, objective: float, first: list[Ints]) -> HorizonSteps:
        active = np.array([int(np.argmax(values[columns])) for columns in first], dtype=np.int64)
        omega = np.zeros(len(self.blocks))
        for weight, _, done in self._omega:
            omega += weight * values[done] / len(self.shape.outputs)
        power = sum((values[column] * gives for column, gives in self._gives), np.zeros(len(self.blocks)))
        kept = {place: round(float(values[column])) for place, column in self._kept.items()}
        bought = {kind: round(float(values[columns].sum())) for kind, columns in self._bought.items()}
        worth = [float(self.shape.value[task, way]) for task, way in enumerate(active)]
        had = [float(self.shape.value[task, way]) for task, way in enumerate(self.active)]
        return HorizonSteps(active, kept, bought, omega, power, objective, (sum(worth) - sum(had)) / self.shape.tasks)
