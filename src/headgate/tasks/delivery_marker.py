"""Which deliveries a sink has written, as a text that is kept where the rows are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Marker"]

RUNS = 16
"""Runs of fragments that are remembered: a sink is fed by one, for a moment by two."""

Last = tuple[int, tuple[str, ...]]
"""The last epoch of a run, and the snapshots of it that were written."""


@dataclass(frozen=True, slots=True)
class Marker:
    """The last delivery of each run. Epochs of a run come in order; one may have a delivery for each snapshot.

    >>> marker = Marker().with_delivery("a1-7", 3)
    >>> [marker.has("a1-7", 2), marker.has("a1-7", 3), marker.has("a1-8", 3), marker.has("b2-7", 2)]
    [True, True, False, False]
    >>> Marker.parse(str(marker)) == marker
    True
    """

    last: Mapping[str, Last] = field(default_factory=dict)

    def has(self, origin: str, epoch: int) -> bool:
        """Whether a delivery has been written."""
        run, _, snapshot = origin.rpartition("-")
        done, snapshots = self.last.get(run, (-1, ()))
        return epoch < done or (epoch == done and snapshot in snapshots)

    def with_delivery(self, origin: str, epoch: int) -> Marker:
        """The marker once a delivery has been written too."""
        run, _, snapshot = origin.rpartition("-")
        done, snapshots = self.last.get(run, (-1, ()))
        others = [(name, last) for name, last in self.last.items() if name != run]
        here = (epoch, (*snapshots, snapshot) if epoch == done else (snapshot,))
        return Marker(dict([*others, (run, here)][-RUNS:]))

    def __str__(self) -> str:
        return json.dumps(self.last, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Marker:
        """The marker of a text; an empty one of no text."""
        stored = json.loads(text or "{}")
        return cls({run: (int(epoch), tuple(snapshots)) for run, (epoch, snapshots) in stored.items()})
