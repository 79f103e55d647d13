"""Spans of time as dataflow files write them: ``500ms``, ``10s``, ``5min``, ``1h``, ``1d``."""

from __future__ import annotations

import re

__all__ = ["seconds_of", "span_text"]

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|h|d)\Z")
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}


def seconds_of(text: str) -> float | None:
    """How many seconds a span lasts; ``None`` if the text is none.

    >>> seconds_of("500ms"), seconds_of("2 min"), seconds_of("soon")
    (0.5, 120.0, None)
    """
    match = _SPAN.match(text.strip()) if len(text) <= 40 else None
    return None if match is None else float(match[1]) * _SECONDS[match[2]]


def span_text(seconds: float) -> str:
    """A span of whole milliseconds, as a text that :func:`seconds_of` reads back.

    >>> span_text(0.25), span_text(90.0)
    ('250ms', '90s')
    """
    count_ms = round(seconds * 1_000)
    return f"{count_ms}ms" if count_ms % 1_000 else f"{count_ms // 1_000}s"
