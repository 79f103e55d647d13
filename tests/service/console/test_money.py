"""Money: a bill opens into lines that add up to it, and a preview says what the bill will be."""

from __future__ import annotations

import time
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.billing.attribution import apportion
from headgate.billing.journal import BilledMachine, Usage, UsageJournal
from headgate.billing.usage import Customer
from headgate.documents import parse
from headgate.errors import InvalidDataflow
from headgate.service.bill import bill
from headgate.service.console.bill_lines import GONE, bill_lines
from headgate.service.console.hourly import MachinePrice, users_of_tasks
from headgate.service.console.preview import PlanPreview, preview, read_text
from headgate.sharing.running import RunningSet
from headgate.store.entries import SnapshotPublished
from headgate.store.journal import Journal, create_journal
from tests.service.console.samples import REGISTRY, TEXT, shared


def usage(running: RunningSet, price: str = "0.37") -> Usage:
    customers = tuple(
        Customer(one.written.name, one.written.owner, len(one.written.tasks)) for one in running.submitted.values()
    )
    return Usage((BilledMachine("local", Decimal(price), dict(users_of_tasks(running, ()))),), customers)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """One dataflow for 1,000 s, then three of them for 2,777 s."""
    create_journal(tmp_path / "journal")
    made = Journal(tmp_path / "journal")
    record, now = UsageJournal(made), int(time.time())
    made.append(SnapshotPublished(1, {}))
    record.changed(now - 3_777, usage(shared(1).running))
    made.append(SnapshotPublished(2, {}))
    record.changed(now - 2_777, usage(shared(3).running))
    record.ended(now)
    return made


def test_lines_add_up_to_the_bill_to_the_last_unit(journal: Journal, tmp_path: Path) -> None:
    whole = bill(tmp_path)
    running = {1: shared(1).running, 2: shared(3).running}
    for line in whole.lines:
        opened = bill_lines(tmp_path, journal, line.dataflow, running.__getitem__)
        assert sum(Decimal(one.cost) for one in opened.lines) == line.cost == Decimal(opened.total)
    assert sum(line.cost for line in whole.lines) + whole.idle == whole.total
    first = bill_lines(tmp_path, journal, "flow0", running.__getitem__)
    costs = {(one.task, len(one.sharers)): float(one.cost) for one in first.lines}
    hour = 0.37 / 3600
    assert costs["part", 1] == pytest.approx(hour * 1_000 / 4, abs=1e-4), "alone: a quarter of the machine"
    assert costs["part", 3] == pytest.approx(hour * 2_777 / 8 / 3, abs=1e-4), "of eight tasks, shared by three"
    assert costs["own", 1] == pytest.approx(hour * (1_000 / 4 + 2_777 / 8), abs=1e-4)


def test_a_bill_opens_also_when_its_snapshots_are_gone(journal: Journal, tmp_path: Path) -> None:
    opened = bill_lines(tmp_path, journal, "flow0", lambda _: RunningSet())
    assert {line.task for line in opened.lines} == {GONE}
    assert sum(Decimal(line.cost) for line in opened.lines) == Decimal(opened.total)


@settings(max_examples=200)
@given(st.lists(st.fractions(0, 10), min_size=1, max_size=12), st.sampled_from([-1, 0, 1]))
def test_parts_add_up_to_an_amount_that_was_rounded_before(parts: list[Fraction], off: int) -> None:
    unit = Decimal("0.0001")
    shares = {str(number): part for number, part in enumerate(parts)}
    floor = sum(parts, Fraction()) // Fraction(unit)
    billed = (floor + max(off, 0)) * unit
    amounts = apportion(shares, unit, billed)
    assert sum(amounts.values()) == billed
    assert all(abs(Fraction(amounts[name]) - shares[name]) <= Fraction(unit) * 2 for name in shares)


def planned(text: str, *, replace: bool = False) -> PlanPreview:
    return preview(
        shared(3),
        7,
        read_text(text, "yaml", REGISTRY),
        replace=replace,
        paused=(),
        prices=([MachinePrice("local", Decimal("0.80"))], "USD"),
        may_see_costs=lambda owner: owner != "team1",
    )


def test_a_preview_says_what_everybody_will_pay() -> None:
    text = TEXT.format(name="flow9", owner="team2", number=11)
    seen = planned(text)
    assert Counter(task.change for task in seen.dataflows[0].tasks) == {"reused": 2, "new": 2}
    assert (seen.tasks_before, seen.tasks_after) == (8, 10)
    bills = {one.dataflow: one for one in seen.bills}
    assert bills["flow0"].before == pytest.approx(0.8 / 8 * (2 + 2 / 3))
    assert bills["flow0"].after == pytest.approx(0.8 / 10 * (2 + 2 / 4))
    assert bills["flow9"].before is None
    assert bills["flow9"].after == pytest.approx(0.8 / 10 * (2 + 2 / 4))
    assert bills["flow9"].alone == pytest.approx(0.8)
    assert (bills["flow1"].before, bills["flow1"].after) == (None, None), "another team's"
    assert seen.total_before == pytest.approx(seen.total_after)


def test_a_preview_of_what_runs_and_of_what_replaces_it() -> None:
    same = planned(TEXT.format(name="flow1", owner="team1", number=3))
    assert same.dataflows[0].change == "unchanged"
    other = planned(TEXT.format(name="flow1", owner="team1", number=5), replace=True)
    assert other.dataflows[0].change == "replaced"
    assert other.tasks_after == 8


def test_faults_have_their_lines() -> None:
    with pytest.raises(InvalidDataflow) as refused:
        read_text(TEXT.format(name="a", owner="b", number=2).replace("type: filter", "type: fliter"), "yaml", REGISTRY)
    assert [fault.place.line for fault in refused.value.faults] == [5, 6]
    assert parse(TEXT.format(name="a", owner="b", number=2), "yaml", REGISTRY).dataflow.name == "a"
