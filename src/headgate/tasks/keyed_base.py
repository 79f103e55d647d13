"""What all keyed task types share: their options, and ways to write their work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from headgate.model.schema import Column, Schema
from headgate.model.task_type import STEP, ColumnName, Inputs, State, TaskConfig, TaskType
from headgate.model.work import Index, KeyedWork, KeyFunction, KeyRows, Result
from headgate.tasks.heavy import orjson

__all__ = ["KeyedColumn", "KeyedConfig", "as_json", "by_row", "by_rows", "by_step", "keyed", "result_of", "step_of"]

NUMBERS = ("double", "bigint")
"""Types of results that are passed on as numbers; others are passed on as texts."""

NESTED = ("array", "map", "struct")
"""How types begin whose texts are JSON; texts of others are cast."""

Row = Sequence[Any]
Stepped = tuple[Any, Result]
Step = Callable[[Any, Row], Stepped]
"""From the state of a key (``None`` at first) and a row to the new state and the result."""


class KeyedConfig(TaskConfig):
    """A task that remembers something for each key, and has a result for a row, or none.

    The result becomes columns of the row. Of one column it is the column's value, of several an object that has them.
    """

    keeps: ClassVar[bool] = False
    """Whether columns keep the value that they have where there is no result."""

    makes: ClassVar[Mapping[str, str]] = {}
    """The SQL types of the columns that its result becomes, by the options that name the columns."""

    key: tuple[ColumnName, ...] = Field(min_length=1, description="The columns whose values make the key.")

    @property
    def sparse(self) -> bool:
        """Whether rows for which there is no result do not pass."""
        return False

    def reads(self) -> Mapping[str, Sequence[str]]:
        """The columns that it reads beside the key, by the option that names them."""
        return {}

    def added(self) -> Mapping[str, str]:
        """The columns that its result becomes, and their SQL types."""
        return {getattr(self, option): kind for option, kind in self.makes.items()}

    def dropped(self) -> Sequence[str]:
        """Columns of the row that are not passed on."""
        return ()

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("key", self.key)
        for option, columns in self.reads().items():
            inputs.check_columns(option, columns)
        return inputs.passed_on(*(Column(*added) for added in self.added().items()), dropped=self.dropped())


class KeyedColumn(KeyedConfig):
    """A keyed task that reads one column."""

    column: ColumnName = Field(description="The column to look at.")

    def reads(self) -> Mapping[str, Sequence[str]]:
        return {"column": [self.column]}


def by_step(start: Callable[[Any, Index], Step]) -> Callable[[Any, Index], KeyFunction]:
    """Work that goes from row to row. A step that raises must not have changed the state that it was given."""

    def begin(options: Any, index: Index) -> KeyFunction:
        step = start(options, index)

        def fold(state: Any, rows: KeyRows) -> tuple[Any, list[Result]]:
            results: list[Result] = []
            for place, row in enumerate(rows.tuples):
                try:
                    state, result = step(state, row)
                except Exception as error:
                    rows.fail(place, error)
                    result = None
                results.append(result)
            return state, results

        return fold

    return begin


RowFunction = Callable[[Any, Any, dict[str, Any]], tuple[Any, Mapping[str, Any] | None]]


def by_row(function: RowFunction) -> KeyedWork:
    """The work of a function ``(options, state, row) -> (state, new columns)``.

    The row is a dict with the columns that the options' ``reads`` name. The function may change the state that it is
    given. Where it returns ``None`` in the place of the new columns there is no result.
    """

    def start(options: KeyedConfig, index: Index) -> KeyFunction:
        columns = [(name, index(name)) for name in _read_columns(options)]
        result = result_of(options)

        def fold(state: Any, rows: KeyRows) -> tuple[Any, list[Result]]:
            results = []
            for row in rows.tuples:
                state, new = function(options, state, {name: row[at] for name, at in columns})
                results.append(result(new))
            return state, results

        return fold

    return KeyedWork(start)


def by_rows(function: Callable[[Any, Any, dict[str, list[Any]]], tuple[Any, Sequence[Any]]]) -> KeyedWork:
    """As :func:`by_row`, for a function of all rows of the key at once: a dict of lists in, a list of dicts out."""

    def start(options: KeyedConfig, index: Index) -> KeyFunction:
        columns = [(name, index(name)) for name in _read_columns(options)]
        result = result_of(options)

        def fold(state: Any, rows: KeyRows) -> tuple[Any, list[Result]]:
            values = list(zip(*rows.tuples, strict=True))
            state, new = function(options, state, {name: list(values[at]) for name, at in columns})
            if len(new) != len(rows.tuples):
                raise ValueError(f"the function returned {len(new)} results for {len(rows.tuples)} rows")
            return state, [result(each) for each in new]

        return fold

    return KeyedWork(start)


def _read_columns(options: KeyedConfig) -> list[str]:
    return list(dict.fromkeys(name for names in options.reads().values() for name in names))


def result_of(options: KeyedConfig) -> Callable[[Mapping[str, Any] | None], Result]:
    """From the values of the new columns to the result that the host passes on.

    >>> from headgate.tasks.keyed import Count
    >>> result_of(Count(key=("k",)))({"count": 3})
    3.0
    """
    (only, kind), *others = options.added().items()

    def result(new: Mapping[str, Any] | None) -> Result:
        if new is None:
            return None
        if others:
            return as_json(new)
        value = new[only]
        if value is None or kind in NUMBERS:
            return None if value is None else float(value)
        return as_json(value) if kind.startswith(NESTED) else str(value)

    return result


def keyed(
    name: str, config: type[KeyedConfig], start: Callable[[Any, Index], Step], package: str = "headgate"
) -> TaskType:
    """A keyed task type that goes from row to row."""
    return TaskType(name, config, STEP, State.KEYED, package=package, work=KeyedWork(by_step(start)))


class _OneRow:
    """A single row of a key; an error in it is raised."""

    def __init__(self, row: Row) -> None:
        self.tuples = [tuple(row)]
        self.columns: Sequence[Any] = ()

    def __len__(self) -> int:
        return 1

    def fail(self, place: int, error: Exception) -> None:
        del place
        raise error


def step_of(kind: TaskType, options: KeyedConfig, names: Sequence[str]) -> Step:
    """What a keyed task does to one row, for trying it without Spark.

    >>> from headgate.tasks.registry import default_registry
    >>> kind = default_registry()["moving_average"]
    >>> step = step_of(kind, kind.config(key=("k",), column="v", size=2), ["k", "v"])
    >>> state, first = step(None, ["a", 1.0])
    >>> state, second = step(state, ["a", 3.0])
    >>> first, second
    (1.0, 2.0)
    """
    assert isinstance(kind.work, KeyedWork)
    places = {name.casefold(): position for position, name in enumerate(names)}
    fold = kind.work.start(options, lambda name: places[name.casefold()])

    def step(state: Any, row: Row) -> Stepped:
        state, (result,) = fold(state, _OneRow(row))
        return state, result

    return step


def as_json(value: Any) -> str:
    """A result that is more than a number, as the host passes it on."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()
