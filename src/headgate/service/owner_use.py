"""What owners use of an engine, as it was measured: rows, cores, what is kept for them, what they pay."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from headgate.access.quota import OwnerUse
from headgate.errors import InputError
from headgate.model.cluster.observation import Observation
from headgate.service.bill import BillSpan, bill
from headgate.service.observations import MINUTE, latest

__all__ = ["MeasuredUse", "use_in"]

DAY_S = 86_400.0
AGAIN_S = 5.0
"""How long what was measured is good for."""


class MeasuredUse:
    """What each owner uses now, from the state directory of an engine."""

    def __init__(self, state: Path, clock: Callable[[], float] = time.time) -> None:
        self._state, self._clock = state, clock
        self._at, self._known = -AGAIN_S, dict[str, OwnerUse]()

    def by_owner(self) -> Mapping[str, OwnerUse]:
        """Of owners that have something; dataflows and tasks are not counted."""
        now = self._clock()
        if now - self._at >= AGAIN_S:
            self._known, self._at = self._measured(now), now
        return self._known

    def _measured(self, now: float) -> dict[str, OwnerUse]:
        minute = list[Observation]()
        with suppress(InputError):  # no engine has run here
            minute += latest(self._state, now - 60.0, MINUTE)
        used = use_in(minute)
        if minute:
            for owner, kept in self._kept(minute[-1]).items():
                used[owner] = replace(used.get(owner, OwnerUse()), kept_bytes=kept)
        with suppress(InputError):  # nothing to bill yet
            for line in bill(self._state, BillSpan(since=float(int(now - DAY_S)))).owners:
                used[line.owner] = replace(used.get(line.owner, OwnerUse()), price_per_day=float(line.cost))
        return used

    def _kept(self, seen: Observation) -> dict[str, int]:
        """The bytes of the fragments of each owner; those that are shared count for each."""
        owners = {flow.name: flow.owner for flow in seen.dataflows}
        of_tasks = {task.task: {owners[name] for name in task.dataflows if name in owners} for task in seen.tasks}
        kept: dict[str, int] = defaultdict(int)
        for fragment in seen.fragments:
            size = _bytes_below(self._state / "fragments" / fragment.id)
            for owner in set().union(*(of_tasks.get(task, set()) for task in fragment.tasks)):
                kept[owner] += size
        return dict(kept)


def use_in(intervals: Iterable[Observation]) -> dict[str, OwnerUse]:
    """Rows that the sources of each owner took, and cores that its tasks kept busy; shared tasks are divided."""
    rows: dict[str, float] = defaultdict(float)
    cpu_s: dict[str, float] = defaultdict(float)
    seconds = 0.0
    for seen in intervals:
        seconds += seen.seconds
        owners = {flow.name: flow.owner for flow in seen.dataflows}
        for source in seen.sources:
            for owner in {owners[name] for name in source.dataflows if name in owners}:
                rows[owner] += source.rows_taken
        for task in seen.tasks:
            its = {owners[name] for name in task.dataflows if name in owners}
            for owner in its if task.profile is not None else ():
                cpu_s[owner] += task.rows_in * (task.profile.cpu_s_per_row if task.profile else 0.0) / len(its)
    return {
        owner: OwnerUse(rows_per_s=rows[owner] / seconds, cores=cpu_s[owner] / seconds)
        for owner in rows.keys() | cpu_s.keys()
        if seconds > 0
    }


def _bytes_below(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        with suppress(OSError):  # it is gone
            total += file.stat().st_size
    return total
