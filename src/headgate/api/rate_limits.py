"""How often somebody may ask: a bucket of requests for each, which fills again all the time."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from headgate.errors import InputError

__all__ = ["RateLimit", "TooManyRequests"]

MOST_CALLERS = 10_000


class TooManyRequests(InputError):
    """Somebody asks more often than they may."""


class RateLimit:
    """So many requests a second for each caller, and some at once.

    >>> now = [0.0]
    >>> limit = RateLimit(per_s=1.0, burst=2, clock=lambda: now[0])
    >>> [limit.allows("ana") for _ in range(3)], limit.allows("ben")
    ([True, True, False], True)
    >>> now[0] = 1.0
    >>> limit.allows("ana"), limit.allows("ana")
    (True, False)
    """

    def __init__(self, per_s: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s, self._burst, self._clock = per_s, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, caller: str, taken: float = 1.0) -> bool:
        """Whether there is room for a request, which is taken then."""
        now = self._clock()
        left, at = self._left.pop(caller, (self._burst, now))
        left = min(left + (now - at) * self._per_s, self._burst)
        allowed = left >= 1.0
        self._left[caller] = (left - taken if allowed else left, now)
        if len(self._left) > MOST_CALLERS:  # who has not asked for longest
            self._left.popitem(last=False)
        return allowed

    def check(self, caller: str, taken: float = 1.0) -> None:
        """Raise :class:`TooManyRequests` if there is no room."""
        if not self.allows(caller, taken):
            message = f"'{caller}' asks too often: at most {self._per_s:g} requests a second. Try again in a second."
            raise TooManyRequests("TOO_MANY_REQUESTS", message)
