"""Dataflows as JSON.

The standard library parses; it knows no lines, so when a fault must be placed the text, by then known to be JSON, is
cut into tokens once more to find them.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from headgate.documents.located import Located, Mark, MarkedDict, MarkedList, with_tasks
from headgate.errors import Fault, InvalidDataflow, Place, shorten

__all__ = ["read", "write"]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+|\n', re.DOTALL)
_HUGE = re.compile(r"-?\d{4301,}\Z")
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
MAX_DEPTH = 100


def read(text: str, file: str | None = None) -> Located:
    """Parse JSON; raises :class:`InvalidDataflow` when the text is not JSON at all.

    >>> located = read('{"name": "city",\\n "tasks": [{"id": "a"}]}')
    >>> located.value, located.place(["tasks", 0, "id"]).line
    ({'name': 'city', 'tasks': [{'id': 'a'}]}, 2)
    """
    odd = False

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal odd
        mapping = dict(items)
        odd = odd or len(mapping) < len(items)
        return mapping

    def constant(_: str) -> int:
        nonlocal odd
        odd = True
        return 0

    def integer(digits: str) -> int:
        nonlocal odd
        huge = _HUGE.match(digits) is not None
        odd = odd or huge
        return 0 if huge else int(digits)

    try:
        try:
            value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
        except json.JSONDecodeError:
            raise
        except ValueError:  # a number with more digits than Python will read; looking at each of them takes longer
            value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_int=integer)
    except json.JSONDecodeError as error:
        place = Place(file, error.lineno, error.colno)
        raise InvalidDataflow(
            [Fault("NOT_JSON", f"this is not JSON: {error.msg[0].lower()}{error.msg[1:]}", place)]
        ) from None
    except RecursionError:
        message, expected = f"nested deeper than {MAX_DEPTH} levels", "a flatter document"
        raise InvalidDataflow([Fault("TOO_DEEP", message, _too_deep(text, file), expected=expected)]) from None

    marked = lru_cache(maxsize=1)(lambda: _marked(text, file)[0])
    if not odd:
        return Located(value, file, marked)
    tree, faults = _marked(text, file)
    return Located(value, file, marked, with_tasks(faults, tree, value))


def _too_deep(text: str, file: str | None) -> Place:
    depth, line = 0, 1
    for match in _TOKEN.finditer(text):
        token = match.group()
        depth += (token in "{[") - (token in "}]")
        line += token.count("\n")
        if depth > MAX_DEPTH:
            break
    return Place(file, line)


def _marked(text: str, file: str | None) -> tuple[Any, tuple[Fault, ...]]:
    """The marks of a text that is known to be JSON, and its oddities: keys given twice, numbers out of all bounds."""
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
            if token in _NOT_FINITE:
                message = f"this is not JSON: {token} is not a number"
                faults.append(Fault("NOT_JSON", message, Place(file, *mark), expected="a finite number"))
            elif _HUGE.match(token):
                message = f"a number of {len(token):,} digits"
                faults.append(Fault("HUGE_NUMBER", message, Place(file, *mark), expected="at most 4,300 digits"))
            value: Any = MarkedDict(mark) if token == "{" else MarkedList(mark) if token == "[" else None
            if not stack:
                root = value
            elif isinstance(stack[-1], MarkedDict):
                key, key_mark = keys[-1] or ("", mark)
                if key in stack[-1]:
                    message = f"key {shorten(key)} is given twice, first on line {stack[-1].marks[key][0]}"
                    faults.append(Fault("DUPLICATE_KEY", message, Place(file, *key_mark), expected="each key once"))
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
