"""Task types that bring rows in."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from headgate.errors import InputError
from headgate.model.schema import Column, Schema
from headgate.model.task_type import OUT, SOURCE, ColumnName, Inputs, SchemaText, SourceStart, TaskConfig, TaskType
from headgate.model.touching import HostNames, ReadPath, Touch, Touched
from headgate.model.work import Past, RowLimit, SourceContext, SourceWork
from headgate.tasks.database.read import READ_TABLE
from headgate.tasks.file_paths import absolute, is_there
from headgate.tasks.kafka.read import READ_KAFKA
from headgate.tasks.lakehouse.read import READ_DELTA, READ_ICEBERG

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TYPES", "FileFormat", "RateSource", "ReadFiles", "ReadSocket", "Replay"]


FileFormat = Literal["json", "csv", "parquet", "text"]

OWN_START = "Where this source begins, if not where its dataflow's start says: earliest, now, a time or an age."

TEXT = Schema((Column("value", "string"),))


class _FilesOptions(TaskConfig):
    path: ReadPath = Field(min_length=1, description="Folder, pattern or URL of the files.")
    format: FileFormat = Field("json", description="How the files are written; json means one object a line.")
    columns: SchemaText | None = Field(
        None, description="The columns, such as 'id string, v double'; text has one, value."
    )
    header: bool = Field(False, description="Whether csv files start with a line of column names.")
    start: SourceStart | None = Field(None, description=OWN_START)

    @model_validator(mode="after")
    def _columns_are_known(self) -> _FilesOptions:
        if self.columns is None and self.format != "text":
            raise ValueError(f"format {self.format} needs columns, such as columns: 'id string, v double'")
        if self.columns is not None and self.format == "text":
            raise ValueError("format text has the single column value; leave columns out")
        if self.header and self.format != "csv":
            raise ValueError("header is an option of format csv")
        return self

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        del inputs
        return {OUT: TEXT if self.columns is None else Schema.parse(self.columns)}


class ReadFiles(_FilesOptions):
    """Read the files of a folder, and those that are added while it runs.

    Each file is read once, in the order of modification and then of name. A file must appear whole (write it elsewhere,
    then rename it).
    """

    example: ClassVar[Mapping[str, Any]] = {
        "path": "data/city/*.jsonl",
        "columns": "sensor string, t timestamp, v double",
    }

    files_per_batch: PositiveInt | None = Field(None, description="At most so many new files in one micro-batch.")
    after: Literal["keep", "delete", "move"] = Field("keep", description="What becomes of a file that has been read.")
    move_to: Annotated[str | None, Touch.WRITE] = Field(
        None, min_length=1, description="The folder to move files to; only with after: move."
    )

    @model_validator(mode="after")
    def _has_a_place_to_move_to(self) -> ReadFiles:
        if (self.after == "move") != (self.move_to is not None):
            raise ValueError("after: move and move_to belong together; give both or neither")
        return self

    def touches(self) -> Iterator[Touched]:
        yield from super().touches()
        if self.after != "keep":
            yield Touched(Touch.WRITE, self.path, "path", makes_files=False)


def _files(options: ReadFiles, context: SourceContext) -> DataFrame:
    if not is_there(options.path, may_be_empty=options.after != "keep"):
        message = f"no files at '{options.path}'; make the folder, or correct the path"
        raise InputError("SOURCE_NOT_THERE", message)
    # Registered with every session of the engine: it is no matter of this room how files are planned.
    reader: Any = context.spark.readStream.format("headgate_files").options(**_file_options(options, context))
    return reader.load()  # type: ignore[no-any-return]


def _file_options(options: ReadFiles, context: SourceContext) -> dict[str, str]:
    """The options of the data source that reads files."""
    from headgate.tasks.frames import declared_schema

    # Spark's process, and its workers, may have been started in another folder than this one.
    moved_to = None if options.move_to is None else absolute(options.move_to)
    here = options.model_copy(update={"path": absolute(options.path), "move_to": moved_to})
    return {
        "task": here.model_dump_json(),
        "columns": declared_schema(options).json(),
        "folder": str(context.folder),
        "on_error": context.on_error.value,
        "began_us": str(time.time_ns() // 1_000),
        "parts": str(context.spark.sparkContext.defaultParallelism),
    }


class Replay(_FilesOptions):
    """Play a recorded file as a stream, at a given rate or at the pace of its own time stamps.

    Without ``rate_per_s`` and ``time_column`` the rows come as fast as they are taken.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "path": "data/taxi.csv",
        "format": "csv",
        "columns": "t timestamp, fare double",
        "time_column": "t",
        "speed": 60,
    }

    rate_per_s: PositiveFloat | None = Field(None, description="Rows per second.")
    time_column: ColumnName | None = Field(None, description="The column whose time stamps set the pace.")
    speed: PositiveFloat = Field(1.0, description="How much faster than recorded; only with time_column.")
    repeat: bool = Field(False, description="Whether to start again at the end.")

    @model_validator(mode="after")
    def _one_pace(self) -> Replay:
        if self.rate_per_s is not None and self.time_column is not None:
            raise ValueError("rate_per_s and time_column both set the pace; give one of them")
        if self.speed != 1.0 and self.time_column is None:
            raise ValueError("speed needs time_column")
        if self.time_column is not None and self.columns is not None:
            schema = Schema.parse(self.columns)
            if schema.find(self.time_column) is None:
                raise ValueError(f"time_column '{self.time_column}' is not among the columns ({schema})")
        return self


