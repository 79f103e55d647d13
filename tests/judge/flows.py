"""The dataflows that are judged, and what each of their sinks must hold, computed with plain Python.

Every dataflow reads one folder and keeps rows with ``v > 0``. It has some of these outputs, all of which carry a label,
so that a row says under which version of its dataflow it was made:

- ``rows``: the rows themselves (stateless)
- ``counts``: a running count of each ``k`` (keyed, shared by all dataflows that have it)
- ``own``: a running count of each ``text`` (keyed, of one dataflow only)
- ``firsts``: the first row of each ``text`` (keyed: order decides which)
- ``windows``: rows and sum by ``k`` in tumbling windows of ten seconds of event time
- ``alternate``: rows, labelled by the alternate that made them
- ``sifted``: rows for which a task does not raise; the others are dead letters
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.judge.history import Row

__all__ = ["ALTERNATES", "COLUMNS", "Flow", "expected_values", "expected_windows", "passes"]

COLUMNS = "id bigint, k string, v double, at timestamp, text string"
ALTERNATES = ("a", "b")
WINDOW_S = 10
SIFTED = 45.0
"""Above this, the task of ``sifted`` raises."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A dataflow: its name and owner, its outputs, and the label of its rows."""

    name: str
    owner: str
    outputs: tuple[str, ...]
    label: str
    start: str = ""

    def sink(self, folder: Path, output: str) -> Path:
        """Where the rows of an output are."""
        return folder / "out" / self.name / output

    def document(self, folder: Path) -> dict[str, Any]:
        """The dataflow as it is submitted."""
        tasks: list[dict[str, Any]] = [
            {"id": "read", "type": "read_files", "config": {"path": str(folder / "in"), "columns": COLUMNS}},
            {"id": "clean", "type": "filter", "config": {"where": "v > 0"}, "inputs": ["read"]},
        ]
        for output in self.outputs:
            tasks += self._tasks(output)
            path = str(self.sink(folder, output))
            last = {"id": f"write_{output}", "type": "write_files", "config": {"path": path}}
            tasks.append({**last, "inputs": [tasks[-1]["id"]]})
        begins = {"start": self.start} if self.start else {}
        return {"name": self.name, "owner": self.owner, **begins, "tasks": tasks}

    def _tasks(self, output: str) -> list[dict[str, Any]]:
        if output == "windows":
            columns = {"n": "count(*)", "s": "sum(v)", "last": "max(id)"}
            window = {"time": "at", "size": f"{WINDOW_S}s", "key": ["k"], "columns": columns, "late_by": "1min"}
            return [{"id": "windows", "type": "window", "config": window, "inputs": ["clean"]}]
        if output == "alternate":
            config = {name: {"columns": {"label": f"'{name}'"}} for name in ALTERNATES}
            made = [{"name": n, "type": "derive", "config": config[n], "value": 1} for n in ALTERNATES]
            return [{"id": "alternate", "inputs": ["clean"], "alternates": made}]
        if output == "sifted":
            columns = {"share": f"1 / (case when v > {SIFTED} then 0 else 1 end)"}
            return [
                {
                    "id": "sifted",
                    "type": "derive",
                    "config": {"columns": columns},
                    "inputs": ["clean"],
                    "on_error": "dead_letter",
                }
            ]
        before = {
            "rows": [],
            "counts": [{"id": "counts", "type": "count", "config": {"key": ["k"], "into": "n"}}],
            "own": [{"id": "own", "type": "count", "config": {"key": ["text"], "into": f"n_{self.name}"}}],
            "firsts": [{"id": "firsts", "type": "dedup", "config": {"key": ["text"]}}],
        }[output]
        label = {"id": f"label_{output}", "type": "derive", "config": {"columns": {"label": f"'{self.label}'"}}}
        chain = [*before, label]
        inputs = ["clean", *(task["id"] for task in chain[:-1])]
        return [{**task, "inputs": [read]} for task, read in zip(chain, inputs, strict=True)]


def passes(row: Row) -> bool:
    """Whether a row passes the filter that all dataflows have."""
    return bool(row["v"] > 0)


def expected_values(output: str, rows: Sequence[Row]) -> dict[int, int | None]:
    """By id, the value that an output adds to each of some rows in order; rows that it leaves out are not there."""
    if output in ("counts", "own"):
        key = "k" if output == "counts" else "text"
        seen: Counter[str] = Counter()
        values: dict[int, int | None] = {}
        for row in rows:
            seen[row[key]] += 1
            values[row["id"]] = seen[row[key]]
        return values
    if output == "sifted":
        return {row["id"]: None for row in rows if row["v"] <= SIFTED}
    if output == "firsts":
        first: dict[str, int] = {}
        for row in rows:
            first.setdefault(row["text"], row["id"])
        return dict.fromkeys(first.values())
    return {row["id"]: None for row in rows}


def expected_windows(rows: Iterable[Row]) -> Mapping[tuple[str, int], tuple[int, float]]:
    """Rows and sum of each key and window."""
    windows: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    for row in rows:
        second = int(datetime.fromisoformat(row["at"]).timestamp())
        windows[row["k"], second - second % WINDOW_S].append(row["v"])
    return {at: (len(values), sum(values)) for at, values in windows.items()}
