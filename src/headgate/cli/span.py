"""Spans of time as options of commands."""

from __future__ import annotations

import re

from headgate.errors import InputError

__all__ = ["seconds"]

_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}


def seconds(option: str, text: str) -> float:
    """Read a span of time, in the words of dataflow files.

    >>> seconds("--trigger", "500ms"), seconds("--for", "2min")
    (0.5, 120.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|min|h|d)", text.strip()[:40])
    if found is None or float(found[1]) == 0:
        raise InputError("BAD_SPAN", f"{option} {text[:40]!r} is not a span of time, such as 500ms, 10s, 5min, 1h, 1d")
    return float(found[1]) * _SECONDS[found[2]]
