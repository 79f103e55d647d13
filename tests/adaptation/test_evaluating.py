"""Figures equal what a count of single rows, and an independent computation in fractions, make of the same interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.adaptation.evaluating import evaluated, figures_of
from headgate.adaptation.joining import joined
from headgate.model.cluster.machine_observations import MachineObservations, MachineRow
from headgate.model.cluster.observation import (
    DataflowObservation,
    FragmentObservation,
    Observation,
    SinkObservation,
    Sojourn,
    SourceObservation,
    TaskObservation,
)
from headgate.model.names import Signature
from headgate.model.service_level import ServiceLevel

LEVEL = ServiceLevel(break_even_at_best_per_h=Decimal("0.8"), break_even_at_worst_per_h=Decimal("0.3"))


class Chain:
    """A source, filters that pass every so-manieth row with a fragment each, and a sink; rows are single numbers."""

    def __init__(self, every: list[int]) -> None:
        self.every, self.arrived, self.delivered = every, 0, 0
        self.at: list[list[int]] = [[] for _ in every]
        """The rows that wait before each stage; rows that came first stand first."""

        self.seen = [0 for _ in every]
        """Rows that each stage has had."""

    def arrive(self, count: int) -> None:
        self.at[0] += range(self.arrived, self.arrived + count)
        self.arrived += count

    def step(self, stage: int, count: int) -> tuple[int, int]:
        """Let a stage take so many rows; answers how many it took and put out."""
        taken, self.at[stage] = self.at[stage][:count], self.at[stage][count:]
        out = []
        for row in taken:
            self.seen[stage] += 1
            if self.seen[stage] % self.every[stage] == 0:
                out.append(row)
        if stage + 1 < len(self.every):
            self.at[stage + 1] += out
        else:
            self.delivered += len(out)
        return len(taken), len(out)

    def owed(self) -> int:
        """Rows that would still reach the sink if nothing more came."""
        rest = Chain(self.every)
        rest.at, rest.seen = [list(rows) for rows in self.at], list(self.seen)
        for stage in range(len(self.every)):
            rest.step(stage, len(rest.at[stage]))
        return rest.delivered


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=4),
    st.lists(st.integers(0, 40), min_size=2, max_size=6),
    st.data(),
)
def test_omega_is_what_counting_single_rows_says(every: list[int], capacity: list[int], data: st.DataObject) -> None:
    """Rows come and go in lots that all filters divide, so that selectivities of those that wait are those measured."""
    lot = 1
    for number in every:
        lot *= number
    chain = Chain(every)
    chain.arrive(lot * data.draw(st.integers(0, 20), "waits before"))
    for number, stage in enumerate(every):
        chain.step(number, lot * data.draw(st.integers(0, 5), "taken before") // stage * stage)
    before = [len(rows) for rows in chain.at]
    arrived_before, delivered_before = chain.arrived, chain.delivered
    chain.arrive(lot * data.draw(st.integers(0, 20), "arrives"))
    counts = [(0, 0)] * len(every)
    for count in capacity:
        for number, stage in enumerate(every):
            divisor = stage
            for later in every[number + 1 :]:
                divisor *= later
            took = chain.step(number, count * divisor)
            counts[number] = counts[number][0] + took[0], counts[number][1] + took[1]
    names = [Signature(f"t{number}") for number in range(len(every))]
    tasks = tuple(
        TaskObservation(name, name, "filter", name, ("d",), None, *counts[n], inputs=tuple(names[max(n - 1, 0) : n]))
        for n, name in enumerate(names)
    )
    moved = [chain.arrived - arrived_before, *(out for _, out in counts)]
    fragments = tuple(
        FragmentObservation(
            name,
            "keyed" if n else "source",
            (name,),
            1,
            counts[n][0],
            len(chain.at[n]),
            *(0.0,) * 5,
            rows_arrived=moved[n],
        )
        for n, name in enumerate(names)
    )
    source = SourceObservation(names[0], "t0", ("d",), counts[0][0], float(moved[0]), float(len(chain.at[0])))
    delivered = chain.delivered - delivered_before
    sink = SinkObservation(Signature("sink"), "sink", ("d",), delivered, None, (names[-1],))
    flow = DataflowObservation("d", "o", LEVEL)
    seen = Observation(10.0, 5.0, tasks, (sink,), fragments, MachineObservations(), (source,), (flow,))
    figures = figures_of(seen)[0]["d"]
    could = delivered + chain.owed()
    assert figures.omega == pytest.approx(delivered / could if could else 1.0)
    taken, came = sum(took for took, _ in counts), sum(moved[:-1])
    assert figures.kept_up == (pytest.approx(taken / came) if came else None)
    assert sum(before) + came - taken == sum(len(rows) for rows in chain.at), "the test loses no row"


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    """A random graph of two dataflows with whatever counts, machines and prices."""
    count = draw(st.integers(1, 6))
    names = [Signature(f"t{number}") for number in range(count)]
    users = st.sampled_from([("a",), ("b",), ("a", "b")])
    rows = st.integers(0, 100)
    tasks, sources = [], []
    for number, name in enumerate(names):
        inputs = tuple(draw(st.sets(st.sampled_from(names[:number]), max_size=3))) if number else ()
        value = draw(st.floats(0.1, 1.0))
        taken = draw(rows)
        tasks.append(
            TaskObservation(name, name, "x", "x", draw(users), None, taken, draw(rows), inputs=inputs, value=value)
        )
        if not inputs:
            waits = draw(st.one_of(st.none(), st.floats(0, 100)))
            sources.append(SourceObservation(name, name, ("a",), taken, None, waits, unknown="" if waits else "why"))
    sinks = []
    for number in range(draw(st.integers(0, 3))):
        delivered = draw(rows)
        sojourn = Sojourn(*(draw(st.floats(0, 9)) for _ in range(4))) if delivered else None
        inputs = tuple(draw(st.sets(st.sampled_from(names), min_size=1, max_size=2)))
        sinks.append(SinkObservation(Signature(f"s{number}"), "s", draw(users), delivered, sojourn, inputs))
    machines = [
        MachineRow(
            f"m{n}",
            price_per_h=draw(st.decimals(0, 9, places=4)),
            asked=draw(st.one_of(st.none(), st.floats(80, 110))),
            gone=draw(st.one_of(st.none(), st.floats(80, 110))),
        )
        for n in range(draw(st.integers(0, 3)))
    ]
    flows = tuple(DataflowObservation(name, "o", LEVEL, 0.5) for name in ("a", "b"))
    made = MachineObservations.of(machines)
    return Observation(100.0, 10.0, tuple(tasks), tuple(sinks), (), made, tuple(sources), flows)


def could_of(seen: Observation) -> Mapping[Signature, Fraction | None]:
    """What each task and sink could have had, task by task backwards, in exact fractions; none where not known."""
    tasks = {task.task: task for task in seen.tasks_and_sinks}
    sources = {source.task: source for source in seen.sources}

    def done(name: Signature) -> int:
        task = tasks[name]
        return task.rows_in if isinstance(task, TaskObservation) else task.rows

    @cache
    def could(name: Signature) -> Fraction | None:
        if name in sources:
            waits = sources[name].rows_waiting
            return None if waits is None else Fraction(done(name)) + Fraction(waits)
        total, came = Fraction(0), 0
        for before in tasks[name].inputs:
            had = could(before)
            if had is None:
                return None
            task = tasks[before]
            assert isinstance(task, TaskObservation)
            out, had_done = task.rows_out, done(before)
            # Without a row there is no selectivity, and each row would have become one.
            total += (had * out / had_done) if had_done else had
            came += out if had_done else 0
        return total + max(done(name) - came, 0)

    return {name: could(name) for name in tasks}


@given(observations())
def test_figures_are_what_the_papers_formulas_say(seen: Observation) -> None:
    figures, together = figures_of(seen)
    could = could_of(seen)
    whole = Fraction(0)
    for machine in seen.machines:
        since = max(90.0 if machine.asked is None else machine.asked, 90.0)
        until = min(100.0 if machine.gone is None else machine.gone, 100.0)
        whole += Fraction(machine.price_per_h or 0) * Fraction(max(until - since, 0.0)) / 10
    every = seen.tasks_and_sinks
    for name, own in figures.items():
        sinks = [sink for sink in seen.sinks if name in sink.dataflows]
        cost = sum((whole / len(every) / len(task.dataflows) for task in every if name in task.dataflows), Fraction())
        assert own.cost_per_h == pytest.approx(float(cost))
        mine = [task for task in every if name in task.dataflows]
        values = [task.value if isinstance(task, TaskObservation) else 1.0 for task in mine]
        if values:
            gamma = sum(values) / len(values)
            assert own.gamma == pytest.approx(gamma)
            assert own.theta == pytest.approx(gamma - 1 - (1 - 0.5) / (0.8 - 0.3) * (float(cost) - 0.8))
        wanted = [could[sink.task] for sink in sinks]
        if not sinks or None in wanted:
            assert own.omega is None
            assert own.unknown
            assert own.within is None
            continue
        most = [each for each in wanted if each is not None]
        ratios = [
            min(Fraction(sink.rows) / each, Fraction(1)) if each else Fraction(1)
            for sink, each in zip(sinks, most, strict=True)
        ]
        if all(could[task] is not None for sink in sinks for task in sink.inputs):
            assert own.omega is not None
            # A task may have put out more than it could have had: then counts are of two moments.
            consistent = all(
                (could[task.task] or 0) >= task.rows_in for task in seen.tasks if could[task.task] is not None
            )
            if consistent:
                assert own.omega == pytest.approx(float(sum(ratios) / len(ratios)))
            assert own.within == (own.omega >= 0.75)
    assert together.cost_per_h == pytest.approx(float(whole))
    if all(own.theta is not None for own in figures.values()):
        assert together.theta == pytest.approx(sum(own.theta or 0.0 for own in figures.values()))
    used = sum(own.cost_per_h or 0.0 for own in figures.values())
    assert used == pytest.approx(float(whole)), "what dataflows pay is what machines cost"


def simple(**changes: object) -> Observation:
    """One source, one sink, all rows through, one machine."""
    src, end = Signature("src"), Signature("end")
    task = TaskObservation(src, "src", "rate", "rate", ("d",), None, 90, 90)
    sojourn = Sojourn(1.5, 1.0, 2.0, 3.0)
    sink = SinkObservation(end, "end", ("d",), 90, sojourn, (src,))
    source = SourceObservation(src, "src", ("d",), 90, 100.0, 10.0)
    fragment = FragmentObservation("f", "source", (src,), 3, 90, 10, *(0.0,) * 5, rows_arrived=100.0)
    machines = MachineObservations(("m",), price_per_h=(Decimal("0.10"),))
    flows = (DataflowObservation("d", "o", ServiceLevel(latency_max_s=2.0)),)
    seen = Observation(100.0, 10.0, (task,), (sink,), (fragment,), machines, (source,), flows)
    return replace(seen, **changes)  # type: ignore[arg-type]


def test_what_is_not_known_is_not_zero_and_says_why() -> None:
    own = figures_of(simple())[0]["d"]
    assert (own.omega, own.kept_up, own.within) == (0.9, 0.9, True)
    source = replace(simple().sources[0], rows_waiting=None, unknown="a socket does not report what waits")
    own = figures_of(simple(sources=(source,)))[0]["d"]
    assert (own.omega, own.within) == (None, None)
    assert any("a socket does not report" in reason for reason in own.unknown)
    late = replace(simple().sinks[0], sojourn=Sojourn(2.5, 1.0, 2.0, 3.0))
    assert figures_of(simple(sources=(source,), sinks=(late,)))[0]["d"].within is False, "late is late"
    unpriced = MachineObservations(("m",))
    own, together = figures_of(simple(machines=unpriced))[0]["d"], figures_of(simple(machines=unpriced))[1]
    assert own.cost_per_h is together.cost_per_h is None
    assert own.theta is None
    paused = simple(dataflows=(replace(simple().dataflows[0], paused=True),))
    assert figures_of(paused)[0]["d"].unknown[0] == "it is paused"


def test_a_sink_that_gets_none_of_its_rows_has_kept_none() -> None:
    refusing = replace(simple().sinks[0], rows=0, sojourn=None)
    assert figures_of(simple(sinks=(refusing,)))[0]["d"].omega == 0.0
    elsewhere = replace(refusing, routed=True)
    assert figures_of(simple(sinks=(elsewhere,)))[0]["d"].omega == 1.0, "its predicate held for none"


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=5))
def test_intervals_joined_are_one_interval(lots: list[tuple[int, int]]) -> None:
    """Rows of a source that is never behind by more than it was: sums, and what waits in the end."""
    waiting, seen = 0, []
    for number, (came, most) in enumerate(lots):
        took = min(waiting + came, most)
        waiting += came - took
        base = simple(ended=10.0 * (number + 1))
        seen.append(
            replace(
                base,
                tasks=(replace(base.tasks[0], rows_in=took, rows_out=took),),
                sinks=(replace(base.sinks[0], rows=took),),
                sources=(replace(base.sources[0], rows_taken=took, rows_arrived=came, rows_waiting=waiting),),
            )
        )
    whole = evaluated(joined(seen))
    came, took = sum(each for each, _ in lots), sum(each.sinks[0].rows for each in seen)
    assert whole.seconds == 10.0 * len(lots)
    figures = whole.dataflows[0].figures
    assert figures is not None
    assert figures.omega == pytest.approx(took / came if came else 1.0)
    assert figures.cost_per_h == pytest.approx(0.1)
