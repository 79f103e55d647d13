"""A bill for people: what each pays, what was idle, and the sum."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from headgate.billing.bill import draw_up
from headgate.billing.usage import Customer, Interval, Prices, VmUsage, WorkerUsage
from headgate.model.names import DataflowName, Owner
from headgate.report.bill import bill_tables
from headgate.report.render import render

ALARMS, ARCHIVE = DataflowName("alarms"), DataflowName("archive")


def test_a_bill_as_text() -> None:
    shared = WorkerUsage({"t": (ALARMS,), "u": (ALARMS, ARCHIVE)})
    machines = (VmUsage("v", Decimal("0.50"), (shared,)), VmUsage("w", Decimal("0.25")))
    customers = [Customer(ALARMS, Owner("ana"), 2), Customer(ARCHIVE, Owner("ben"), 1)]
    start = datetime(2026, 11, 1, tzinfo=UTC)
    bill = draw_up([Interval(start, 3600, machines)], customers, Prices(Decimal("0.50")))
    assert render(bill_tables(bill)) == (
        "By dataflow, 2026-11-01T00:00:00Z to 2026-11-01T01:00:00Z, in USD\n"
        "dataflow  owner  hours  cost  alone  saved\n"
        "--------  -----  -----  ----  -----  -----\n"
        "alarms    ana     1.00  0.38   0.50   0.12\n"
        "archive   ben     1.00  0.12   0.50   0.38\n"
        "\n"
        "By owner\n"
        "owner  dataflows  cost  alone  saved\n"
        "-----  ---------  ----  -----  -----\n"
        "ana            1  0.38   0.50   0.12\n"
        "ben            1  0.12   0.50   0.38\n"
        "Idle machines: 0.25 USD\n"
        "Total: 0.75 USD\n"
    )