def _replay(options: Replay, context: SourceContext) -> DataFrame:
    from headgate.tasks.frames import declared_schema
    from headgate.tasks.replay import replayed

    if not Path(options.path).is_file():
        raise InputError("SOURCE_NOT_THERE", f"no file at '{options.path}'; correct the path")
    here = options.model_copy(update={"path": str(Path(options.path).absolute())})
    return replayed(context.spark, here, declared_schema(options), context.folder)


class RateSource(TaskConfig):
    """Make rows at a steady rate, each with a time stamp and a number counting from 0; for trials."""

    example: ClassVar[Mapping[str, Any]] = {"rows_per_s": 1000}

    rows_per_s: PositiveInt = Field(1, le=10_000_000, description="Rows per second.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        del inputs
        return {OUT: Schema((Column("timestamp", "timestamp"), Column("value", "bigint")))}


def _rate(options: RateSource, context: SourceContext) -> DataFrame:
    return context.spark.readStream.format("rate").option("rowsPerSecond", options.rows_per_s).load()  # type: ignore[no-any-return]


class ReadSocket(TaskConfig):
    """Read lines of text from a TCP socket. They cannot be read again after a failure: for trials only."""

    example: ClassVar[Mapping[str, Any]] = {"host": "localhost", "port": 9999}

    host: HostNames = Field("localhost", min_length=1, description="Where the lines come from.")
    port: int = Field(ge=1, le=65_535, description="The port there.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        del inputs
        return {OUT: TEXT}


def _socket(options: ReadSocket, context: SourceContext) -> DataFrame:
    reader: Any = context.spark.readStream.format("socket")
    return reader.option("host", options.host).option("port", options.port).load()  # type: ignore[no-any-return]


def _row_time() -> str:
    return "unix_micros(timestamp)"


def _own_time() -> str:
    return "__ingest"


def _path(options: ReadFiles | Replay) -> str:
    return options.path


READ_FILES = SourceWork(
    _files,
    _own_time,
    RowLimit.HOT,
    _path,
    by_row=True,
    past=Past.FILES,
    begins="earliest",
    splits=_file_options,
)
REPLAY = SourceWork(_replay, _own_time, RowLimit.HOT, _path, past=Past.OFFSET, begins="earliest", timed=False)

TYPES = (
    TaskType("read_files", ReadFiles, SOURCE, work=READ_FILES),
    TaskType("replay", Replay, SOURCE, work=REPLAY),
    TaskType("rate", RateSource, SOURCE, work=SourceWork(_rate, _row_time, RowLimit.NEVER)),
    TaskType("read_socket", ReadSocket, SOURCE, work=SourceWork(_socket, limit=RowLimit.NEVER)),
    READ_KAFKA,
    READ_TABLE,
    READ_DELTA,
    READ_ICEBERG,
)
