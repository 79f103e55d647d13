"""The keyed host: one stateful Spark operator that does the work of any number of keyed tasks.

All that the hosted tasks remember of a key is one value in Spark's state store, with an entry for each task. A row says
by its snapshot number which tasks there are, so the set changes between two rows, without a restart. The host passes
each row on with the results of all tasks as one array, in the order in which the plan lists them.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
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
    rows = rows.select(*(quoted(name) for name in rows.columns if name != ORDER), ORDER)
    schema = StructType(rows.schema.fields[:-1]).add(RESULTS, ArrayType(DoubleType()))
    processor = _Host(host_id, str(plans), rows.columns)
    grouped = rows.groupBy(*(quoted(name) for name in key))
    return grouped.transformWithState(processor, schema, "append", "none")


@dataclass(frozen=True, slots=True)
class _Hosted:
    """A hosted task: where its entry in a key's state is, and what it does."""

    life: str
    alternate: str
    step: Step


@lru_cache(maxsize=256)
def _hosted(plans: str, number: int, host_id: str, names: tuple[str, ...]) -> tuple[_Hosted, ...]:
    """The tasks that a plan hosts."""
    from headgate.model.registry import default_registry

    registry = default_registry()
    found = read_json(Path(plans) / f"{number}.json")
    if found is None:
        raise RuntimeError(f"plan {number} is not in {plans}")
    hosted = []
    for task in found.get(host_id, []):
        options: Any = registry[task["type"]].config.model_validate(task["config"])
        hosted.append(_Hosted(task["life"], task["alternate"], step_of(options, names)))
    return tuple(hosted)


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
        self.visible = self.names[: self.order]

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = handle.getValueState("tasks", "entries binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:
        del key, timerValues
        stored = self.state.get()
        lives: dict[str, dict[str, Any]] = pickle.loads(stored[0]) if stored is not None else {}
        hosted: tuple[_Hosted, ...] = ()
        last = None
        results: list[Any] = []
        # Rows of one key come in any order out of a shuffle, and what a task remembers depends on their order.
        for row in sorted(rows, key=self._place):
            number = row[self.snapshot]
            if number != last:
                last, hosted = number, _hosted(self.plans, number, self.host_id, self.names)
                # What tasks remembered that are gone is forgotten; an alternate that rests keeps what it knows.
                lives = {task.life: lives.get(task.life, {}) for task in hosted}
            made = []
            for task in hosted:
                entries = lives[task.life]
                entries[task.alternate], result = task.step(entries.get(task.alternate), row)
                made.append(result)
            out = _Result(zip(self.visible, row, strict=False))
            out[RESULTS] = made
            results.append(out)
        self.state.update((pickle.dumps(lives, 5),))
        return iter(results)

    def _place(self, row: Row) -> int:
        return int(row[self.order])

    def close(self) -> None:
        pass
