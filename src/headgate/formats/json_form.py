"""Dataflows as JSON.

The standard library parses; it knows no lines, so when a fault must be placed the text, by then known to be JSON, is
cut into tokens once more to find them.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from headgate.errors import Fault, InvalidDataflow, Place, shorten
from headgate.formats.located import Located, Mark, MarkedDict, MarkedList

__all__ = ["read", "write"]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+|\n', re.DOTALL)
_HUGE = re.compile(r"\d{4301,}")


def read(text: str, file: str | None = None) -> Located:
    """Parse JSON; raises :class:`InvalidDataflow` when the text is not JSON at all.

    >>> located = read('{"name": "city",\\n "tasks": [{"id": "a"}]}')
    >>> located.value, located.place(["tasks", 0, "id"]).line
    ({'name': 'city', 'tasks': [{'id': 'a'}]}, 2)
    """
    repeated = False

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        found = dict(items)
        repeated = repeated or len(found) < len(items)
        return found

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        place = Place(file, error.lineno, error.colno)
        raise InvalidDataflow(
            [Fault("NOT_JSON", f"this is not JSON: {error.msg[0].lower()}{error.msg[1:]}", place)]
        ) from None
    except RecursionError:
        raise InvalidDataflow(
            [Fault("TOO_DEEP", "nested far too deeply", Place(file), expected="at most 100 levels")]
        ) from None
    except _NotANumber as error:
        line = text.count("\n", 0, max(text.find(str(error)), 0)) + 1
        told = f"this is not JSON: {error} is not a number"
        raise InvalidDataflow([Fault("NOT_JSON", told, Place(file, line), expected="a finite number")]) from None
    except ValueError:
        match = _HUGE.search(text)
        place = Place(file, text.count("\n", 0, match.start()) + 1 if match else None)
        raise InvalidDataflow(
            [Fault("HUGE_NUMBER", "a number of thousands of digits", place, expected="at most 4,300 digits")]
        ) from None

    marked = lru_cache(maxsize=1)(lambda: _marked(text, file)[0])
    return Located(value, file, marked, _marked(text, file)[1] if repeated else ())


class _NotANumber(Exception):
    pass


def _refuse(constant: str) -> object:
    raise _NotANumber(constant)


def _marked(text: str, file: str | None) -> tuple[Any, tuple[Fault, ...]]:
    """The marks of a text that is known to be JSON, and the keys that it gives twice."""
    faults: list[Fault] = []
    root: Any = None
    stack: list[MarkedDict | MarkedList] = []
    keys: list[tuple[str, Mark] | None] = []
    line, line_start = 1, 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == "\n":
            line, line_start = line + 1, match.end()
        elif token in ":,":
            continue
        elif token in "}]":
            stack.pop()
            keys.pop()
        else:
            mark = (line, match.start() - line_start + 1)
            if stack and isinstance(stack[-1], MarkedDict) and keys[-1] is None:
                keys[-1] = (json.loads(token), mark)
                continue
            value: Any = MarkedDict(mark) if token == "{" else MarkedList(mark) if token == "[" else None
            if not stack:
                root = value
            elif isinstance(stack[-1], MarkedDict):
                key, key_mark = keys[-1] or ("", mark)
                if key in stack[-1]:
                    told = f"key {shorten(key)} is given twice, first on line {stack[-1].marks[key][0]}"
                    faults.append(Fault("DUPLICATE_KEY", told, Place(file, *key_mark), expected="each key once"))
                stack[-1].put(key, value, key_mark)
                keys[-1] = None
            else:
                stack[-1].put(value, mark)
            if value is not None:
                stack.append(value)
                keys.append(None)
    return root, tuple(faults)


def write(document: dict[str, Any]) -> str:
    """Write a document as JSON that this module reads back exactly."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
