"""When a fragment that left the plan may be stopped: once it has read all that was on its way to it."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.runtime.compile.plan import CompiledPlan, Kind
from headgate.runtime.epochs.fragment import RunningFragment
from headgate.runtime.exchange.files import FileExchange

__all__ = ["is_drained"]


def is_drained(
    fragment: RunningFragment, last: CompiledPlan, running: Mapping[str, RunningFragment], exchange: FileExchange
) -> bool:
    """Whether a fragment has read all that was on its way to it when it left the plan; ``last`` is its last plan."""
    quiet = _is_quiet(fragment.fragment.id, last, running, exchange, set())
    return quiet and all(exchange.position(t) >= exchange.head(t) for t in fragment.fragment.reads)


def _is_quiet(
    reader: str, last: CompiledPlan, running: Mapping[str, RunningFragment], exchange: FileExchange, seen: set[str]
) -> bool:
    """Whether no fragment before a reader still has work of its last plan, or of one before that, to do."""
    seen.add(reader)
    for writer in last.fragments.values():
        before = running.get(writer.id)
        if before is None or writer.id in seen or all(topic.reader != reader for topic in writer.writes):
            continue
        if writer.kind in (Kind.SOURCE, Kind.NATIVE):
            done = before.is_past(last.number + 1)
        else:
            done = all(exchange.is_past(topic, last.number + 1) for topic in writer.reads)
        if not done or not _is_quiet(writer.id, last, running, exchange, seen):
            return False
    return True
