"""Sums over all intervals since the service began: what counters are made of. The number of names is bounded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headgate.model.cluster.observation import Observation

__all__ = ["OTHER", "LabelCap", "Tally"]

OTHER = "other"
MOST_NAMES = 500

Labels = tuple[str, ...]
Sums = dict[Labels, float]


class LabelCap:
    """Keeps the first names that it sees; later ones share one, so that no number of dataflows fills a database.

    >>> names = LabelCap(most=2)
    >>> [names(name) for name in ("a", "b", "c", "a")]
    ['a', 'b', 'other', 'a']
    """

    def __init__(self, most: int = MOST_NAMES) -> None:
        self._most, self._names = most, set[str]()

    def __call__(self, name: str) -> str:
        if name not in self._names:
            if len(self._names) >= self._most:
                return OTHER
            self._names.add(name)
        return name


def _sums() -> Sums:
    return defaultdict(float)


@dataclass(slots=True)
class Tally:
    """Sums by labels."""

    source_rows: Sums = field(default_factory=_sums)
    sink_rows: Sums = field(default_factory=_sums)
    task_rows: Sums = field(default_factory=_sums)
    task_errors: Sums = field(default_factory=_sums)
    epochs: Sums = field(default_factory=_sums)
    epoch_seconds: Sums = field(default_factory=_sums)
    level_seconds: Sums = field(default_factory=_sums)
    dead_letters: Sums = field(default_factory=_sums)
    until: float = 0.0
    """When the last interval that is counted ended."""

    _flows: LabelCap = field(default_factory=LabelCap)
    _tasks: LabelCap = field(default_factory=LabelCap)
    _dead_before: dict[str, int] = field(default_factory=dict)

    def flow(self, name: str) -> str:
        """The label of a dataflow."""
        return self._flows(name)

    def task(self, name: str) -> str:
        """The label of a task, source or sink."""
        return self._tasks(name)

    def add(self, intervals: Iterable[Observation]) -> None:
        """Count intervals that are later than what is counted."""
        for seen in intervals:
            if seen.ended > self.until:
                self.until = seen.ended
                self._rows(seen)
                self._levels(seen)

    def add_dead(self, dead: Mapping[str, int]) -> None:
        """Count dead letters, of which an engine says how many there are; a new engine may begin at 0 again."""
        for name, rows in dead.items():
            before = self._dead_before.get(name, 0)
            self.dead_letters[self.flow(name),] += rows - before if rows >= before else rows
        self._dead_before = dict(dead)

    def _rows(self, seen: Observation) -> None:
        for source in seen.sources:
            self.source_rows[self.task(source.name),] += source.rows_taken
        for sink in seen.sinks:
            self.sink_rows[self.task(sink.name),] += sink.rows
        for task in seen.tasks:
            self.task_rows[self.task(task.name),] += task.rows_in
            if task.errors:
                self.task_errors[self.task(task.name),] += task.errors
        for part in seen.fragments:
            self.epochs[part.kind,] += part.batches
            for phase in ("planning", "scheduling", "execution", "commit"):
                self.epoch_seconds[part.kind, phase] += getattr(part, f"{phase}_s")

    def _levels(self, seen: Observation) -> None:
        for flow in seen.dataflows:
            figures = flow.figures
            if figures is not None and figures.within is not None:
                outcome = "met" if figures.within else "missed"
                self.level_seconds[self.flow(flow.name), flow.owner, outcome] += seen.seconds
                # So that a rate over both has a value from the beginning.
                self.level_seconds[self.flow(flow.name), flow.owner, "missed" if figures.within else "met"] += 0.0
