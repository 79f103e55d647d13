"""Under which change each row was processed: the assignment with the fewest contradictions.

The changes of a dataflow divide the rows of its source, in order: those before the first change, those after it, and
so on. Where one part ends and the next begins nobody outside knows exactly. But a row that arrived after a change was
answered belongs to that change or to a later one. A change whose outcome the client never learnt binds no row, so the
part after it may be empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from tests.judge.history import Change

__all__ = ["Timeline", "timeline_of"]

NEVER = 10**9


@dataclass(frozen=True, slots=True)
class Timeline:
    """The rows of a dataflow's source by the change that they belong to; part 0 is before the first change."""

    labels: Sequence[str | None]
    """What the rows of each part carry."""

    parts: Sequence[int]
    """For each row, its part."""

    earliest: Sequence[int]
    latest: Sequence[int]
    """For each part, between which rows it may begin, in all assignments with as few contradictions."""


def timeline_of(
    name: str, changes: Sequence[Change], arrived: Sequence[float], observed: Sequence[str | None]
) -> Timeline:
    """Divide the rows of a dataflow's source by its changes, from the labels that were observed."""
    labels = [None, *(change.labels[name] for change in changes)]
    answered = [(change.answered, part) for part, change in enumerate(changes, 1)]
    bound = [max((part for at, part in answered if at is not None and at < came), default=0) for came in arrived]
    # Rows are in the order of files, and parts never go back in it.
    costs = _costs(labels, list(accumulate(bound, max)), observed)
    late, early = _assignment(costs, begin_late=True), _assignment(costs, begin_late=False)
    begins = [(_begin(early, part), _begin(late, part)) for part in range(len(labels))]
    return Timeline(labels, late, [first for first, _ in begins], [last for _, last in begins])


def _costs(labels: Sequence[str | None], bound: Sequence[int], observed: Sequence[str | None]) -> list[list[int]]:
    """For each row and part, the fewest contradictions up to that row if it belongs to that part."""
    costs = []
    before = [0] * len(labels)
    for least, label in zip(bound, observed, strict=True):
        so_far = accumulate(before, min)
        before = [NEVER if part < least else cost + (labels[part] != label) for part, cost in enumerate(so_far)]
        costs.append(before)
    return costs


def _assignment(costs: Sequence[Sequence[int]], begin_late: bool) -> list[int]:
    """The assignment with the fewest contradictions whose parts begin as late as can be, or as early."""
    parts: list[int] = []
    most = len(costs[0]) - 1 if costs else 0
    for row in reversed(costs):
        least = min(row[: most + 1])
        choices = [part for part in range(most + 1) if row[part] == least]
        most = choices[0] if begin_late else choices[-1]
        parts.append(most)
    return parts[::-1]


def _begin(parts: Sequence[int], part: int) -> int:
    return next((at for at, of in enumerate(parts) if of >= part), len(parts))
