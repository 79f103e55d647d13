"""``headgate policy``, ``decisions`` and ``why``: how an engine decides by itself, and for what reasons."""

from __future__ import annotations

import time
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli.engine import ask
from headgate.cli.output import AsCsv, AsJson, State, print_answer, seconds
from headgate.errors import InputError, shorten

__all__ = ["Mode", "amount_or_none", "decisions", "policy", "why"]


class Mode(StrEnum):
    """Whether an engine decides by itself."""

    OFF = "off"
    RECOMMEND = "recommend"
    AUTO = "auto"


def policy(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The policy that is to decide.")] = None,
    mode: Annotated[Mode | None, typer.Option("--mode", help="off, recommend (do nothing) or auto.")] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="AMOUNT", help="What machines may cost an hour, or none.")
    ] = None,
    machines: Annotated[
        str | None, typer.Option("--max-machines", metavar="COUNT", help="Machines at most, or none.")
    ] = None,
    state: State = Path(".headgate"),
    as_json: AsJson = False,
) -> None:
    """Show which policy decides for a running engine and what it thought last, or choose another.

    What is not named stays as it is. The choice outlives the engine.

    Example: [bold]headgate policy threshold --mode auto --budget 0.40 --max-machines 4[/bold]
    """
    from headgate.service.decisions import policy_tables

    changes: dict[str, Any] = {"policy": name, "mode": None if mode is None else mode.value}
    changes = {key: value for key, value in changes.items() if value is not None}
    if budget is not None:
        limit = amount_or_none("--budget", budget)
        changes["budget_per_h"] = None if limit is None else str(limit)
    if machines is not None:
        changes["machines_max"] = _count("--max-machines", machines)
    if changes:
        chosen = ask(state, lambda client: client.choose_policy(changes), "choosing")
        if as_json:
            print_answer(chosen, (), as_json)
            return
    answer = ask(state, lambda client: client.policy(), "asking")
    print_answer(answer, policy_tables(answer), as_json)


def decisions(
    since: Annotated[
        str | None, typer.Option("--since", metavar="SPAN", help="Only those of the last time, such as 2h or 1d.")
    ] = None,
    state: State = Path(".headgate"),
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show what a running engine has decided by itself, and what became of it.

    Example: [bold]headgate decisions --since 2h[/bold]
    """
    from headgate.service.decisions import decisions_table

    begin = 0.0 if since is None else time.time() - seconds("--since", since)
    answer = ask(state, lambda client: client.decisions(begin), "asking")
    print_answer(answer, [decisions_table(answer)], as_json, as_csv)


def why(
    number: Annotated[int, typer.Argument(metavar="DECISION", help="A number that 'decisions' shows.", min=1)],
    again: Annotated[bool, typer.Option("--again", help="Make it again from its record, and compare.")] = False,
    state: State = Path(".headgate"),
    as_json: AsJson = False,
) -> None:
    """Show why something was decided: what was seen, what was weighed, each step, and what came of it.

    Example: [bold]headgate why 12 --again[/bold]
    """
    from headgate.service.decisions import why_tables

    answer = ask(state, lambda client: client.why(number, again=again), "asking")
    print_answer(answer, why_tables(answer), as_json)


def amount_or_none(option: str, text: str) -> Decimal | None:
    """An amount of money; nothing for the word none."""
    if text == "none":
        return None
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or not 0 <= amount <= 1_000_000:
        raise InputError("BAD_PRICE", f"{option} is {shorten(text)}: expected an amount such as 0.40, or none")
    return amount


def _count(option: str, text: str) -> int | None:
    if text == "none":
        return None
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= 100_000):
        raise InputError("BAD_NUMBER", f"{option} is {shorten(text)}: expected a whole number from 1 on, or none")
    return int(text)
