"""Sources of owners who take more rows than they may are limited, each by its part; those that others share are not."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from headgate.access.quota import Quota
from headgate.access.rules import TenantRules
from headgate.errors import InputError
from headgate.model.cluster.observation import Observation
from headgate.service.engine import RunningEngine
from headgate.service.observations import MINUTE, latest
from headgate.store.files import read_json, write_json

__all__ = ["Throttle", "source_limits"]

EVERY_S = 10.0
CALM = 0.8
"""Below this part of its quota, an owner that has nothing waiting needs no limits."""

CLOSE = 0.25
"""Limits that differ by less stay as they are."""


def source_limits(
    minute: Sequence[Observation],
    quotas: Mapping[str, Quota],
    usual: Quota,
    trigger_s: float,
    limited: Mapping[str, int],
) -> dict[str, int]:
    """Rows for each trigger, of the sources that are to be limited, by the source's signature.

    ``limited`` are those that are limited already.
    """
    seconds = sum(seen.seconds for seen in minute)
    if seconds <= 0:
        return dict(limited)
    owners = {flow.name: flow.owner for seen in minute for flow in seen.dataflows}
    taken, waiting = dict[str, float](), dict[str, float]()
    by_owner = dict[str, list[str]]()
    for seen in minute:
        for source in seen.sources:
            its = {owners[name] for name in source.dataflows if name in owners}
            if len(its) == 1:
                name = str(source.task)
                taken[name] = taken.get(name, 0.0) + source.rows_taken / seconds
                waiting[name] = source.rows_waiting or 0.0
                (owner,) = its
                if name not in by_owner.setdefault(owner, []):
                    by_owner[owner].append(name)
    wanted = dict[str, int]()
    for owner, sources in by_owner.items():
        most = quotas.get(owner, usual).rows_per_s
        if most is None:
            continue
        total = sum(taken[name] for name in sources)
        is_limited = any(name in limited for name in sources)
        is_busy = is_limited and (total > CALM * most or any(waiting[name] > most for name in sources))
        if total > most or is_busy:
            parts = {name: taken[name] / total if total else 1 / len(sources) for name in sources}
            wanted |= {name: max(int(most * trigger_s * part), 1) for name, part in parts.items()}
    return {name: _kept(limited.get(name), rows) for name, rows in wanted.items()}


def _kept(before: int | None, rows: int) -> int:
    return rows if before is None or abs(rows - before) > CLOSE * before else before


@dataclass(slots=True)
class Throttle:
    """Applies the limits of an engine's owners now and then, and remembers which are its own."""

    engine: RunningEngine
    rules: TenantRules
    trigger_s: float
    clock: Callable[[], float] = time.time
    _at: float = 0.0

    def look(self) -> None:
        """Compare what came in the last minute with the quotas."""
        now = self.clock()
        quotas = [self.rules.quota, *self.rules.quotas.values()]
        if now - self._at < EVERY_S or all(one.rows_per_s is None for one in quotas):
            return
        self._at = now
        state = Path(self.engine.about()["state"])
        file = state / "throttled.json"
        before: dict[str, int] = read_json(file) or {}
        minute = latest(state, now - 60.0, MINUTE)
        wanted = source_limits(minute, self.rules.quotas, self.rules.quota, self.trigger_s, before)
        changed = {
            name: wanted.get(name) for name in before.keys() | wanted.keys() if wanted.get(name) != before.get(name)
        }
        if changed:
            write_json(file, wanted)
            self._limit(changed)

    def _limit(self, changed: Mapping[str, int | None]) -> None:
        running = self.engine.shared.running.submitted
        done = set[str]()
        for flow, submitted in running.items():
            for task, signature in submitted.signatures.items():
                if signature in changed and signature not in done:
                    done.add(signature)
                    with suppress(InputError):  # a source that takes no limit
                        self.engine.limit(flow, task, changed[signature])
