"""For how long a dataflow has been within its service level, and what is left of the month's error budget. Pure."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from headgate.model.service_level import ServiceLevel

__all__ = ["DAY_S", "LevelStatus", "LevelTime", "month_of", "month_s"]

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class LevelTime:
    """Seconds in which a running dataflow was as agreed, in which it was not, and of which that is not known.

    Time in which it was paused, or no engine ran, is in none of them. A month is one of the calendar, in UTC.
    """

    within_s: float = 0.0
    outside_s: float = 0.0
    unknown_s: float = 0.0
    month: str = ""
    month_outside_s: float = 0.0

    def after(self, ended: float, seconds: float, within: bool | None) -> LevelTime:
        """With one more interval; it belongs to the month in which it ended.

        >>> one = LevelTime().after(1_000.0, 5.0, True).after(1_005.0, 5.0, False).after(1_010.0, 2.0, None)
        >>> one
        LevelTime(within_s=5.0, outside_s=5.0, unknown_s=2.0, month='1970-01', month_outside_s=5.0)
        >>> one.after(1_000.0 + 31 * DAY_S, 5.0, True).month_outside_s
        0.0
        """
        month = month_of(ended)
        name = "unknown_s" if within is None else "within_s" if within else "outside_s"
        missed = self.month_outside_s if month == self.month else 0.0
        missed += seconds if within is False else 0.0
        return replace(self, month=month, month_outside_s=missed, **{name: getattr(self, name) + seconds})

    @property
    def share(self) -> float | None:
        """Share of the known time in which the dataflow was as agreed; none if nothing is known."""
        known = self.within_s + self.outside_s
        return self.within_s / known if known else None


@dataclass(frozen=True, slots=True)
class LevelStatus:
    """What was agreed for a dataflow, and how well that has been kept since it was submitted."""

    level: ServiceLevel
    changed: bool = False
    """Whether it was changed since the dataflow was submitted."""

    within_s: float = 0.0
    outside_s: float = 0.0
    unknown_s: float = 0.0
    share: float | None = None
    """Of the known time, in which the dataflow was as agreed."""

    month: str = ""
    budget_s: float = 0.0
    """Seconds of the month in which it may be outside."""

    budget_left_s: float = 0.0
    """What is left of them; negative if it was outside for longer."""

    @classmethod
    def of(cls, level: ServiceLevel, time: LevelTime, now: float, *, changed: bool = False) -> LevelStatus:
        """At a moment.

        >>> time = LevelTime(90.0, 10.0, 0.0, "1970-01", 10.0)
        >>> status = LevelStatus.of(ServiceLevel(time_within_min=0.99), time, 1_000.0)
        >>> status.share, round(status.budget_s), round(status.budget_left_s)
        (0.9, 26784, 26774)
        """
        month = month_of(now)
        budget_s = (1.0 - level.time_within_min) * month_s(month)
        left_s = budget_s - (time.month_outside_s if time.month == month else 0.0)
        return cls(level, changed, time.within_s, time.outside_s, time.unknown_s, time.share, month, budget_s, left_s)


def month_of(moment: float) -> str:
    """The month of a moment, such as 2026-11."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m")


def month_s(month: str) -> float:
    """How long a month is.

    >>> month_s("2026-11") / DAY_S
    30.0
    """
    year, number = month.split("-")
    return monthrange(int(year), int(number))[1] * DAY_S
