"""Who looks at a task sees rows that it makes, while it looks, and disturbs nobody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import InputError
from headgate.runtime.engine.engine import Engine
from tests.runtime.small import files, flow, memory, multiset, numbered, put, wait_for

pytestmark = pytest.mark.spark


def test_some_rows_of_each_kind_of_task(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    count = {"type": "count", "config": {"key": ["k"], "into": "n"}}
    double = {"type": "derive", "config": {"columns": {"w": "v * 2"}}}
    engine.submit(flow("a", files(tmp_path / "in", files_per_batch=1), double, count, memory("a")))
    seen: dict[str, list[dict[str, Any]]] = {name: [] for name in ("t0", "t1", "t2", "t3")}

    def viewer(name: str) -> Any:
        return lambda rows: seen[name].extend(json.loads(row) for row in rows)

    leaving = [engine.tail("a", name, viewer(name)) for name in seen]
    number = 0

    def all_seen() -> bool:
        nonlocal number
        put(tmp_path / "in", str(number), numbered(number * 10, 10))
        number += 1
        engine.wait_until_idle()
        engine.background.wait_until_idle()
        return all(seen.values())

    wait_for(all_seen, "rows of every task")
    for leave in leaving:
        leave()
    rows = {row["id"]: row for row in engine.memory.rows("a")}
    assert sorted(rows) == list(range(number * 10)), "nobody lost a row, and nobody got one twice"
    for name, columns in {"t0": "id k v", "t1": "id k v w", "t2": "id k v w n", "t3": "id k v w n"}.items():
        assert set(seen[name][0]) == set(columns.split())
        made = [{column: rows[row["id"]][column] for column in columns.split()} for row in seen[name]]
        assert multiset(seen[name]) == multiset(made), name
    assert engine.tails.due(list(engine.plan.tasks)) == []
    with pytest.raises(InputError, match="no task 't9'"):
        engine.tail("a", "t9", print)
