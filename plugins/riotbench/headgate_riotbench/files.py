"""Task types that handle files: up- and download, zip archives, charts."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field, PositiveInt, model_validator

from headgate.errors import missing_package
from headgate.model.schema import Column, Schema
from headgate.model.task_type import OUT, ColumnName, Inputs, TaskConfig, TaskType
from headgate.model.touching import ReadPath, WrittenPath
from headgate.model.work import BatchFunction, BatchResult, BatchTarget, BatchWork
from headgate.tasks.batch import column_of, replaced
from headgate.tasks.heavy import np, pa

__all__ = ["TYPES", "Download", "Plot", "Upload", "Zip", "download", "plot", "upload", "zipped"]


FOLDER = "Folder, or the URL of one that Arrow knows: file, s3, gs, hdfs."

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every entry of an archive: the first that there can be."""

Failed = dict[int, str]
"""Rows that failed, by their place, and why."""


class Upload(TaskConfig):
    """Store each row's content as a file, and pass on where it is.

    A file appears whole, and one of its name is replaced, so doing it again does no harm. The content's column is left
    out of what is passed on.
    """

    example: ClassVar[Mapping[str, Any]] = {
        "folder": "out/models",
        "name": "model",
        "content": "json",
        "ending": ".json",
    }

    folder: WrittenPath = Field(min_length=1, description=FOLDER)
    name: ColumnName = Field(description="The column of the file's name, without folders.")
    ending: str = Field("", max_length=32, pattern=r"^[A-Za-z0-9._-]*$", description="Added to the name.")
    content: ColumnName = Field(description="The column of the content, a text or bytes.")
    into: ColumnName = Field("path", description="The name of the column of the path of the file.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("name", [self.name])
        inputs.check_columns("content", [self.content])
        rows = inputs.rows()
        if rows is None:
            return {OUT: None}
        kept = Schema(tuple(c for c in rows.columns if c.name.casefold() != self.content.casefold()))
        return {OUT: kept.with_column(Column(self.into, "string"))}


def upload(options: Upload, target: BatchTarget | None = None) -> BatchFunction:
    """The work of an upload task.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     work = upload(Upload(folder=folder, name="n", content="c", ending=".txt"))
    ...     names, paths = work(pa.record_batch({"n": ["a"], "c": ["hello"]})).columns
    ...     names.to_pylist(), Path(paths[0].as_py()).read_text()
    (['a'], 'hello')
    """
    del target
    from headgate.tasks.row_errors import error_text

    def work(batch: pa.RecordBatch) -> BatchResult:
        store, root = _opened(options.folder)
        failed: Failed = {}
        paths: list[str | None] = []
        names, contents = _values(batch, options.name), _values(batch, options.content)
        store.create_dir(root, recursive=True)
        for place, (name, content) in enumerate(zip(names, contents, strict=True)):
            try:
                if content is None:
                    raise ValueError(f"{options.content} is null")
                path = f"{root}/{_plain(name)}{options.ending}"
                hidden = f"{root}/.{_plain(name)}{options.ending}.part"
                with store.open_output_stream(hidden) as stream:
                    stream.write(content.encode() if isinstance(content, str) else content)
                store.move(hidden, path)
                paths.append(path)
            except (OSError, ValueError) as error:
                failed[place] = error_text(error)
                paths.append(None)
        return _kept(batch, options.into, pa.array(paths, pa.string()), failed, dropped=options.content)

    return work


class Download(TaskConfig):
    """Fetch for each row the file that it names. A file that is not there is an error of its row."""

    example: ClassVar[Mapping[str, Any]] = {"folder": "out/models", "name": "path", "into": "content"}

    folder: ReadPath = Field(min_length=1, description=FOLDER)
    name: ColumnName = Field(description="The column of the file's name, in that folder or below it.")
    into: ColumnName = Field("content", description="The name of the column of the content, bytes.")
    most_bytes: PositiveInt = Field(100_000_000, description="A file of more bytes is an error of its row.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("name", [self.name])
        rows = inputs.rows()
        return {OUT: rows.with_column(Column(self.into, "binary")) if rows else None}


def download(options: Download, target: BatchTarget | None = None) -> BatchFunction:
    """The work of a download task.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_text("hello")
    ...     made = download(Download(folder=folder, name="n"))(pa.record_batch({"n": ["a.txt", "b.txt"]}))
    ...     made.columns[1].to_pylist(), len(made.failed)
    ([b'hello'], 1)
    """
    del target
    from pyarrow.fs import FileType

    from headgate.tasks.row_errors import error_text

    def work(batch: pa.RecordBatch) -> BatchResult:
        store, root = _opened(options.folder)
        failed: Failed = {}
        contents: list[bytes | None] = []
        for place, name in enumerate(_values(batch, options.name)):
            try:
                path = f"{root}/{_inside(name, root)}"
                info = store.get_file_info(path)
                if info.type != FileType.File:
                    raise FileNotFoundError(f"there is no file {name!r} in {options.folder}")
                if info.size > options.most_bytes:
                    raise ValueError(f"{name!r} has {info.size} bytes, and {options.most_bytes} are allowed")
                with store.open_input_stream(path) as stream:
                    contents.append(stream.read())
            except (OSError, ValueError) as error:
                failed[place] = error_text(error)
                contents.append(None)
        return _kept(batch, options.into, pa.array(contents, pa.binary()), failed)

    return work


def _opened(folder: str) -> tuple[Any, str]:
    import pyarrow.fs

    if len(urlsplit(folder).scheme) > 1:
        store, path = pyarrow.fs.FileSystem.from_uri(folder)
        return store, path.rstrip("/")
    return pyarrow.fs.LocalFileSystem(), str(Path(folder).absolute())


def _plain(name: Any) -> str:
    """A name that can be that of a file, and of nothing elsewhere."""
    text = str(name)
    if name is None or not text or len(text) > 200 or "/" in text or "\\" in text or text.startswith("."):
        raise ValueError(f"{name!r} cannot be the name of a file")
    return text


def _inside(name: Any, root: str) -> str:
    """A name within a folder; a path that an upload returned is one too."""
    text = str(name).removeprefix(f"{root}/")
    if name is None or not text or text.startswith("/") or ".." in text.split("/"):
        raise ValueError(f"{name!r} is not in the folder")
    return text


def _values(batch: pa.RecordBatch, name: str) -> list[Any]:
    return column_of(batch, name).to_pylist()  # type: ignore[no-any-return]


def _kept(batch: pa.RecordBatch, into: str, made: pa.Array, failed: Failed, dropped: str | None = None) -> BatchResult:
    gone = [dropped] if dropped is not None else []
    if not failed:
        return BatchResult(replaced(batch, [(into, made)], gone))
    good = np.setdiff1d(np.arange(len(batch)), np.fromiter(failed, np.int64, len(failed)))
    kept = pa.array(good)
    return BatchResult(replaced(batch.take(kept), [(into, made.take(kept))], gone), good, sorted(failed.items()))


class Zip(TaskConfig):
    """Pack the contents of rows into zip archives, so many to one; what is left of a micro-batch makes a last one.

    The same rows make the same bytes. An archive is named after its first entry.
    """

    example: ClassVar[Mapping[str, Any]] = {"name": "chart", "content": "picture", "size": 10}

    name: ColumnName = Field(description="The column of the entry's name.")
    content: ColumnName = Field(description="The column of the entry's content, a text or bytes.")
    size: PositiveInt = Field(10, description="How many entries an archive has.")
    into: ColumnName = Field("archive", description="The name of the column of the archive, bytes.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("name", [self.name])
        inputs.check_columns("content", [self.content])
        return {OUT: Schema((Column("name", "string"), Column("entries", "int"), Column(self.into, "binary")))}


def zipped(options: Zip, target: BatchTarget | None = None) -> BatchFunction:
    """The work of a zip task.

    >>> made = zipped(Zip(name="n", content="c", size=2))(pa.record_batch({"n": ["a", "b", "c"], "c": ["1", "2", "3"]}))
    >>> made.columns[1].to_pylist(), zipfile.ZipFile(io.BytesIO(made.columns[2][0].as_py())).namelist()
    ([2, 1], ['a', 'b'])
    """
    del target

    def work(batch: pa.RecordBatch) -> BatchResult:
        names, contents = _values(batch, options.name), _values(batch, options.content)
        pairs = [(place, str(n), c) for place, (n, c) in enumerate(zip(names, contents, strict=True)) if c is not None]
        groups = [pairs[first : first + options.size] for first in range(0, len(pairs), options.size)]
        columns = [
            pa.array([group[0][1] for group in groups], pa.string()),
            pa.array([len(group) for group in groups], pa.int32()),
            pa.array([_archive(group) for group in groups], pa.binary()),
        ]
        return BatchResult(columns, np.array([group[0][0] for group in groups], np.int64))

    return work


def _archive(entries: list[tuple[int, str, Any]]) -> bytes:
    held = io.BytesIO()
    names = _numbered([name for _, name, _ in entries])
    with zipfile.ZipFile(held, "w") as archive:
        for name, (_, _, content) in zip(names, entries, strict=True):
            info = zipfile.ZipInfo(name, EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return held.getvalue()


def _numbered(names: list[str]) -> Iterator[str]:
    """Names of entries, each once."""
    taken: set[str] = set()
    for name in names:
        entry, number = name, 1
        while entry in taken:
            number += 1
            entry = f"{name}-{number}"
        taken.add(entry)
        yield entry


class Plot(TaskConfig):
    """Draw each row as a chart of several lines. A line is a column that holds an array of numbers."""

    example: ClassVar[Mapping[str, Any]] = {"lines": ["temperature", "smoothed"], "title": "sensor"}

    lines: tuple[ColumnName, ...] = Field(min_length=1, description="The columns of the lines' values, arrays.")
    x: ColumnName | None = Field(None, description="The column of the places on the axis; 0, 1, 2 if left out.")
    title: ColumnName | None = Field(None, description="The column of the chart's title.")
    y_label: str = Field("", max_length=128, description="What the values are.")
    format: Literal["svg", "png"] = Field("svg", description="The form of the picture.")
    into: ColumnName = Field("chart", description="The name of the picture's column, bytes.")

    @model_validator(mode="after")
    def _not_too_many(self) -> Plot:
        if len(self.lines) > 20:
            raise ValueError(f"{len(self.lines)} lines in one chart: at most 20 can be distinguished")
        return self

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        inputs.check_columns("lines", self.lines)
        inputs.check_columns("x", [] if self.x is None else [self.x])
        inputs.check_columns("title", [] if self.title is None else [self.title])
        rows = inputs.rows()
        return {OUT: rows.with_column(Column(self.into, "binary")) if rows else None}


def _check_plots(options: Plot) -> None:
    """Raise :class:`InputError` where charts cannot be drawn."""
    del options
    if find_spec("matplotlib") is None:
        raise missing_package("NO_PLOTS", "drawing charts", "matplotlib", "plots")


def plot(options: Plot, target: BatchTarget | None = None) -> BatchFunction:
    """The work of a plot task.

    >>> made = plot(Plot(lines=("v",)))(pa.record_batch({"v": [[1.0, 3.0, 2.0]]}))
    >>> b"<svg" in made.columns[1][0].as_py()
    True
    """
    del target
    from headgate.tasks.row_errors import error_text

    def work(batch: pa.RecordBatch) -> BatchResult:
        lines = [_values(batch, name) for name in options.lines]
        places = None if options.x is None else _values(batch, options.x)
        titles = None if options.title is None else _values(batch, options.title)
        failed: Failed = {}
        charts: list[bytes | None] = []
        for place in range(len(batch)):
            try:
                values = {name: line[place] for name, line in zip(options.lines, lines, strict=True)}
                x = None if places is None else places[place]
                charts.append(_chart(options, values, x, None if titles is None else str(titles[place])))
            except (ValueError, TypeError) as error:
                failed[place] = error_text(error)
                charts.append(None)
        return _kept(batch, options.into, pa.array(charts, pa.binary()), failed)

    return work


def _chart(options: Plot, lines: dict[str, Any], x: Any, title: str | None) -> bytes:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "headgate", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(6, 3), layout="constrained")
        axes = figure.subplots()
        for name, values in lines.items():
            if values is None:
                raise ValueError(f"{name} is null")
            numbers = [np.nan if value is None else float(value) for value in values]
            here = np.arange(len(numbers)) if x is None else np.array([float(at) for at in x])
            axes.plot(here, numbers, label=name, linewidth=1.4)
        axes.set_ylabel(options.y_label)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", linewidth=0.4, alpha=0.5)
        if title is not None:
            axes.set_title(title, loc="left")
        if len(lines) > 1:
            axes.legend(frameon=False, fontsize=8)
        held = io.BytesIO()
        figure.savefig(held, format=options.format, metadata={"Date": None} if options.format == "svg" else None)
        return held.getvalue()


TYPES = (
    TaskType("upload", Upload, package="headgate-riotbench", work=BatchWork(upload)),
    TaskType("download", Download, package="headgate-riotbench", work=BatchWork(download)),
    TaskType("zip", Zip, package="headgate-riotbench", batchwise=True, work=BatchWork(zipped)),
    TaskType("plot", Plot, package="headgate-riotbench", work=BatchWork(plot, _check_plots)),
)
