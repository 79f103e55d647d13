"""What the outside world saw of an engine: files that arrived, changes that were asked for, processes that were killed.

Clocks are those of the one client, in seconds; a file has arrived, and a request was answered, at some moment between
two readings of its clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Arrival", "Change", "History", "Kill", "Row"]

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Arrival:
    """A file that was moved into the source's folder, whole."""

    name: str
    modified_ns: int
    rows: Sequence[Row]
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Change:
    """A request to change what runs, and what it makes of dataflows.

    ``labels`` has the label that rows of a dataflow carry from this change on; ``None`` means that there are no rows.
    Of all dataflows of a change, every row sees either the label before or the one after.
    """

    kind: str
    labels: Mapping[str, str | None]
    sent: float
    answered: float | None = None
    """When the client knew that it was made: by its answer, by asking again, or by what the engine listed."""

    made: bool | None = None
    """Whether it was made, as far as the client knows; ``None`` if it never learnt."""


@dataclass(frozen=True, slots=True)
class Kill:
    """A process that was killed, or that ended itself at a durable step."""

    at: float
    what: str


@dataclass(slots=True)
class History:
    """All of it, in the order in which it happened."""

    arrivals: list[Arrival] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)
    """Answers of the engine that contradict each other: part of a change is listed, or what was made is refused."""

    def rows(self) -> list[tuple[Row, float]]:
        """All rows in the order in which a source of files gives them, each with the moment from which it was there."""
        ordered = sorted(self.arrivals, key=lambda one: (one.modified_ns, one.name))
        return [(row, arrival.began) for arrival in ordered for row in arrival.rows]

    def near(self, at: float) -> str:
        """The kills around a moment, for a person who looks for the reason."""
        around = [kill for kill in self.kills if at - 5 < kill.at < at + 60][:2]
        return "; ".join(f"{kill.what} at {kill.at - at:+.2f} s" for kill in around) or "no kill"
