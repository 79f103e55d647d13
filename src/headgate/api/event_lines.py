"""The lines of an event stream, read as events (WHATWG HTML, section 9.2)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

__all__ = ["EventLines", "StreamEvent"]


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """An event of a stream."""

    topic: str
    data: Any
    id: str | None
    """From where to go on; none if this event has no history."""


class EventLines:
    """Makes events of lines, and remembers from where to go on.

    >>> lines = EventLines()
    >>> [lines.take(line) for line in ("event: plan", "id: 7.0", 'data: {"snapshot": 3}', "")][-1]
    StreamEvent(topic='plan', data={'snapshot': 3}, id='7.0')
    >>> lines.headers()
    {'Last-Event-ID': '7.0'}
    """

    def __init__(self, after: str | None = None) -> None:
        self._after = after
        self._fields: dict[str, str] = {}

    def headers(self) -> dict[str, str]:
        """What to ask with, to go on; a line that was cut short is forgotten."""
        self._fields = {}
        return {} if self._after is None else {"Last-Event-ID": self._after}

    def take(self, line: str) -> StreamEvent | None:
        """Take a line; an empty one ends an event."""
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            before = self._fields.get("data")
            self._fields[name] = f"{before}\n{value}" if name == "data" and before is not None else value
            return None
        given, self._fields = self._fields, {}
        if "data" not in given:
            return None  # a comment that keeps the connection alive
        self._after = given.get("id", self._after)
        return StreamEvent(given.get("event", "message"), json.loads(given["data"]), given.get("id"))
