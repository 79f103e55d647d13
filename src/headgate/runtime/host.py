"""The keyed host: one stateful Spark operator that does the work of any number of keyed tasks.

All that the hosted tasks remember of a key is one value in Spark's state store, with an entry for each task. A row says
by its snapshot number which tasks there are, so the set changes between two rows, without a restart. The host passes
each row on with the results of all tasks as one array, in the order in which the plan lists them. A task that raises
for a row remembers what it did before, and the error goes along with the row; what becomes of it the epoch decides.

To Spark, keys come in groups, by their hash; a group's state is a map by key. What Spark's Python worker does once per
group and micro-batch (three calls to the state store, an Arrow batch of results) is so done once for many keys.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import ArrayType, DoubleType, StringType, StructType

from headgate.runtime.exchange import ORDER, SNAPSHOT
from headgate.runtime.pipelined import PipelinedMap
from headgate.runtime.state import read_json
from headgate.runtime.worker import settle
from headgate.tasks.guard import told_of
from headgate.tasks.keyed import Step, Together, hosted_step
from headgate.tasks.rowwise import quoted

__all__ = ["ERRORS", "RESULTS", "TEXTS", "Hosted", "by_key", "groups_for", "host", "stepped"]

RESULTS, TEXTS, ERRORS, GROUP = "__results", "__texts", "__errors", "__group"
"""Columns that a host adds: the results of its tasks that are numbers, those that are texts, and what those that raised
did raise; the latter two are null if there are none."""

KEYS = 1_000
"""Keys whose state is fetched and put back together."""


def groups_for(partitions: int) -> int:
    """Into how many groups keys fall, for a number of shuffle partitions.

    Enough that partitions get about as many each, and that the rows of one group, which the worker holds in memory,
    are a small part of a micro-batch. State is found by its group: a host keeps the number it began with.
    """
    return max(32, 8 * partitions)


def host(rows: DataFrame, key: tuple[str, ...], host_id: str, plans: Path, groups: int) -> DataFrame:
    """Run a keyed host over the rows of its topics; ``plans`` is the folder of :meth:`Plan.hosts` files."""
    names = [name for name in rows.columns if name != ORDER]
    group = f"pmod(xxhash64({', '.join(map(quoted, key))}), {groups})"
    rows = rows.selectExpr(*map(quoted, names), ORDER, f"{group} as {GROUP}")
    schema = StructType(rows.schema.fields[:-2]).add(RESULTS, ArrayType(DoubleType()))
    schema = schema.add(TEXTS, ArrayType(StringType())).add(ERRORS, ArrayType(StringType()))
    processor = _Host(host_id, str(plans), rows.columns, key)
    return rows.groupBy(GROUP).transformWithState(processor, schema, "append", "none")


@dataclass(frozen=True, slots=True)
class Hosted:
    """A hosted task: where its entry in a key's state is, and what it does."""

    life: str
    alternate: str
    step: Step | Together


@lru_cache(maxsize=256)
def _hosted(plans: str, number: int, host_id: str, names: tuple[str, ...]) -> tuple[Hosted, ...]:
    """The tasks that a plan hosts."""
    from headgate.model.registry import default_registry

    registry = default_registry()
    found = read_json(Path(plans) / f"{number}.json")
    if found is None:
        raise RuntimeError(f"plan {number} is not in {plans}")
    hosted = []
    for task in found.get(host_id, []):
        options: Any = registry[task["type"]].config.model_validate(task["config"])
        hosted.append(Hosted(task["life"], task["alternate"], hosted_step(options, names)))
    return tuple(hosted)


class _Result(dict[str, Any]):
    """An output row. Spark's worker asks every row for ``asDict``; a dict that gives itself saves a copy a row."""

    def asDict(self, recursive: bool = False) -> dict[str, Any]:
        del recursive
        return self


class _Host(StatefulProcessor):
    def __init__(self, host_id: str, plans: str, names: list[str], key: tuple[str, ...]) -> None:
        self.host_id = host_id
        self.plans = plans
        self.names = tuple(names)
        self.order = names.index(ORDER)
        self.snapshot = names.index(SNAPSHOT)
        self.visible = self.names[: self.order]
        folded = [name.casefold() for name in names]
        self.key = tuple(folded.index(name.casefold()) for name in key)

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = PipelinedMap(handle.getMapState("tasks", "key string", "entries binary"))

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:
        del key, timerValues
        grouped = by_key(rows, self.key)
        keys = list(grouped)
        for first in range(0, len(keys), KEYS):
            some = keys[first : first + KEYS]
            put = []
            for text, stored in zip(some, self.state.get(some), strict=True):
                mine = grouped.pop(text)
                kept, results = stepped(stored, mine, self.order, self._hosted, self.snapshot, self.visible)
                put.append((text, kept))
                yield from results
            self.state.put(put)

    def _hosted(self, number: int) -> tuple[Hosted, ...]:
        return _hosted(self.plans, number, self.host_id, self.names)

    def close(self) -> None:
        settle()


