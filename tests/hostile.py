"""Broken inputs, and what must hold for each of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.documents import FORMATS, parse, write
from headgate.errors import InvalidDataflow
from headgate.model.dataflow import Dataflow
from headgate.tasks.registry import default_registry
from tests.samples import ENDINGS, TEXTS

REGISTRY = default_registry()
SECONDS_AT_MOST = 3.0

Path = tuple[str | int, ...]

SNIPPETS = [
    *("\x00", "\n", "\t", " ", "'", '"', "`", "\\", "\x1b", "\x7f", "\x85", "\u2028", "\ufeff", "\U0001f30a", "ü"),
    *("{", "}", "[", "]", ":", ",", "- ", "? ", "&a ", "*a", "!!int ", "!x ", "|", ">", "#", "---\n", "...\n", "<<: "),
    *("<", "/>", "</PE>", "<PE>", "<!--", "-->", "<![CDATA[", "]]>", "&lt;", "&x;", "&#0;", "<?x?>", "<!DOCTYPE x>"),
    *(
        "null",
        "true",
        "1e999",
        "-1",
        "NaN",
        "9" * 5000,
        "0x" + "f" * 5000,
        "id",
        "type",
        "from",
        "tasks",
        "(",
        ")",
        "=",
    ),
]


def check_told(data: bytes | str, form: str) -> Dataflow | None:
    """Parse; whatever comes in, out comes a dataflow or a list of faults that can be shown."""
    file = f"hostile{ENDINGS[form]}"
    started = time.process_time()
    try:
        dataflow = parse(data, form, REGISTRY, file).dataflow
    except InvalidDataflow as error:
        dataflow = None
        check_faults(error, file, data)
    assert time.process_time() - started < SECONDS_AT_MOST
    return dataflow


def check_faults(error: InvalidDataflow, file: str, data: bytes | str) -> None:
    """Each fault is one printable line that begins with the file and a line of it."""
    lines = len(data.splitlines()) + 1
    assert error.faults
    for fault in error.faults:
        told = str(fault)
        assert told.isprintable()
        assert told.startswith(f"{file}:")
        assert fault.message
        assert fault.place.line is not None
        assert 1 <= fault.place.line <= lines
        json.dumps(fault.as_dict(), ensure_ascii=False).encode("utf-8")


def check_holds(data: bytes | str, form: str) -> None:
    """As :func:`check_told`; and if it was valid after all, every format can hold it."""
    dataflow = check_told(data, form)
    if dataflow is not None:
        for other in FORMATS:
            assert parse(write(dataflow, other, REGISTRY), other, REGISTRY).dataflow == dataflow


def ran(count: int, strategy: st.SearchStrategy[Any], check: Callable[[Any], None]) -> int:
    """Check that many generated inputs; how many there were."""
    seen = 0

    @settings(max_examples=count)
    @given(strategy)
    def run(value: Any) -> None:
        nonlocal seen
        seen += 1
        check(value)

    run()
    return seen


@st.composite
def damaged(draw: st.DrawFn, text: str) -> bytes:
    """A text with a few bytes deleted, inserted, doubled or swapped."""
    data = text.encode("utf-8")
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        end = min(start + draw(st.integers(1, 12)), len(data))
        kind = draw(st.integers(0, 4))
        if kind == 0:
            data = data[:start] + data[end:]
        elif kind == 1:
            data = data[:start] + draw(st.sampled_from(SNIPPETS)).encode("utf-8") + data[start:]
        elif kind == 2:
            data = data[:end] + data[start:end] + data[end:]
        elif kind == 3:
            data = data[:start] + draw(st.binary(min_size=1, max_size=3)) + data[end:]
        else:
            data = data[:start] + data[start:end][::-1] + data[end:]
    return data


@st.composite
def rearranged(draw: st.DrawFn, text: str) -> str:
    """A text with a few lines deleted, doubled, swapped, indented or cut short."""
    lines = text.splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 3))):
        one, two = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
        kind = draw(st.integers(0, 5))
        if kind == 0 and len(lines) > 1:
            del lines[one]
        elif kind == 1:
            lines.insert(two, lines[one])
        elif kind == 2:
            lines[one], lines[two] = lines[two], lines[one]
        elif kind == 3:
            lines[one] = "  " + lines[one]
        elif kind == 4:
            lines[one] = lines[one][: draw(st.integers(0, len(lines[one])))]
        else:
            lines[one] = lines[two]
    return "".join(lines)


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every place in a document, itself included."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*path, key))


def with_value(document: Any, path: Path, value: Any) -> Any:
    """The document with another value at a place."""
    if not path:
        return value
    key, *rest = path
    if isinstance(document, dict):
        return document | {key: with_value(document[str(key)], tuple(rest), value)}
    assert isinstance(document, list)
    assert isinstance(key, int)
    return [*document[:key], with_value(document[key], tuple(rest), value), *document[key + 1 :]]


def deep_list(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


__all__ = [
    "ENDINGS",
    "REGISTRY",
    "SNIPPETS",
    "TEXTS",
    "check_faults",
    "check_holds",
    "check_told",
    "damaged",
    "deep_list",
    "places",
    "ran",
    "rearranged",
    "with_value",
]
