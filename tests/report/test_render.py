"""One table, every form: what is shown, what fits, and what programs read back."""

from __future__ import annotations

import csv
import io
import json
import math
from decimal import Decimal
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.table import Table, TableColumn
from headgate.report.render import render

COLUMNS = (
    TableColumn("task", "task"),
    TableColumn("rows_in_per_s", "rows in", "rows/s", ",.0f"),
    TableColumn("busy", "busy", form=".0%"),
    TableColumn("why", "reason"),
)
TABLE = Table(
    "By task",
    COLUMNS,
    (
        {"task": "parse", "rows_in_per_s": 12_345.6, "busy": 0.5, "why": "reads <a> | \"b\", 'c'"},
        {"task": "write", "rows_in_per_s": None, "busy": math.nan},
    ),
    ("Measured over 5 s.",),
)


def test_text_shows_numbers_in_their_form_on_the_right_and_unknown_values_as_a_dash() -> None:
    title, head, rule, parse, write, note = render([TABLE]).splitlines()
    assert title == "By task"
    assert head.split() == ["task", "rows", "in", "(rows/s)", "busy", "reason"]
    assert set(rule) == {"-", " "}
    assert parse.index("12,346") + len("12,346") == head.index("(rows/s)") + len("(rows/s)")
    assert "50%" in parse
    assert write.split() == ["write", "-", "-", "-"]
    assert note == "Measured over 5 s."


def test_json_has_plain_values_under_the_title() -> None:
    document = json.loads(render([TABLE], "json"))
    assert document["by_task"][0]["rows_in_per_s"] == 12_345.6
    assert document["by_task"][1] == {"task": "write", "rows_in_per_s": None, "busy": None, "why": None}
    assert document["notes"] == ["Measured over 5 s."]


def test_amounts_lose_no_digit_on_their_way_to_programs() -> None:
    table = Table("Costs", (TableColumn("cost", "cost", form=".2f"),), ({"cost": Decimal("0.12345")},))
    assert json.loads(render([table], "json"))["costs"] == [{"cost": "0.12345"}]
    assert render([table], "csv") == "cost\n0.12345\n"
    assert "0.12\n" in render([table])


def test_csv_is_read_back_by_key() -> None:
    rows = list(csv.DictReader(io.StringIO(render([TABLE], "csv"))))
    assert [row["task"] for row in rows] == ["parse", "write"]
    assert float(rows[0]["rows_in_per_s"]) == 12_345.6
    assert rows[0]["why"] == TABLE.rows[0]["why"]


def test_html_escapes_and_markdown_keeps_its_columns() -> None:
    seen: list[str] = []

    class Reader(HTMLParser):
        def handle_data(self, data: str) -> None:
            seen.append(data)

    Reader().feed(render([TABLE], "html"))
    assert TABLE.rows[0]["why"] in seen
    lines = [line for line in render([TABLE], "markdown").splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in lines} == {5}


def test_a_table_without_rows_says_so() -> None:
    assert render([Table("Workers", COLUMNS, ())]) == "Workers: none\n"
    assert json.loads(render([Table("Workers", COLUMNS, ())], "json")) == {"workers": []}


def test_without_a_width_every_row_is_one_line() -> None:
    long = Table("", (TableColumn("text", "text"),), ({"text": "word " * 100},))
    assert len(render([long]).splitlines()) == 3


def test_control_characters_do_not_reach_the_terminal() -> None:
    table = Table("", (TableColumn("text", "text"),), ({"text": "a\x1b[31mb\nc"},))
    assert "\x1b" not in render([table])
    assert len(render([table]).splitlines()) == 3


@given(st.lists(st.text("abc de", max_size=60), min_size=3, max_size=6), st.integers(40, 200))
def test_text_keeps_to_the_width_and_loses_no_letter(texts: list[str], width: int) -> None:
    columns = tuple(TableColumn(f"c{n}", f"c{n}") for n in range(len(texts)))
    table = Table("", columns, ({f"c{n}": text for n, text in enumerate(texts)},))
    lines = render([table], width=width).splitlines()
    if width >= 26 * len(texts):
        assert max(map(len, lines)) <= width
    body = "".join(lines[lines.index(next(x for x in lines if x and not x.strip("- "))) + 1 :])
    assert sorted(body.replace(" ", "")) == sorted("".join(texts).replace(" ", ""))


@pytest.mark.parametrize("form", ["text", "csv", "markdown", "html"])
def test_every_form_ends_with_a_line_break(form: str) -> None:
    assert render([TABLE, TABLE], form).endswith("\n")  # type: ignore[arg-type]
