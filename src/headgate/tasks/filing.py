"""What the task types that handle files do to a batch of rows."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.fs

from headgate.errors import missing_package
from headgate.tasks.arrow_task import Made, Work, replaced
from headgate.tasks.blobs import Download, Plot, Upload, Zip
from headgate.tasks.guard import told_of
from headgate.tasks.records import Bad

__all__ = ["check_plots", "download", "plot", "upload", "zipped"]

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every entry of an archive: the first that there can be."""


def upload(options: Upload) -> Work:
    """The work of an upload task.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     work = upload(Upload(folder=folder, name="n", content="c", ending=".txt"))
    ...     names, paths = work(pa.record_batch({"n": ["a"], "c": ["hello"]})).columns
    ...     names.to_pylist(), Path(paths[0].as_py()).read_text()
    (['a'], 'hello')
    """

    def work(batch: pa.RecordBatch) -> Made:
        store, root = _opened(options.folder)
        bad: Bad = {}
        paths: list[str | None] = []
        names, contents = _column(batch, options.name), _column(batch, options.content)
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
                bad[place] = told_of(error)
                paths.append(None)
        return _kept(batch, options.into, pa.array(paths, pa.string()), bad, dropped=options.content)

    return work


def download(options: Download) -> Work:
    """The work of a download task.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_text("hello")
    ...     made = download(Download(folder=folder, name="n"))(pa.record_batch({"n": ["a.txt", "b.txt"]}))
    ...     made.columns[1].to_pylist(), len(made.bad)
    ([b'hello'], 1)
    """

    def work(batch: pa.RecordBatch) -> Made:
        store, root = _opened(options.folder)
        bad: Bad = {}
        contents: list[bytes | None] = []
        for place, name in enumerate(_column(batch, options.name)):
            try:
                path = f"{root}/{_inside(name, root)}"
                info = store.get_file_info(path)
                if info.type != pyarrow.fs.FileType.File:
                    raise FileNotFoundError(f"there is no file {name!r} in {options.folder}")
                if info.size > options.most_bytes:
                    raise ValueError(f"{name!r} has {info.size} bytes, and {options.most_bytes} are allowed")
                with store.open_input_stream(path) as stream:
                    contents.append(stream.read())
            except (OSError, ValueError) as error:
                bad[place] = told_of(error)
                contents.append(None)
        return _kept(batch, options.into, pa.array(contents, pa.binary()), bad)

    return work


def _opened(folder: str) -> tuple[pyarrow.fs.FileSystem, str]:
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
    """A name within a folder; a path that an upload told is one too."""
    text = str(name).removeprefix(f"{root}/")
    if name is None or not text or text.startswith("/") or ".." in text.split("/"):
        raise ValueError(f"{name!r} is not in the folder")
    return text


def _column(batch: pa.RecordBatch, name: str) -> list[Any]:
    at = [column.casefold() for column in batch.schema.names].index(name.casefold())
    return batch.column(at).to_pylist()  # type: ignore[no-any-return]


def _kept(batch: pa.RecordBatch, into: str, made: pa.Array, bad: Bad, dropped: str | None = None) -> Made:
    gone = [dropped] if dropped is not None else []
    if not bad:
        return Made(replaced(batch, [(into, made)], gone))
    good = np.setdiff1d(np.arange(len(batch)), np.fromiter(bad, np.int64, len(bad)))
    kept = pa.array(good)
    return Made(replaced(batch.take(kept), [(into, made.take(kept))], gone), good, sorted(bad.items()))


def zipped(options: Zip) -> Work:
    """The work of a zip task.

    >>> made = zipped(Zip(name="n", content="c", size=2))(pa.record_batch({"n": ["a", "b", "c"], "c": ["1", "2", "3"]}))
    >>> made.columns[1].to_pylist(), zipfile.ZipFile(io.BytesIO(made.columns[2][0].as_py())).namelist()
    ([2, 1], ['a', 'b'])
    """

    def work(batch: pa.RecordBatch) -> Made:
        names, contents = _column(batch, options.name), _column(batch, options.content)
        pairs = [(place, str(n), c) for place, (n, c) in enumerate(zip(names, contents, strict=True)) if c is not None]
        groups = [pairs[first : first + options.size] for first in range(0, len(pairs), options.size)]
        columns = [
            pa.array([group[0][1] for group in groups], pa.string()),
            pa.array([len(group) for group in groups], pa.int32()),
            pa.array([_archive(group) for group in groups], pa.binary()),
        ]
        return Made(columns, np.array([group[0][0] for group in groups], np.int64))

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
    """Names of entries, no two alike."""
    taken: set[str] = set()
    for name in names:
        found, number = name, 1
        while found in taken:
            number += 1
            found = f"{name}-{number}"
        taken.add(found)
        yield found


def check_plots() -> None:
    """Raise :class:`InputError` where charts cannot be drawn."""
    if find_spec("matplotlib") is None:
        raise missing_package("NO_PLOTS", "drawing charts", "matplotlib", "plots")


def plot(options: Plot) -> Work:
    """The work of a plot task.

    >>> made = plot(Plot(lines=("v",)))(pa.record_batch({"v": [[1.0, 3.0, 2.0]]}))
    >>> b"<svg" in made.columns[1][0].as_py()
    True
    """

    def work(batch: pa.RecordBatch) -> Made:
        lines = [_column(batch, name) for name in options.lines]
        places = None if options.x is None else _column(batch, options.x)
        titles = None if options.title is None else _column(batch, options.title)
        bad: Bad = {}
        charts: list[bytes | None] = []
        for place in range(len(batch)):
            try:
                values = {name: line[place] for name, line in zip(options.lines, lines, strict=True)}
                x = None if places is None else places[place]
                charts.append(_chart(options, values, x, None if titles is None else str(titles[place])))
            except (ValueError, TypeError) as error:
                bad[place] = told_of(error)
                charts.append(None)
        return _kept(batch, options.into, pa.array(charts, pa.binary()), bad)

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
