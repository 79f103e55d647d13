"""Bills as CSV, JSON, and in the columns of FOCUS, which the FinOps Foundation keeps for cost and usage data."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from headgate.billing.bill import Bill, Line
from headgate.model.names import DataflowName, Owner
from headgate.model.table import Table, TableColumn

__all__ = ["FOCUS_COLUMNS", "bill_of", "iso_time", "to_csv", "to_dict", "to_focus", "to_json"]

FOCUS_COLUMNS = (
    *("BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd"),
    *("BillingPeriodStart", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency"),
    *("ChargePeriodEnd", "ChargePeriodStart", "ConsumedQuantity", "ConsumedUnit", "ContractedCost"),
    *("EffectiveCost", "InvoiceIssuerName", "ListCost", "PricingQuantity", "PricingUnit", "ProviderName"),
    *("PublisherName", "ResourceId", "ResourceName", "ResourceType", "ServiceCategory", "ServiceName"),
    *("SubAccountId", "SubAccountName", "Tags"),
)
"""Columns of FOCUS 1.2, in alphabetical order; those that a bill has nothing to say to are left out."""


def _amount(name: str) -> TableColumn:
    return TableColumn(name, of=lambda line: str(getattr(line, name)))


_AMOUNTS = tuple(map(_amount, ("cost", "alone", "saved")))
_LINE = (
    *(TableColumn(name) for name in ("dataflow", "owner", "tasks")),
    TableColumn("hours", of=lambda line: round(float(line.hours), 6)),
    *_AMOUNTS,
    _amount("unused"),
)
_OWNER = (TableColumn("owner"), TableColumn("dataflows"), *_AMOUNTS)


def to_dict(bill: Bill) -> dict[str, Any]:
    """The bill for ``--json``; amounts are texts, so that no digit is lost."""
    return {
        "start": iso_time(bill.start),
        "end": iso_time(bill.end),
        "currency": bill.currency,
        "dataflows": list(Table.of("", _LINE, bill.lines).rows),
        "owners": list(Table.of("", _OWNER, bill.owners).rows),
        "idle": str(bill.idle),
        "total": str(bill.total),
    }


def bill_of(facts: Mapping[str, Any]) -> Bill:
    """The bill that :func:`to_dict` has written."""
    lines = (
        Line(
            DataflowName(line["dataflow"]),
            Owner(line["owner"]),
            line["tasks"],
            Fraction(line["hours"]).limit_denominator(1_000_000),
            Decimal(line["cost"]),
            Decimal(line["alone"]),
            Decimal(line["unused"]),
        )
        for line in facts["dataflows"]
    )
    start, end = (datetime.fromisoformat(facts[name]) for name in ("start", "end"))
    return Bill(start, end, facts["currency"], tuple(lines), Decimal(facts["idle"]), Decimal(facts["total"]))


def to_json(bill: Bill) -> str:
    return json.dumps(to_dict(bill), indent=2, ensure_ascii=False) + "\n"


def to_csv(bill: Bill) -> str:
    """A row for each dataflow, and one for what was idle, whose dataflow and owner are empty."""
    whole = to_dict(bill)
    every = {name: whole[name] for name in ("start", "end", "currency")}
    rows = [*whole["dataflows"], {"cost": bill.idle}]
    return _csv(["start", "end", *(column.key for column in _LINE), "currency"], [every | row for row in rows])


def to_focus(bill: Bill, provider: str = "Headgate") -> str:
    """The bill as CSV with the columns of FOCUS: the owner is the sub-account, the dataflow the resource.

    ``ListCost`` is what the dataflow would have cost alone, so that list minus billed is what sharing has saved.
    """
    rows = [
        _focus(bill, provider, line.cost, line.alone)
        | {
            "ChargeDescription": f"Dataflow {line.dataflow}: its share of machines that it shared",
            "ConsumedQuantity": _plain(line.hours),
            "PricingQuantity": _plain(line.hours),
            "ResourceId": line.dataflow,
            "ResourceName": line.dataflow,
            "SubAccountId": line.owner,
            "SubAccountName": line.owner,
            "Tags": json.dumps({"tasks": str(line.tasks)}),
        }
        for line in bill.lines
    ]
    idle = _focus(bill, provider, bill.idle, bill.idle) | {"ChargeDescription": "Idle machines, which no dataflow used"}
    return _csv(FOCUS_COLUMNS, [*rows, idle])


def _focus(bill: Bill, provider: str, cost: Decimal, list_cost: Decimal) -> dict[str, Any]:
    return {
        "BilledCost": cost,
        "BillingAccountId": provider.lower(),
        "BillingAccountName": provider,
        "BillingCurrency": bill.currency,
        "BillingPeriodEnd": iso_time(bill.end),
        "BillingPeriodStart": iso_time(bill.start),
        "ChargeCategory": "Usage",
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodEnd": iso_time(bill.end),
        "ChargePeriodStart": iso_time(bill.start),
        "ConsumedUnit": "Hours",
        "ContractedCost": cost,
        "EffectiveCost": cost,
        "InvoiceIssuerName": provider,
        "ListCost": list_cost,
        "PricingUnit": "Hours",
        "ProviderName": provider,
        "PublisherName": provider,
        "ResourceType": "Dataflow",
        "ServiceCategory": "Analytics",
        "ServiceName": "Streaming dataflows",
    }


def _csv(head: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, head, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _plain(hours: Any) -> str:
    return f"{float(hours):.6f}".rstrip("0").rstrip(".")


def iso_time(moment: datetime) -> str:
    """A time as ISO 8601 in UTC.

    >>> iso_time(datetime(2026, 11, 1))
    '2026-11-01T00:00:00Z'
    """
    known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return known.astimezone(UTC).isoformat().replace("+00:00", "Z")
