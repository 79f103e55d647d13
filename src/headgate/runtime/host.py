"""The keyed host: one stateful Spark operator that does the work of any number of keyed tasks.

All that the hosted tasks remember of a key is one value in Spark's state store, with an entry for each task. A row says
by its snapshot number which tasks there are, so the set changes between two rows, without a restart. The host passes
each row on with the results of all tasks as one array, in the order in which the plan lists them.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import ArrayType, DoubleType, StructType

from headgate.runtime.exchange import ORDER, SNAPSHOT
from headgate.runtime.state import read_json
from headgate.tasks.keyed import Step, step_of
from headgate.tasks.rowwise import quoted

__all__ = ["RESULTS", "host"]

RESULTS = "__results"


def host(rows: DataFrame, key: tuple[str, ...], host_id: str, plans: Path) -> DataFrame:
    """Run a keyed host over the rows of its topics; ``plans`` is the folder of :meth:`Plan.hosts` files."""
    schema = StructType([field for field in rows.schema.fields if field.name != ORDER])
    schema = StructType([*schema.fields]).add(RESULTS, ArrayType(DoubleType()))
    processor = _Host(host_id, str(plans), rows.columns)
    grouped = rows.groupBy(*(quoted(name) for name in key))
    return grouped.transformWithState(processor, schema, "append", "none")


@lru_cache(maxsize=256)
def _hosted(plans: str, number: int, host_id: str, names: tuple[str, ...]) -> list[tuple[str, Step]]:
    """The tasks that a plan hosts: the name of each one's entry in the state, and what it does."""
    from headgate.model.registry import default_registry

    registry = default_registry()
    found = read_json(Path(plans) / f"{number}.json")
    if found is None:
        raise RuntimeError(f"plan {number} is not in {plans}")
    hosted = found.get(host_id, [])
    options: list[Any] = [registry[task["type"]].config.model_validate(task["config"]) for task in hosted]
    return [(task["state"], step_of(made, names)) for task, made in zip(hosted, options, strict=True)]


class _Result(dict[str, Any]):
    """An output row. Spark's worker asks every row for ``asDict``; a dict that gives itself saves a copy a row."""

    def asDict(self, recursive: bool = False) -> dict[str, Any]:
        del recursive
        return self


class _Host(StatefulProcessor):
    def __init__(self, host_id: str, plans: str, names: list[str]) -> None:
        self.host_id = host_id
        self.plans = plans
        self.names = tuple(names)
        self.order = names.index(ORDER)
        self.snapshot = names.index(SNAPSHOT)

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = handle.getValueState("tasks", "entries binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:
        del key, timerValues
        stored = self.state.get()
        entries: dict[str, Any] = pickle.loads(stored[0]) if stored is not None else {}
        visible = [name for name in self.names if name != ORDER]
        places = [position for position, name in enumerate(self.names) if name != ORDER]
        last = -1
        results: list[Any] = []
        # Rows of one key may come in any order out of a shuffle; what a task remembers depends on it.
        for row in sorted(rows, key=lambda row: row[self.order]):
            number = row[self.snapshot]
            if number != last:
                hosted = _hosted(self.plans, number, self.host_id, self.names)
                last = number
            made = []
            for name, step in hosted:
                entries[name], result = step(entries.get(name), row)
                made.append(result)
            out = _Result(zip(visible, [row[position] for position in places], strict=True))
            out[RESULTS] = made
            results.append(out)
        self.state.update((pickle.dumps(entries, 5),))
        return iter(results)

    def close(self) -> None:
        pass
