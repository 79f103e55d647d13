"""Tables as text, JSON, CSV, HTML or Markdown."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from html import escape
from itertools import islice
from typing import Any, Literal

from headgate.errors import printable
from headgate.model.table import Table, TableColumn

__all__ = ["TableForm", "as_document", "render"]

TableForm = Literal["text", "json", "csv", "html", "markdown"]

LONGEST_WORDS = (24, 8)
"""Words longer than this may be broken where a table has to be narrow; shorter ones only if nothing else fits."""

GAP = "  "

MOST_LISTED = 8
"""People see so many items of a list, and how many more there are; programs get all of them."""


def render(tables: Sequence[Table], form: TableForm = "text", width: int | None = None) -> str:
    """Render tables, ending with a line break. ``width`` limits the lines of text; without it lines are never wrapped.

    >>> columns = (TableColumn("task", "task"), TableColumn("rate_per_s", "rate", "rows/s", ",.0f"))
    >>> rows = ({"task": "parse", "rate_per_s": 1250.2}, {"task": "write", "rate_per_s": None})
    >>> print(render([Table("Tasks", columns, rows, ("Measured over 5 s.",))]), end="")
    Tasks
    task   rate (rows/s)
    -----  -------------
    parse          1,250
    write              -
    Measured over 5 s.
    """
    if form == "json":
        return json.dumps(as_document(tables), ensure_ascii=False) + "\n"
    if form == "csv":
        return "\n".join(_csv(table) for table in tables)
    for_people = [table for table in tables if _shown(table)]
    if form == "html":
        return "".join(map(_html, for_people))
    if form == "markdown":
        return "\n".join(map(_markdown, for_people))
    return "\n".join(_text(table, width) for table in for_people)


def as_document(tables: Sequence[Table]) -> dict[str, Any]:
    """Tables as one JSON object: the rows of each under its title, and all notes.

    >>> as_document([Table("By owner", (TableColumn("owner", "owner"),), ({"owner": "ana"},))])
    {'by_owner': [{'owner': 'ana'}]}
    """
    document: dict[str, Any] = {}
    for table in tables:
        rows = [{column.key: plain(row.get(column.key)) for column in table.columns} for row in table.rows]
        document.setdefault(re.sub(r"\W+", "_", table.title.lower()).strip("_"), []).extend(rows)
    notes = [note for table in tables for note in table.notes]
    return {**document, "notes": notes} if notes else document


def plain(value: object) -> Any:
    """A value as JSON can hold it; what is not a finite number is unknown."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    return str(value)