def by_key(rows: Iterable[Any], key: Sequence[int]) -> dict[str, list[Any]]:
    """Rows by the text of their key, whose columns are at these places."""
    found: dict[str, list[Any]] = {}
    texts: dict[tuple[Any, ...], str] = {}
    at_place = tuple.__getitem__  # a Row's own looks for names first
    for row in rows:
        values = tuple([at_place(row, at) for at in key])
        try:
            text = texts[values]
        except KeyError:
            text = key_text(values)
            # Keys that are equal in Python may not be to Spark: 1 and True, 1 and 1.0.
            if all(value.__class__ is int for value in values):
                texts[values] = text
        except TypeError:
            text = key_text(values)
        found.setdefault(text, []).append(row)
    return found


def stepped(
    stored: bytes | None,
    rows: list[Any],
    order: int,
    hosted_by: Callable[[int], tuple[Hosted, ...]],
    snapshot: int | None,
    visible: Sequence[str],
) -> tuple[bytes, list[Any]]:
    """What is remembered of a key after its rows, and the rows with their results.

    ``order`` and ``snapshot`` are the places of those two columns, and ``hosted_by`` tells the tasks that a snapshot
    has; without snapshots it is asked for number 0.
    """
    lives: dict[str, dict[str, Any]] = pickle.loads(stored) if stored is not None else {}
    results: list[Any] = []
    at_place = tuple.__getitem__  # a Row's own looks for names first
    # Rows of one key come in any order out of a shuffle, and what a task remembers depends on their order.
    ordered = sorted(rows, key=lambda row: at_place(row, order))
    for number, some in [(0, ordered)] if snapshot is None else _runs(ordered, snapshot):
        hosted = hosted_by(number)
        # What tasks remembered that are gone is forgotten; an alternate that rests keeps what it knows.
        lives = {task.life: lives.get(task.life, {}) for task in hosted}
        made: list[list[Any]] = [[None] * len(hosted) for _ in some]
        texts: dict[int, list[str | None]] = {}
        errors: dict[int, list[str | None]] = {}
        for slot, task in enumerate(hosted):
            entries = lives[task.life]
            if isinstance(task.step, Together):
                before = partial(_before, task, stored if not results else pickle.dumps(lives, 5))
                told = _together(task, task.step, entries, some, before)
            else:
                told = _one_by_one(task, entries, some)
            for place, result, error in told:
                if error is not None:
                    errors.setdefault(place, [None] * len(hosted))[slot] = error
                elif result.__class__ is str:
                    texts.setdefault(place, [None] * len(hosted))[slot] = result
                else:
                    made[place][slot] = result
        for place, row in enumerate(some):
            out = _Result(zip(visible, row, strict=False))
            out[RESULTS], out[TEXTS], out[ERRORS] = made[place], texts.get(place), errors.get(place)
            results.append(out)
    return pickle.dumps(lives, 5), results


def _runs(rows: list[Any], snapshot: int) -> Iterator[tuple[int, list[Any]]]:
    """Rows that belong to one snapshot, together."""
    at_place = tuple.__getitem__
    numbers = [at_place(row, snapshot) for row in rows]
    if numbers.count(numbers[0]) == len(numbers):
        yield numbers[0], rows
        return
    for number, some in groupby(zip(numbers, rows, strict=True), key=itemgetter(0)):
        yield number, [row for _, row in some]


Told = tuple[int, float | str | None, str | None]
"""The place of a row, the result of a task for it, and what the task did raise."""


def _one_by_one(task: Hosted, entries: dict[str, Any], rows: Sequence[Any]) -> Iterator[Told]:
    """What a task tells of rows, one after the other; for one that it raises for, it remembers what it did before."""
    step: Any = task.step
    for place, row in enumerate(rows):
        try:
            entries[task.alternate], result = step(entries.get(task.alternate), row)
        except Exception as error:
            yield place, None, told_of(error)
        else:
            if result is not None:
                yield place, result, None


def _before(task: Hosted, stored: bytes | None) -> Any:
    """What a task remembered, from what all of them did."""
    lives = {} if stored is None else pickle.loads(stored)
    return lives.get(task.life, {}).get(task.alternate)


def _together(
    task: Hosted, step: Together, entries: dict[str, Any], rows: Sequence[Any], before: Callable[[], Any]
) -> Iterator[Told]:
    """What a task tells of rows that it is given together; if it raises for them, it gets them one by one.

    It may have changed what it was given before it raised: ``before`` tells what that was.
    """
    try:
        entries[task.alternate], found = step.work(entries.get(task.alternate), rows)
    except Exception:
        yield from _apart(task, step, entries, rows, before())
        return
    for place, result in enumerate(found):
        if result is not None:
            yield place, result, None


def _apart(task: Hosted, step: Together, entries: dict[str, Any], rows: Sequence[Any], state: Any) -> Iterator[Told]:
    kept = pickle.dumps(state, 5)
    for place, row in enumerate(rows):
        try:
            state, (result,) = step.work(pickle.loads(kept), [row])
            kept = pickle.dumps(state, 5)
        except Exception as error:
            yield place, None, told_of(error)
        else:
            yield place, result, None
    entries[task.alternate] = pickle.loads(kept)


def key_text(values: Sequence[Any]) -> str:
    """A text for each key, the same for keys that Spark takes for equal: the two zeros, and what is not a number.

    >>> key_text(["a", 1]), key_text([-0.0]) == key_text([0.0]), key_text([float("nan")])
    ("['a', 1]", True, '[nan]')
    """
    return repr([value + 0.0 if isinstance(value, float) else value for value in values])
