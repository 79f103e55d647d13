"""Spans of time as options of commands."""

from __future__ import annotations

from headgate.errors import InputError
from headgate.model.span import seconds_of

__all__ = ["seconds"]


def seconds(option: str, text: str) -> float:
    """Read a span of time, in the words of dataflow files.

    >>> seconds("--trigger", "500ms"), seconds("--for", "2min")
    (0.5, 120.0)
    """
    span_s = seconds_of(text)
    if not span_s:
        raise InputError("BAD_SPAN", f"{option} {text[:40]!r} is not a span of time, such as 500ms, 10s, 5min, 1h, 1d")
    return span_s
