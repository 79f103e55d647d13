"""The record of usage: whatever happens to the engine, what was used is known and adds up."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.billing.bill import draw_up
from headgate.billing.journal import BilledMachine, Usage, UsageJournal, read_usage
from headgate.billing.lifecycle import PaidMachine
from headgate.billing.usage import Customer, Prices
from headgate.errors import InputError
from headgate.report.bill import draw_bill
from headgate.service.bill import bill, bill_span, of_owner
from headgate.store.journal import Journal, create_journal

PRICE = Decimal("3.60")


def usage(**tasks: int) -> Usage:
    """Usage on one machine; ``a_b=2`` are two tasks that dataflows a and b share. Owners are called after them."""
    shared = {tuple(name.split("_")): count for name, count in tasks.items()}
    names = sorted({name for users in shared for name in users})
    customers = tuple(Customer(name, f"owner of {name}", 3) for name in names)  # type: ignore[arg-type]
    return Usage((BilledMachine("local", PRICE, shared),), customers)  # type: ignore[arg-type]


def usage_journal(state: Path) -> UsageJournal:
    """The usage of an engine that opens a state directory."""
    state.mkdir(exist_ok=True)
    if not (state / "journal").exists():
        create_journal(state / "journal")
    return UsageJournal(Journal(state / "journal"))


def test_what_is_used_is_paid_for_by_the_second(tmp_path: Path) -> None:
    state = tmp_path / "state"
    journal = usage_journal(state)
    journal.changed(1_000, usage())
    journal.changed(1_010, usage(a=3))
    journal.changed(1_015, usage(a=3))
    journal.changed(1_110, usage(a=1, a_b=2, b=1))
    journal.ended(1_210)
    message = bill(state)
    assert [(line.dataflow, line.cost, line.alone) for line in message.lines] == [
        ("a", Decimal("0.1500"), Decimal("0.2000")),
        ("b", Decimal("0.0500"), Decimal("0.1000")),
    ]
    assert (message.idle, message.total) == (Decimal("0.0100"), Decimal("0.2100"))
    assert of_owner(message, "owner of b").total == Decimal("0.0500")
    with pytest.raises(InputError, match="did you mean 'owner of"):
        of_owner(message, "owner of c")


def unpaid(used: Usage) -> Usage:
    """The same on a machine that costs nothing by itself."""
    return replace(used, machines=tuple(replace(machine, price_per_h=Decimal(0)) for machine in used.machines))


def held(at: float, gone: float | None = None) -> PaidMachine:
    return PaidMachine("small-1", "small", 2, Decimal("0.36"), at, gone)


def test_machines_are_noted_once_and_known_to_be_held_until_the_engine_ends(tmp_path: Path) -> None:
    state = tmp_path / "state"
    journal = usage_journal(state)
    journal.changed(1_000, unpaid(usage(a=2)))
    journal.held([held(990.5)])
    size = (state / "journal").stat().st_size
    journal.held([held(990.5)])
    assert (state / "journal").stat().st_size == size, "nothing has changed"
    journal.goes_on(1_040)
    crashed = usage_journal(state)
    (known,) = read_usage(state).machines
    assert known.known_until == 1_040.0, "as long as the engine is known to have watched it"
    crashed.changed(1_100, unpaid(usage(a=2)))
    crashed.held([held(990.5, 1_130.5)])
    crashed.ended(1_200)
    assert [machine.gone for machine in read_usage(state).machines] == [1_130.5]
    cent = Decimal("0.0001")  # a second of the machine
    by_second, by_hour = bill(state), bill(state, bill_span(period_s=3_600.0))
    assert (by_second.total, by_second.idle) == (140 * cent, Decimal("0.0070")), "the gap, and before the engine"
    assert by_hour.total == 3_600 * cent
    assert by_hour.unused == by_hour.lines[0].unused == 3_460 * cent
    parts = [bill(state, bill_span(None, 1_120)), bill(state, bill_span(1_120, None))]
    assert sum(part.total for part in parts) == by_second.total
    with pytest.raises(InputError, match="ends before it begins"):
        bill_span(5, 4)


def test_after_a_crash_usage_ends_where_it_was_last_known(tmp_path: Path) -> None:
    killed = usage_journal(tmp_path)
    killed.changed(1_000, usage(a=1))
    killed.goes_on(1_030)
    assert sum(i.length_s for i in read_usage(tmp_path).intervals) == 30, "while it runs"
    with (tmp_path / "journal").open("a") as file:
        file.write('0a1b2c3d\t7\t[["Usa')  # killed as it wrote
    assert sum(i.length_s for i in read_usage(tmp_path).intervals) == 30
    again = usage_journal(tmp_path)
    again.changed(5_000, usage(a=1))
    again.ended(5_010)
    assert [i.length_s for i in read_usage(tmp_path).intervals] == [30, 10], "what lies between is nobody's"


def test_a_clock_that_is_set_back_costs_nothing(tmp_path: Path) -> None:
    journal = usage_journal(tmp_path)
    journal.changed(1_000, usage(a=1))
    journal.changed(900, usage(b=1))
    journal.ended(910)
    assert [i.length_s for i in read_usage(tmp_path).intervals] == [10]


def test_who_has_run_for_less_than_a_second_is_on_the_bill(tmp_path: Path) -> None:
    journal = usage_journal(tmp_path)
    journal.changed(1_000, usage(a=1))
    journal.changed(1_010, usage(a=1, b=1))
    assert [(line.dataflow, line.cost > 0) for line in bill(tmp_path).lines] == [("a", True), ("b", False)]


def test_a_name_that_two_owners_have_had(tmp_path: Path) -> None:
    journal = usage_journal(tmp_path)
    for at_s, owner in ((0, "ana"), (10, "ben"), (20, "ana")):
        customer = Customer("etl", owner, 2)  # type: ignore[arg-type]
        journal.changed(at_s, Usage((BilledMachine("local", PRICE, {("etl",): 2}),), (customer,)))  # type: ignore[dict-item]
    journal.ended(30)
    record = read_usage(tmp_path)
    message = draw_up(record.intervals, record.customers, Prices(PRICE))
    assert [(line.dataflow, line.owner, line.cost) for line in message.lines] == [
        ("etl", "ana", Decimal("0.02")),
        ("etl (ben)", "ben", Decimal("0.01")),
    ]


def test_nothing_to_bill(tmp_path: Path) -> None:
    with pytest.raises(InputError) as missing:
        bill(tmp_path / "none")
    assert missing.value.condition == "NO_STATE"
    with pytest.raises(InputError, match="no engine has run there yet"):
        bill(tmp_path)
    usage_journal(tmp_path).changed(5, usage())
    with pytest.raises(InputError, match="no usage of a second"):
        bill(tmp_path)


SETS = st.dictionaries(st.sampled_from(["a", "b", "c", "a_b", "b_c", "a_b_c"]), st.integers(1, 5), max_size=4)


@given(changes=st.lists(st.tuples(st.integers(0, 500), SETS), min_size=1, max_size=12), crash=st.booleans())
def test_bills_add_up_to_what_the_machine_cost(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, dict[str, int]]], crash: bool
) -> None:
    state = tmp_path_factory.mktemp("state")
    journal = usage_journal(state)
    at_s = 1_000
    for length_s, tasks in changes:
        journal.changed(at_s, usage(**tasks))
        at_s += length_s
    if crash:
        journal.goes_on(at_s)
    else:
        journal.ended(at_s)
    if at_s == 1_000:
        return
    message = bill(state)
    assert sum((line.cost for line in message.lines), message.idle) == message.total
    exact = Fraction(PRICE) * (at_s - 1_000) / 3_600
    assert abs(Fraction(message.total) - exact) <= Fraction(1, 20_000)
    assert of_all_owners(message) == sum((line.cost for line in message.lines), Decimal())


def of_all_owners(message: object) -> Decimal:
    return sum((line.cost for line in message.owners), Decimal())  # type: ignore[attr-defined]


def test_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    journal = usage_journal(tmp_path)
    journal.changed(0, usage(**{f"f{n}": n + 1 for n in range(50)}))
    journal.ended(10_000)
    message = bill(tmp_path)
    assert draw_bill(message, ".png").startswith(b"\x89PNG")
    assert draw_bill(message, ".svg").startswith(b"<?xml")
    with pytest.raises(InputError, match=r"expected \.svg"):
        draw_bill(message, ".gif")
