"""The bill of a state directory: what each dataflow and owner pays for as long as an engine has run there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from headgate.billing.bill import Bill, draw_up
from headgate.billing.export import bill_of, to_csv, to_dict, to_focus, to_json
from headgate.billing.journal import read_usage
from headgate.billing.lifecycle import BEGUN_SECONDS, charged
from headgate.billing.usage import Prices
from headgate.errors import BadValue, InputError, unknown
from headgate.model.cluster.vm_class import BillingPeriod

__all__ = ["EXPORTS", "UNIT", "BillSpan", "bill", "bill_facts", "bill_of", "bill_span", "of_owner"]

UNIT = Decimal("0.0001")
"""Bills are rounded to hundredths of a cent: much of what runs costs less than a cent an hour."""

WHOLE_MACHINE = 1_000_000

EXPORTS = {"csv": to_csv, "json": to_json, "focus": to_focus}
"""Files for other programs, by format."""


@dataclass(frozen=True, slots=True)
class BillSpan:
    """Which time is billed, in seconds since 1970, and how machines of a provider are charged."""

    since: float = 0.0
    until: float | None = None
    period: BillingPeriod = BEGUN_SECONDS


ALL = BillSpan()


def bill(state: Path, span: BillSpan = ALL) -> Bill:
    """Draw up the bill from the record of usage, whether or not an engine is running there now.

    What a dataflow would have paid alone is the price of a machine of its own for as long as it ran; with machines of a
    provider, that of those which its tasks would have needed.
    """
    if not state.is_dir():
        message = f"{state} is not a state directory; name the one of your engine with --state"
        raise InputError("NO_STATE", message)
    record = read_usage(state)
    if not record.intervals:
        message = f"{state} has no usage of a second or more yet; bills count whole seconds"
        raise InputError("NOTHING_TO_BILL", message)
    until = record.until if span.until is None else min(span.until, record.until)
    intervals = [one for each in record.intervals if (one := each.within(span.since, until)) is not None]
    if not intervals:
        raise InputError("NOTHING_TO_BILL", f"{state} has no usage in the time that is asked for")
    charges = charged(record.machines, record.intervals, span.since, until, span.period)
    prices = Prices(record.price_per_h, tasks_per_worker=WHOLE_MACHINE, currency=record.currency)
    return draw_up(intervals, record.customers, prices, UNIT, charges)


def bill_span(since: float | None = None, until: float | None = None, period_s: float | None = None) -> BillSpan:
    """Which time is billed; raises :class:`InputError` for one that there cannot be."""
    if since is not None and until is not None and until <= since:
        raise InputError("BAD_PERIOD", "the time that is billed ends before it begins")
    try:
        period = BEGUN_SECONDS if period_s is None else BillingPeriod(period_s)
    except BadValue as error:
        raise InputError("BAD_PERIOD", f"{error}; expected {error.expected}") from None
    # Usage is known by the second.
    return BillSpan(float(int(since or 0.0)), None if until is None else float(int(until)), period)


def of_owner(whole: Bill, owner: str) -> Bill:
    """The part of a bill that one owner pays."""
    lines = tuple(line for line in whole.lines if line.owner == owner)
    if not lines:
        owners = [line.owner for line in whole.owners]
        raise unknown("UNKNOWN_OWNER", f"no dataflow of owner '{owner}' has run", owner, owners)
    return replace(whole, lines=lines, idle=Decimal("0.0000"), total=sum((x.cost for x in lines), Decimal()))


def bill_facts(state: Path, owner: str | None = None, span: BillSpan = ALL) -> dict[str, Any]:
    """The bill of a state directory, or of one owner, as plain values."""
    whole = bill(state, span)
    return to_dict(whole if owner is None else of_owner(whole, owner))
