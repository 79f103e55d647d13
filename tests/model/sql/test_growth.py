"""Texts that are put together with themselves: refused before they fill Spark's memory."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from headgate.documents import parse
from headgate.errors import InvalidDataflow


def chain(*expressions: str) -> str:
    columns = "k string, xs array<string>"
    tasks: list[dict[str, Any]] = [{"id": "in", "type": "read_files", "config": {"path": "in", "columns": columns}}]
    for number, text in enumerate(expressions):
        tasks.append({"id": f"d{number}", "type": "derive", "config": {"columns": {"k": text}}})
    for before, task in pairwise(tasks):
        task["inputs"] = [before["id"]]
    return json.dumps({"name": "grows", "tasks": tasks})


@pytest.mark.parametrize(
    "text",
    [
        chain(*["concat(k, k)"] * 10),
        chain(*["k || '-' || k"] * 12),
        chain(*["replace(k, 'a', k)"] * 11),
        chain("aggregate(xs, k, (a, x) -> concat(a, a))"),
    ],
)
def test_what_repeats_itself_is_refused(text: str) -> None:
    with pytest.raises(InvalidDataflow, match="column 'k' would repeat what comes in"):
        parse(text, "json")


@pytest.mark.parametrize(
    "text",
    [
        chain(*["concat(k, k)"] * 9),
        chain(*["concat(k, '-', upper(xs[0]))"] * 200),
        chain("aggregate(xs, k, (a, x) -> concat(a, x))"),
        chain(*["case when length(k) > 3 then k else lower(k) end"] * 60),
        chain(*["substr(k, 1, length(k) - length(k) % 2)"] * 60),
    ],
)
def test_what_does_not_is_fine(text: str) -> None:
    assert parse(text, "json").dataflow.tasks
