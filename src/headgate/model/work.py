"""What a task type does: one of seven kinds of work, as a value of its :class:`~headgate.model.task_type.TaskType`.

============== =========================================================== =====================================
kind           what it is given                                            built-in example
============== =========================================================== =====================================
RowExpression  the names of columns; it makes SQL                          ``filter``
BatchWork      Arrow record batches, in Spark's Python workers             ``python``
FrameWork      Spark DataFrames, one for each port                         ``explode``, ``window``
KeyedWork      the rows of one key, and what it remembers of that key      ``count``
ChainWork      Arrow tables, and state in chains of files                  none yet
SourceWork     the Spark session                                           ``read_files``
SinkWork       the rows of an epoch, in staged files                       ``write_table``
============== =========================================================== =====================================

Options are read without Spark: the functions of a work import Spark, Arrow and the like when they run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from headgate.model.chain_work import ChainWork
from headgate.model.on_error import OnError

__all__ = [
    "ArrowForm",
    "BatchFunction",
    "BatchResult",
    "BatchTarget",
    "BatchWork",
    "ChainWork",
    "Delivery",
    "FrameWork",
    "KeyRows",
    "KeyedWork",
    "Past",
    "RowExpression",
    "RowLimit",
    "RowWise",
    "SinkContext",
    "SinkWork",
    "SourceContext",
    "SourceWork",
    "Work",
]


@dataclass(frozen=True, slots=True)
class RowWise:
    """What a row-wise task does to rows of given columns, as Spark SQL: which rows pass, and what becomes of them.

    ``columns`` are the new row's columns, each an expression over the old row; ``row`` is an expression for the whole
    new row as a struct instead. With neither, rows pass as they are.
    """

    names: tuple[str, ...]
    condition: str | None = None
    columns: tuple[tuple[str, str], ...] | None = None
    row: str | None = None


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The rows that a task makes of an Arrow record batch."""

    columns: Sequence[Any]
    """The new rows, an Arrow array for each column, in the order of the task's output."""

    origin: Any = None
    """For each new row the place of the row it comes from, as a NumPy array; ``None`` if places are the same."""

    failed: Sequence[tuple[int, str]] = ()
    """The places of rows that cannot be processed, and why. ``on_error`` decides what becomes of them."""


BatchFunction = Callable[[Any], BatchResult]
"""From a ``pyarrow.RecordBatch`` to the rows that are made of it."""


@dataclass(frozen=True, slots=True)
class BatchTarget:
    """What a batch function has to produce."""

    schema: Any
    """The columns, a ``pyarrow.Schema``."""

    collect_failed: bool
    """Whether failed rows are wanted; otherwise the first one fails the task, and raising is as good."""


def _any_columns(options: Any, types: Mapping[str, str]) -> bool:
    del options, types
    return True


@dataclass(frozen=True, slots=True)
class ArrowForm:
    """The same work on Arrow batches, used where rows are in a Python worker already."""

    start: Callable[[Any], BatchFunction]
    """From the options to the function."""

    fits: Callable[[Any, Mapping[str, str]], bool] = _any_columns
    """Whether it makes the same of columns of these SQL types (by name in lower case) as Spark does."""


def _nothing(options: Any) -> None:
    del options


@dataclass(frozen=True, slots=True)
class RowExpression:
    """At most one row of each row, as SQL expressions. Any number of such tasks run as one Spark projection."""

    sql: Callable[[Any, Sequence[str]], RowWise]
    """From the options and the names of the input's columns to the expressions."""

    arrow: ArrowForm | None = None


@dataclass(frozen=True, slots=True)
class BatchWork:
    """A function over Arrow batches, in Spark's Python workers. It reports rows that cannot be processed."""

    start: Callable[[Any, BatchTarget], BatchFunction]
    """From the options and the target to the function; called once for each partition of a micro-batch."""

    check: Callable[[Any], None] = _nothing
    """Raises :class:`~headgate.errors.InputError` if something that the task needs is missing; before it runs."""


def _no_queries(options: Any) -> tuple[str, ...]:
    del options
    return ()


@dataclass(frozen=True, slots=True)
class FrameWork:
    """A Spark DataFrame for each input port in, one DataFrame out.

    In a type of state NATIVE the frames are streams, one for each side, and the work may use Spark's own state.
    """

    run: Callable[[Any, Mapping[str, Any]], Any]
    """From the options and the frames by port to the output."""

    carries: bool = False
    """Whether it passes on columns whose names begin with ``__``; otherwise it is not given them."""

    arrow: ArrowForm | None = None
    queries: Callable[[Any], Sequence[str]] = _no_queries
    """SQL that an author of dataflows has written: Spark's own parser says that it names nothing but its ports."""


class KeyRows(Protocol):
    """Rows of one key, in the order in which they came."""

    def __len__(self) -> int:
        """How many there are."""

    @property
    def tuples(self) -> Sequence[tuple[Any, ...]]:
        """The rows; places in a row are those that ``index`` gave out."""

    @property
    def columns(self) -> Sequence[Any]:
        """The same as Arrow arrays."""

    def fail(self, place: int, error: Exception) -> None:
        """Report a row that cannot be processed; its result is ignored."""


