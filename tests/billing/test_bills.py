"""Bills: the paper's example by hand, and that nothing is lost or gained whatever is shared and rounded."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.billing.attribution import apportion, attribute
from headgate.billing.bill import Bill, draw_up
from headgate.billing.export import FOCUS_COLUMNS, to_csv, to_focus, to_json
from headgate.billing.usage import Customer, Interval, Prices, VmUsage, WorkerUsage
from headgate.errors import InputError
from headgate.model.names import DataflowName, Owner

START = datetime(2026, 11, 1, tzinfo=UTC)
NAMES = [DataflowName(f"flow{n}") for n in range(5)]


def worker(**tasks: str) -> WorkerUsage:
    return WorkerUsage({task: tuple(map(DataflowName, users.split())) for task, users in tasks.items()})


def test_the_papers_example() -> None:
    """Section 6: five workers on three machines of one cent a minute, three dataflows."""
    cent_a_minute = Decimal("0.60")
    vms = (
        VmUsage("v1", cent_a_minute, (worker(A="D1 D3", B="D1 D3"), worker(C="D1", D="D1"))),
        VmUsage("v2", cent_a_minute, (worker(E="D2 D3", F="D2 D3"), worker(G="D2", H="D2"))),
        VmUsage("v3", cent_a_minute, (worker(D3="D3", I="D3"),)),
    )
    bill_of_all = attribute([Interval(START, 60, vms)])
    cents = {str(name): share * 100 for name, share in bill_of_all.shares.items()}
    # c_A = 1/(2*2*2), c_C = 1/(2*2*1), c_I = 1/(1*2*1)
    assert cents["D1"] == 2 * Fraction(1, 8) + 2 * Fraction(1, 4)
    assert cents["D2"] == 2 * Fraction(1, 8) + 2 * Fraction(1, 4)
    assert cents["D3"] == 4 * Fraction(1, 8) + 2 * Fraction(1, 2)
    assert (bill_of_all.idle, bill_of_all.total) == (Fraction(), Fraction(3, 100))


prices = st.decimals(Decimal("0.001"), 50, places=4)
users = st.lists(st.sampled_from(NAMES), max_size=4, unique=True).map(tuple)
workers = st.lists(users, max_size=4).map(lambda many: WorkerUsage({f"t{n}": who for n, who in enumerate(many)}))
vms = st.builds(VmUsage, st.just("vm"), prices, st.lists(workers, max_size=3).map(tuple))
intervals = st.lists(st.tuples(st.integers(1, 7200), st.lists(vms, max_size=4).map(tuple)), min_size=1, max_size=4)


def bill_of(usage: list[tuple[int, tuple[VmUsage, ...]]]) -> tuple[Bill, list[Interval]]:
    spans = [Interval(START + timedelta(hours=n), length, machines) for n, (length, machines) in enumerate(usage)]
    customers = [Customer(name, Owner(f"owner{n % 2}"), n + 1) for n, name in enumerate(NAMES)]
    return draw_up(spans, customers, Prices()), spans


@given(intervals)
def test_bills_and_idle_add_up_to_the_clusters_cost_to_the_last_cent(
    usage: list[tuple[int, tuple[VmUsage, ...]]],
) -> None:
    bill, spans = bill_of(usage)
    cost = sum((span.cost for span in spans), Fraction())
    assert abs(Fraction(bill.total) - cost) <= Fraction(1, 200)
    assert sum((line.cost for line in bill.lines), bill.idle) == bill.total
    assert sum((line.cost for line in bill.owners), bill.idle) == bill.total
    exact = attribute(spans)
    assert exact.total == cost
    for line in bill.lines:
        assert abs(Fraction(line.cost) - exact.shares.get(line.dataflow, Fraction())) < Fraction(1, 100)


@given(intervals)
def test_every_export_tells_the_same_sum(usage: list[tuple[int, tuple[VmUsage, ...]]]) -> None:
    bill, _ = bill_of(usage)
    exported = json.loads(to_json(bill))
    assert sum((Decimal(x["cost"]) for x in exported["dataflows"]), Decimal(exported["idle"])) == Decimal(
        exported["total"]
    )
    assert sum(Decimal(row["cost"]) for row in csv.DictReader(io.StringIO(to_csv(bill)))) == bill.total
    focus = list(csv.DictReader(io.StringIO(to_focus(bill))))
    assert sum(Decimal(row["BilledCost"]) for row in focus) == bill.total
    assert tuple(focus[0]) == FOCUS_COLUMNS == tuple(sorted(FOCUS_COLUMNS))


@given(st.dictionaries(st.text(max_size=3), st.fractions(0, 100), max_size=8))
def test_apportioning_keeps_the_sum_moves_nobody_by_a_unit_and_does_not_depend_on_the_order(
    shares: dict[str, Fraction],
) -> None:
    amounts = apportion(shares)
    assert sum(amounts.values()) * 100 == round(sum(shares.values(), Fraction()) * 100)
    assert all(abs(Fraction(amounts[name]) - share) < Fraction(1, 100) for name, share in shares.items())
    assert apportion(dict(reversed(shares.items()))) == amounts


def test_alone_is_whole_machines_for_as_long_as_it_ran() -> None:
    tasks = {f"t{n}": (NAMES[0], NAMES[1]) for n in range(9)}
    machines = tuple(
        VmUsage(f"vm-{n}", Decimal("0.10"), (WorkerUsage(dict(list(tasks.items())[n::2])),)) for n in range(2)
    )
    spans = [Interval(START, 3600, machines), Interval(START + timedelta(hours=1), 3600, machines)]
    bill = draw_up(spans, [Customer(NAMES[0], Owner("ana"), 9), Customer(NAMES[1], Owner("ben"), 9)], Prices())
    assert [(line.cost, line.alone, line.saved) for line in bill.lines] == [
        (Decimal("0.20"), Decimal("0.40"), Decimal("0.20"))
    ] * 2
    assert bill.end - bill.start == timedelta(hours=2)


def test_what_cannot_be_billed_is_told() -> None:
    with pytest.raises(InputError) as empty:
        draw_up([], [], Prices())
    assert empty.value.condition == "NOTHING_TO_BILL"
    machine = VmUsage("v", Decimal(1), (worker(t="stranger"),))
    with pytest.raises(InputError) as unknown:
        draw_up([Interval(START, 60, (machine,))], [], Prices())
    assert unknown.value.parameters == {"dataflow": "stranger"}
