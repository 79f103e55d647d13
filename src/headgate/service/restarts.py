"""When an engine that has died is started again, and with what. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.model.status import FragmentStatus

__all__ = ["BLAMELESS", "HEALTHY_S", "SPARK_CRASHED", "Restarts", "is_passing", "is_settled"]

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0

HEALTHY_S = 5.0
"""How long an engine must serve before it counts as healthy."""

LOOP = 4
"""So many deaths in a row without health are a crash loop."""

SPARK_CRASHED = "SPARK_CRASHED"
"""Spark's process has ended, and nobody has killed it."""

ALWAYS = ("SPARK_GONE", SPARK_CRASHED)
LATER = ("INTERNAL", "NO_CLUSTER", "NO_MASTER", "NO_ROOM", "SPARK_DID_NOT_START")
"""What may pass by itself, but is a mistake of the user's as long as no engine has run."""

BLAMELESS = ("NO_CLUSTER", "NO_MASTER", "NO_ROOM", "SPARK_DID_NOT_START")
"""What is no dataflow's fault."""


@dataclass(frozen=True, slots=True)
class Restarts:
    """How often an engine has died since it was healthy.

    >>> restarts = Restarts()
    >>> for _ in range(4):
    ...     restarts = restarts.died(blameless=False)
    >>> restarts.pause_s, restarts.is_loop, restarts.healthy().died(blameless=False).pause_s
    (4.0, True, 0.5)
    """

    deaths: int = 0
    blamed: int = 0
    """Those after which a dataflow may be the cause."""

    def died(self, blameless: bool) -> Restarts:
        """One more death; a blameless one is no dataflow's fault, such as a full disk."""
        return Restarts(self.deaths + 1, self.blamed + (not blameless))

    def healthy(self) -> Restarts:
        """It was well for a while."""
        return Restarts()

    @property
    def pause_s(self) -> float:
        """How long to wait before the next start."""
        return float(min(FIRST_PAUSE_S * 2 ** min(self.deaths - 1, 10), LONGEST_PAUSE_S))

    @property
    def is_loop(self) -> bool:
        """Whether the next start is to go on without the dataflow that was submitted last."""
        return self.blamed > 0 and self.blamed % LOOP == 0


def is_passing(condition: str, has_served: bool) -> bool:
    """Whether an engine that ended because of a condition is started again.

    >>> is_passing("NO_MASTER", has_served=True), is_passing("NO_MASTER", has_served=False)
    (True, False)
    """
    return condition in ALWAYS or (has_served and condition in LATER)


def is_settled(fragments: Sequence[FragmentStatus]) -> bool:
    """Whether no fragment has rows waiting without ever having finished an epoch since the start."""
    return all(one.epoch >= 0 or one.behind == 0 or one.failure is not None for one in fragments)