Result = float | str | None
"""Of one new column: its value, a number or text. Of several: a JSON object with them. ``None`` is no result."""

KeyFunction = Callable[[Any, KeyRows], tuple[Any, Sequence[Result]]]
"""From the state of a key (``None`` at first) and some of its rows to the new state and a result for each row."""

Index = Callable[[str], int]
"""The place of a column in the tuples of a key's rows."""


@dataclass(frozen=True, slots=True)
class KeyedWork:
    """A function with state for each key. State is pickled and stored by Spark; options are a ``KeyedConfig``.

    If the function raises, the rows that it raises for are found by halving, each time from the state before.
    """

    start: Callable[[Any, Index], KeyFunction]
    """From the options to the function; ``index`` gives the places of the columns that it needs."""

    check: Callable[[Any], None] = _nothing
    """Raises :class:`~headgate.errors.InputError` if something that the task needs is missing; before it runs."""


class RowLimit(StrEnum):
    """How a source takes a new limit of rows for each micro-batch."""

    NEVER = "never"
    """It has none: it hands over all that has arrived."""

    RESTART = "restart"
    """When its fragment is started again."""

    HOT = "hot"
    """From the next micro-batch on: its reader reads the limit from its folder (``headgate.tasks.source_folder``)."""


class Past(StrEnum):
    """How the past of a source is described, for those that read it again."""

    NONE = ""
    """It cannot be read again."""

    FILES = "files"
    """By the files that were read."""

    OFFSET = "offset"
    """By the offset up to which was read."""


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What a source may use."""

    spark: Any
    limit: int | None
    """The most rows (or files) for each micro-batch, if a limit is set."""

    folder: Path
    """A folder of its own that survives restarts."""

    on_error: OnError = OnError.FAIL
    """What becomes of what cannot be read."""


def _no_path(options: Any) -> str | None:
    del options
    return None


@dataclass(frozen=True, slots=True)
class SourceWork:
    """A streaming DataFrame, with at least the columns that the options' ``outputs`` declare."""

    read: Callable[[Any, SourceContext], Any]
    """From the options to the stream; raises :class:`~headgate.errors.InputError` if there is nothing to read."""

    ingested: Callable[[], str] | None = None
    """SQL for when a row arrived, in microseconds since 1970; without it, rows arrive when their micro-batch starts."""

    limit: RowLimit = RowLimit.RESTART
    path: Callable[[Any], str | None] = _no_path
    """The path that workers must be able to read, if there is one."""

    by_row: bool = False
    """Whether it can leave out single records that cannot be read."""

    past: Past = Past.NONE
    """How what it has handed over can be read again by another dataflow."""

    begins: str = "now"
    """From where it reads if nobody says: ``earliest`` or ``now``."""

    timed: bool = True
    """Whether it is known when its rows came, so that it can begin at a time."""

    splits: Callable[[Any, SourceContext], Mapping[str, str]] | None = None
    """The options of the data source, if workers can read the parts of a micro-batch by themselves."""

    reader: str = "headgate_files"
    """The data source whose reader they use then."""


class Delivery(Protocol):
    """The rows of one epoch for one sink. The same delivery may come again after a failure, with the same identity."""

    @property
    def epoch(self) -> int:
        """The number of the epoch."""

    @property
    def origin(self) -> str:
        """Where the rows come from; with the epoch it identifies a delivery to a sink."""

    @property
    def files(self) -> Sequence[tuple[str, int]]:
        """The staged files, and how many rows each has."""

    def table(self) -> Any:
        """The rows as a ``pyarrow.Table``, if they are staged in the form ``arrow``."""


@dataclass(frozen=True, slots=True)
class SinkContext:
    """What a sink may use."""

    spark: Any
    memory: Any
    """Where sinks in memory keep their rows: ``put(name, delivery)``."""

    task: str
    """The task's name, such as ``city.store``."""

    signature: str
    """The identity of the task across restarts."""


def _as_arrow(options: Any) -> str:
    del options
    return "arrow"


def _any_sink(options: Any, spark: Any, columns: Sequence[Sequence[str]]) -> None:
    del options, spark, columns


def _no_folder(options: Any) -> str | None:
    del options
    return None


@dataclass(frozen=True, slots=True)
class SinkWork:
    """Hands rows over to the outside world. For exactly-once output, doing it again must do nothing more."""

    write: Callable[[Any, Delivery, SinkContext], None]
    """From the options and a delivery; if it raises, the delivery is kept and offered again."""

    check: Callable[[Any, Any, Sequence[Sequence[str]]], None] = _any_sink
    """Raises :class:`~headgate.errors.InputError` for options, session and input columns that can never work."""

    form: Callable[[Any], str] = _as_arrow
    """How workers stage its rows: arrow, parquet, json, csv or text."""

    folder: Callable[[Any], str | None] = _no_folder
    """The folder that it puts files into, so that the disk can be made to have them."""


Work = RowExpression | BatchWork | FrameWork | KeyedWork | ChainWork | SourceWork | SinkWork
