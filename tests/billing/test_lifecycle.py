"""Machines are paid to the last fraction: by whoever used them, whatever the billing period, wherever a day is cut."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headgate.billing.lifecycle import BEGUN_SECONDS, MachineCharges, PaidMachine, charged
from headgate.billing.usage import Interval, VmUsage, WorkerUsage
from headgate.model.cluster.vm_class import HOURLY, BillingPeriod
from headgate.model.names import DataflowName
from tests.judge.profit import Machine, machine_bill

START = datetime(2026, 11, 1, tzinfo=UTC)
T = START.timestamp()
DAY_S = 86_400
NAMES = [DataflowName(name) for name in ("a", "b", "c")]
A, B = NAMES[:2]

moments = st.integers(0, DAY_S * 8).map(lambda eighths: eighths / 8)
machines = st.builds(
    lambda number, cores, price, at, held, has_gone: PaidMachine(
        f"m{number}", "c", cores, price, T + at, T + at + held if has_gone else None
    ),
    st.integers(0, 99),
    st.integers(1, 4),
    st.decimals("0.001", 5, places=4),
    moments,
    moments,
    st.booleans(),
)
users = st.lists(st.sampled_from(NAMES), max_size=3, unique=True).map(tuple)
periods = st.builds(BillingPeriod, st.sampled_from([1.0, 60.0, 600.0, 3_600.0]), st.sampled_from([0.0, 60.0, 600.0]))


def interval(begin: int, end: int, *tasks: tuple[DataflowName, ...]) -> Interval:
    worker = WorkerUsage({str(n): who for n, who in enumerate(tasks)})
    return Interval(START + timedelta(seconds=begin), end - begin, (VmUsage("driver", Decimal(0), (worker,)),))


@st.composite
def usages(draw: st.DrawFn) -> list[Interval]:
    """Who used what, with gaps, over a day and a bit."""
    edges = sorted(draw(st.lists(st.integers(0, DAY_S), min_size=2, max_size=6, unique=True)))
    every = [interval(begin, end, *draw(st.lists(users, max_size=4))) for begin, end in pairwise(edges)]
    return [one for one in every if draw(st.booleans())]


@given(st.lists(machines, max_size=4), usages(), periods)
def test_lines_and_idle_time_are_what_machines_cost(
    held: list[PaidMachine], usage: list[Interval], period: BillingPeriod
) -> None:
    until = T + 2 * DAY_S
    charges = charged(held, usage, 0.0, until, period)
    cost = Fraction()
    for machine in held:
        price = Fraction(machine.price_per_h) / 3_600
        if machine.gone is None:
            cost += price * Fraction(until - machine.acquired)
        elif machine.gone > machine.acquired:
            length = max(machine.gone - machine.acquired, period.least_s)
            cost += price * math.ceil(Fraction(length) / Fraction(period.period_s)) * Fraction(period.period_s)
    assert charges.total == cost
    assert all(charges.unused.get(name, 0) <= share for name, share in charges.shares.items())
    # The same, by a judge who reads files.
    judged = [Machine(m.name, m.cores, Fraction(m.price_per_h), m.acquired, m.gone) for m in held]
    lines: list[tuple[float, list[list[str]]]] = []
    for one in usage:
        lines.append(
            (one.start.timestamp(), [list(map(str, who)) for who in one.vms[0].workers[0].tasks.values() if who])
        )
        lines.append((one.end.timestamp(), []))
    billing = {"period_s": period.period_s, "least_s": period.least_s}
    whole, by_name = machine_bill(judged, _merged(lines), billing, until)
    assert whole == charges.total
    assert by_name == {name: share for name, share in charges.shares.items() if share or name in by_name}


def _merged(lines: list[tuple[float, list[list[str]]]]) -> list[tuple[float, list[list[str]]]]:
    """What is so from each moment on: where one interval follows another, the later."""
    return sorted(dict(sorted(lines, key=lambda line: (line[0], bool(line[1])))).items())


@given(st.lists(machines, max_size=3), usages(), periods, st.lists(moments, max_size=4))
def test_bills_of_a_day_add_up_wherever_it_is_cut(
    held: list[PaidMachine], usage: list[Interval], period: BillingPeriod, cuts: list[float]
) -> None:
    ends = [T - 1.0, *(T + cut for cut in sorted(cuts)), T + 3 * DAY_S]
    parts = [charged(held, usage, first, last, period) for first, last in pairwise(ends)]
    whole = charged(held, usage, ends[0], ends[-1], period)
    assert sum((part.idle for part in parts), Fraction()) == whole.idle
    for column in ("shares", "unused", "alone"):
        for name in NAMES:
            amounts = [getattr(part, column).get(name, Fraction()) for part in parts]
            assert sum(amounts, Fraction()) == getattr(whole, column).get(name, Fraction()), (column, name)


def test_what_is_paid_and_not_used_is_for_the_last_users() -> None:
    """40 minutes of an hour at 0.60: the rest is for who was there in the end."""
    machine = PaidMachine("m", "small", 2, Decimal("0.60"), T, T + 2_400)
    usage = [interval(0, 1_200, (A,), (A,)), interval(1_200, 2_400, (A,), (A, B), (B,))]
    hour = charged([machine], usage, 0.0, T + DAY_S, HOURLY)
    cent = Fraction(1, 100)
    assert hour.shares == {A: (20 + 10 + 10) * cent, B: (10 + 10) * cent}
    assert hour.unused == {A: 10 * cent, B: 10 * cent}
    assert hour.total == 60 * cent
    second = charged([machine], usage, 0.0, T + DAY_S, BEGUN_SECONDS)
    assert (second.total, second.unused[A]) == (40 * cent, Fraction())


def test_alone_takes_the_machines_that_the_own_tasks_need() -> None:
    """Of four tasks on four machines a dataflow with one needs one machine, one with three needs three."""
    held = [PaidMachine(f"m{n}", "small", 1, Decimal("0.36"), T) for n in range(4)]
    usage = [interval(0, 100, (A,), (B,), (A, B), (B,))]
    alone = charged(held, usage, T, T + 100).alone
    assert alone == {A: 2 * 100 * Fraction(1, 10_000), B: 3 * 100 * Fraction(1, 10_000)}
    large = [PaidMachine("large", "large", 4, Decimal("0.36"), T)]
    assert charged(large, usage, T, T + 100).alone[A] == 100 * Fraction(1, 10_000), "there is no smaller one"


def test_a_machine_that_nobody_uses_is_idle() -> None:
    machine = PaidMachine("m", "small", 2, Decimal("0.36"), T, known_until=T + 50.0)
    charges = charged([machine], [], 0.0, T + 100)
    assert charges == MachineCharges(idle=50 * Fraction(1, 10_000)), "until it was last known to be held"
