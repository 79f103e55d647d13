"""A task of the author's own that remembers something for each key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import orjson
from pydantic import Field

from headgate.model.schema import Schema
from headgate.model.task_type import STEP, JsonObject, SchemaText, State, TaskType
from headgate.tasks.stateful import KeyedConfig
from headgate.tasks.user_defined import ImportPath

__all__ = ["TYPES", "KeyedPython", "keyed_python"]

Work = Callable[[Any, Sequence[Sequence[Any]]], tuple[Any, list[float | str | None]]]
"""From the state of a key and some of its rows to the new state and a result for each row."""


class KeyedPython(KeyedConfig):
    """Run a Python function with a memory over the rows of each key.

    The function is given what it has returned last for the key (None at first) and the rows of the key that have come
    in this micro-batch, as a mapping from column to values, in the order in which they came. It returns what to
    remember, which can be anything that pickles, and a list with a result for each row: None, or the value of the new
    column; a mapping, where there are several.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "function": "traffic.stops",
        "key": ["car"],
        "columns": "since timestamp, reports bigint",
    }

    function: ImportPath = Field(description="Import path of the function.")
    columns: SchemaText = Field(description="The columns that a result becomes.")
    results_only: bool = Field(False, description="Whether only rows that have a result pass.")
    options: JsonObject = Field(default_factory=dict, description="Handed to the function as keyword arguments.")

    @property
    def sparse(self) -> bool:
        return self.results_only

    def added(self) -> Mapping[str, str]:
        return {column.name: str(column.type) for column in Schema.parse(self.columns).columns}


def keyed_python(options: KeyedPython, names: Sequence[str], function: Callable[..., tuple[Any, Any]]) -> Work:
    """The work of such a task over rows with columns of these names; the engine's own are not shown to the function.

    >>> def total(state, columns):
    ...     sums = []
    ...     for value in columns["v"]:
    ...         state = (state or 0) + value
    ...         sums.append({"sum": state, "even": state % 2 == 0})
    ...     return state, sums
    >>> options = KeyedPython(key=("k",), function="m.total", columns="sum bigint, even boolean")
    >>> keyed_python(options, ["k", "v", "__order"], total)(1, [("a", 2, 0), ("a", 3, 1)])
    (6, ['{"sum":3,"even":false}', '{"sum":6,"even":true}'])
    """
    shown = [(place, name) for place, name in enumerate(names) if not name.startswith("__")]
    keywords = dict(options.options)
    as_number = len(options.added()) == 1 and next(iter(options.added().values())) in ("double", "bigint")
    as_text = len(options.added()) == 1 and next(iter(options.added().values())) == "string"

    def formed(result: Any) -> float | str | None:
        if result is None or as_text:
            return result  # type: ignore[no-any-return]
        return float(result) if as_number else orjson.dumps(result, option=orjson.OPT_SERIALIZE_NUMPY).decode()

    def work(state: Any, rows: Sequence[Sequence[Any]]) -> tuple[Any, list[float | str | None]]:
        columns = list(zip(*rows, strict=True))
        state, results = function(state, {name: columns[place] for place, name in shown}, **keywords)
        if len(results) != len(rows):
            raise ValueError(f"{options.function} returned {len(results)} results for {len(rows)} rows")
        return state, [formed(result) for result in results]

    return work


TYPES = (TaskType("keyed_python", KeyedPython, STEP, State.KEYED),)
