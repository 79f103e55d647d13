"""From where a dataflow reads its sources: ``earliest``, ``now``, a time, an age, or where another dataflow stands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from headgate.errors import BadValue, shorten
from headgate.model.names import NAME_PATTERN
from headgate.model.span import seconds_of, span_text

__all__ = ["START_FORMS", "Start", "StartKind"]

START_FORMS = "earliest, now, a time such as 2026-11-01T00:00Z, an age such as 6h, or 'with NAME'"
_WITH = re.compile(rf"with\s+({NAME_PATTERN.removeprefix('^').removesuffix('$')})\Z")


class StartKind(StrEnum):
    """What a start is counted from."""

    EARLIEST = "earliest"
    NOW = "now"
    TIME = "time"
    AGE = "age"
    WITH = "with"


@dataclass(frozen=True, slots=True)
class Start:
    """From where a dataflow reads; what it means follows from the dataflow and its sources alone."""

    kind: StartKind
    at: datetime | None = None
    age_s: float = 0.0
    name: str = ""
    """Of the other dataflow."""

    @classmethod
    def parse(cls, text: str) -> Start:
        """Read a start as dataflow files have it; raises :class:`BadValue` for any other text.

        >>> [str(Start.parse(text)) for text in ("earliest", "6h", "2026-11-01T01:00+01:00", "with base")]
        ['earliest', '21600s', '2026-11-01T00:00:00Z', 'with base']
        """
        given = text.strip()
        if given in (StartKind.EARLIEST, StartKind.NOW):
            return cls(StartKind(given))
        if (known := _WITH.match(given)) is not None:
            return cls(StartKind.WITH, name=known[1])
        if (seconds := seconds_of(given)) is not None and seconds > 0:
            return cls(StartKind.AGE, age_s=round(seconds, 3))
        try:
            at = datetime.fromisoformat(given)
        except ValueError:
            raise BadValue(f"{shorten(text)} is not a start", START_FORMS) from None
        if at.tzinfo is None:
            raise BadValue(f"{shorten(text)} does not say in which time zone it is", f"{given}Z, or {given}+01:00")
        return cls(StartKind.TIME, at.astimezone(UTC))

    def __str__(self) -> str:
        match self.kind:
            case StartKind.TIME:
                assert self.at is not None
                return self.at.isoformat().replace("+00:00", "Z")
            case StartKind.AGE:
                return span_text(self.age_s)
            case StartKind.WITH:
                return f"with {self.name}"
        return self.kind.value

    def since_s(self, now_s: float) -> float:
        """The time from which it reads, for a time or an age, in seconds since 1970."""
        return self.at.timestamp() if self.at is not None else now_s - self.age_s