def cell(value: object, form: str = "") -> str:
    """A value for people.

    >>> cell(0.1234, ".1%"), cell(None), cell(True), cell(("a", "b"))
    ('12.3%', '-', 'yes', 'a, b')
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        value = [f"{key} {cell(each, form)}" for key, each in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        shown = ", ".join(cell(each, form) for each in islice(value, MOST_LISTED))
        return f"{shown} and {len(value) - MOST_LISTED} more" if len(value) > MOST_LISTED else shown or "-"
    if isinstance(value, int | float | Decimal):
        return format(value, form)
    return printable(str(value))


def _text(table: Table, width: int | None) -> str:
    title = [table.title] if table.title else []
    if not table.rows:
        title = [f"{table.title}: none" if table.title else "none"]
    body = _lines(table, width) if table.rows else []
    notes = [line for note in table.notes for line in _wrapped(printable(note), width)]
    return "\n".join([*title, *body, *notes]) + "\n"


def _lines(table: Table, width: int | None) -> list[str]:
    """Head, rule and rows; columns without any value are left out.

    Headings wrap between words, and long texts wrap where the width asks for it.
    """
    named = _shown(table)
    columns = [x for x in named if any(_has_value(row.get(x.key)) for row in table.rows)] or named
    cells = [[cell(row.get(column.key), column.form) for column in columns] for row in table.rows]
    right = [_is_number(table, column) for column in columns]
    heads = [column.heading for column in columns]
    widths = _widths(heads, cells, right, width)
    rule = GAP.join("-" * each for each in widths).rstrip()
    head = _row(heads, widths, right)
    return [*head, rule, *(line for row in cells for line in _row(row, widths, right))]


def _shown(table: Table) -> tuple[TableColumn, ...]:
    """The columns for people: those that have a title."""
    return tuple(column for column in table.columns if column.title)


def _has_value(value: object) -> bool:
    return value is not None and (bool(value) or not isinstance(value, str | list | tuple))


def _is_number(table: Table, column: TableColumn) -> bool:
    values = [row.get(column.key) for row in table.rows]
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(v, int | float | Decimal) and not isinstance(v, bool) for v in known)


def _widths(heads: list[str], cells: list[list[str]], right: list[bool], width: int | None) -> list[int]:
    longest = [max(map(len, column)) for column in zip(*cells, strict=True)]
    widths = [max(len(head), most) for head, most in zip(heads, longest, strict=True)]
    if width is None:
        return widths
    room = width - len(GAP) * (len(widths) - 1)
    words = [_longest_word([head]) for head in heads]
    for breakable in LONGEST_WORDS:
        least = [
            max(word, most if number else min(_longest_word(column), breakable))
            for word, most, number, column in zip(words, longest, right, zip(*cells, strict=True), strict=True)
        ]
        if sum(least) <= room:
            break
    while sum(widths) > room:
        spare = [have - need for have, need in zip(widths, least, strict=True)]
        if max(spare) <= 0:
            return widths
        # Headings give way first: they wrap between words and cost one line in all.
        place = max(range(len(widths)), key=lambda i: (spare[i] > 0, widths[i] > longest[i], widths[i]))
        widths[place] -= 1
    return widths


def _longest_word(texts: Iterable[str]) -> int:
    return max((len(word) for text in texts for word in text.split()), default=0)


def _row(cells: list[str], widths: list[int], right: list[bool]) -> list[str]:
    parts = [_wrapped(text, width) for text, width in zip(cells, widths, strict=True)]
    height = max(map(len, parts))
    padded = [[*part, *[""] * (height - len(part))] for part in parts]
    return [
        GAP.join(
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in zip(*padded, strict=True)
    ]


def _wrapped(text: str, width: int | None) -> list[str]:
    return [text] if width is None or len(text) <= width else textwrap.wrap(text, width) or [""]


def _csv(table: Table) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.key for column in table.columns])
    writer.writerows([[_csv_value(row.get(column.key)) for column in table.columns] for row in table.rows])
    return text.getvalue()


def _csv_value(value: object) -> Any:
    known = plain(value)
    return json.dumps(known, ensure_ascii=False) if isinstance(known, list | dict) else known


def _html(table: Table) -> str:
    head = "".join(f"<th>{escape(column.heading)}</th>" for column in _shown(table))
    numbers = [_is_number(table, column) for column in _shown(table)]
    rows = "".join(f"<tr>{_html_cells(table, row, numbers)}</tr>\n" for row in table.rows)
    caption = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    notes = "".join(f"<p>{escape(note)}</p>\n" for note in table.notes)
    return f"<table>{caption}<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table>\n{notes}"


def _html_cells(table: Table, row: Mapping[str, object], numbers: Sequence[bool]) -> str:
    cells = [escape(cell(row.get(column.key), column.form)) for column in _shown(table)]
    kinds = [' class="number"' if number else "" for number in numbers]
    return "".join(f"<td{kind}>{text}</td>" for kind, text in zip(kinds, cells, strict=True))


def _markdown(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(each.replace("|", "\\|") for each in cells) + " |\n"

    title = f"**{table.title}**\n\n" if table.title else ""
    columns = _shown(table)
    rules = line(["---:" if _is_number(table, column) else "---" for column in columns])
    rows = "".join(line([cell(row.get(column.key), column.form) for column in columns]) for row in table.rows)
    notes = "".join(f"\n{note}\n" for note in table.notes)
    return title + line([column.heading for column in columns]) + rules + rows + notes
