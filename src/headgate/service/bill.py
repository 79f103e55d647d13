"""The bill of a state directory: what each dataflow and owner pays for as long as an engine has run there."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from headgate.billing.bill import Bill, draw_up
from headgate.billing.export import bill_of, to_csv, to_dict, to_focus, to_json
from headgate.billing.journal import read_usage
from headgate.billing.usage import Prices
from headgate.errors import InputError, unknown

__all__ = ["EXPORTS", "UNIT", "bill", "bill_facts", "bill_of", "of_owner"]

UNIT = Decimal("0.0001")
"""Bills are rounded to hundredths of a cent: much of what runs costs less than a cent an hour."""

WHOLE_MACHINE = 1_000_000

EXPORTS = {"csv": to_csv, "json": to_json, "focus": to_focus}
"""Files for other programs, by format."""


def bill(state: Path) -> Bill:
    """Draw up the bill from the record of usage, whether or not an engine is running there now.

    What a dataflow would have paid alone is the price of a machine of its own for as long as it ran.
    """
    if not state.is_dir():
        message = f"{state} is not a state directory; name the one of your engine with --state"
        raise InputError("NO_STATE", message)
    record = read_usage(state)
    if not record.intervals:
        message = f"{state} has no usage of a second or more yet; bills count whole seconds"
        raise InputError("NOTHING_TO_BILL", message)
    prices = Prices(record.price_per_h, tasks_per_worker=WHOLE_MACHINE, currency=record.currency)
    return draw_up(record.intervals, record.customers, prices, UNIT)


def of_owner(whole: Bill, owner: str) -> Bill:
    """The part of a bill that one owner pays."""
    lines = tuple(line for line in whole.lines if line.owner == owner)
    if not lines:
        owners = [line.owner for line in whole.owners]
        raise unknown("UNKNOWN_OWNER", f"no dataflow of owner '{owner}' has run", owner, owners)
    return replace(whole, lines=lines, idle=Decimal("0.0000"), total=sum((x.cost for x in lines), Decimal()))


def bill_facts(state: Path, owner: str | None = None) -> dict[str, Any]:
    """The bill of a state directory, or of one owner, as plain values."""
    whole = bill(state)
    return to_dict(whole if owner is None else of_owner(whole, owner))
