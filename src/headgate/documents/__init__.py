"""Dataflows in files: YAML, JSON, XML and Python, all to the same value and back.

>>> from headgate.documents import parse, write
>>> dataflow = parse(
...     "name: tick\\ntasks: [{id: r, type: rate}, {id: c, type: write_console, inputs: [r]}]", "yaml"
... ).dataflow
>>> parse(write(dataflow, "json"), "json").dataflow == dataflow
True
"""

from __future__ import annotations

import codecs
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.documents.decode import ports_of
from headgate.documents.document import to_document
from headgate.documents.located import Located
from headgate.errors import Fault, InputError, InvalidDataflow, Place, nearest, os_reason
from headgate.gc_paused import paused
from headgate.model.dataflow import Dataflow
from headgate.model.names import is_name
from headgate.tasks.registry import Registry, default_registry

if TYPE_CHECKING:
    from headgate.documents.check import Checked

__all__ = ["FORMATS", "form_of", "parse", "read", "read_located", "write"]

FORMATS = {"yaml": (".yaml", ".yml"), "json": (".json",), "xml": (".xml",), "python": (".py",)}
"""The formats and how their files' names end."""

MAX_BYTES = 256 * 1024 * 1024


def form_of(path: Path) -> str:
    """The format of a file by its name; raises :class:`InputError` if it ends in none that is known.

    >>> form_of(Path("etl.yml"))
    'yaml'
    """
    for form, endings in FORMATS.items():
        if path.suffix.lower() in endings:
            return form
    known = [ending for many in FORMATS.values() for ending in many]
    fault = Fault(
        "UNKNOWN_FORMAT",
        f"a file name that ends in {path.suffix!r}" if path.suffix else "a file name without an ending",
        Place(str(path)),
        expected=f"one of {', '.join(known)}",
        nearest=nearest(path.suffix, known),
    )
    raise InvalidDataflow([fault])


def read(path: Path | str, registry: Registry | None = None) -> Checked:
    """Read and check the dataflow in a file; raises :class:`InvalidDataflow` with every fault."""
    path = Path(path)
    form = form_of(path)
    return parse(_bytes(path), form, registry, str(path))


def read_located(path: Path, forms: Collection[str]) -> Located:
    """Read a file that is not a dataflow but is written in the same way, in one of some formats without task types."""
    form = form_of(path)
    if form not in forms:
        known = ", ".join(ending for each in forms for ending in FORMATS[each])
        fault = Fault("UNKNOWN_FORMAT", f"a file name that ends in {path.suffix!r}", Place(str(path)), expected=known)
        raise InvalidDataflow([fault])
    return _located(_bytes(path), form, default_registry(), str(path))


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise InvalidDataflow(
            [Fault("UNREADABLE_FILE", f"cannot read this file: {os_reason(error)}", Place(str(path)))]
        ) from None
    if len(data) > MAX_BYTES:
        raise InvalidDataflow(
            [Fault("UNREADABLE_FILE", f"more than {MAX_BYTES >> 20} MiB", Place(str(path)), expected="a smaller file")]
        )
    return data


def parse(data: bytes | str, form: str, registry: Registry | None = None, file: str | None = None) -> Checked:
    """Parse and check a dataflow given as text; ``form`` is one of :data:`FORMATS`."""
    # Checking imports the formats' modules, so this function imports both only when it is called.
    from headgate.documents.check import check

    registry = registry if registry is not None else default_registry()
    stem = Path(file).stem if file else "dataflow"
    with paused():
        located = _located(data, form, registry, file)
        return check(located, registry, stem if is_name(stem) else "dataflow")


def _located(data: bytes | str, form: str, registry: Registry, file: str | None) -> Located:
    if form == "xml":  # whose encoding stands in the text
        located: Located = _module(form).read(data, registry, file)
    else:
        located = _module(form).read(data if isinstance(data, str) else _decoded(data, file), file)
    return located


def _module(form: str) -> Any:
    """The module that reads and writes a format."""
    if form not in FORMATS:
        raise InputError("UNKNOWN_FORMAT", f"unknown format '{form}'; expected one of {', '.join(FORMATS)}")
    return import_module(f"headgate.documents.{form}_form")


def _decoded(data: bytes, file: str | None) -> str:
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte {error.start + 1} is not {'UTF-16' if encoding == 'utf-16' else 'UTF-8'}"
        raise InvalidDataflow([Fault("WRONG_ENCODING", message, Place(file, line), expected="text in UTF-8")]) from None


def write(dataflow: Dataflow, form: str, registry: Registry | None = None) -> str:
    """Write a dataflow in one of :data:`FORMATS`; reading it back gives an equal value."""
    kinds = registry if registry is not None else default_registry()
    ports = [{task.id: ports_of(task, kinds) for task in dataflow.tasks}] if form == "xml" else []
    return str(_module(form).write(to_document(dataflow), *ports))
