"""Catching up: where the past of a dataflow ends, how far it is computed, and when it is.

The past of a dataflow that joins a running source is what that source's epochs had read under plans that did not have
the dataflow yet. It ends with the last of them. A bounded source reads up to there, in a fragment of its own; what the
running tasks put out for the dataflow meanwhile waits in the outbox. When all of the past has been put out, the copy is
withdrawn, and what waited follows.

Where the past ends is settled between two epochs of the running source: before the first that runs a plan with the
dataflow, or at any moment between epochs once such a plan is published. Both come to the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from headgate.model.names import DataflowName, Signature
from headgate.model.status import CatchUpStatus, DataflowStatus
from headgate.model.work import Past
from headgate.runtime.compile.plan import CompiledPlan, Fragment, Kind
from headgate.runtime.engine.pending_change import PendingChange
from headgate.runtime.engine.plans import Plans
from headgate.runtime.engine.snapshot import Snapshot
from headgate.runtime.engine.standing import RunningSources, fragment_of
from headgate.runtime.engine.state import StateDirectory
from headgate.runtime.epochs.fragment import RunningFragment
from headgate.runtime.exchange.files import FileExchange
from headgate.runtime.file_source.read_until import ReadUntil, read_until
from headgate.runtime.io.outbox import SinkOutbox
from headgate.sharing.past import past_name
from headgate.store.files import write_text
from headgate.tasks.source_folder import UNTIL, due_in, ended_after

__all__ = ["CatchUps"]


@dataclass(frozen=True, slots=True)
class CatchUps:
    """The catch-ups of an engine."""

    state: StateDirectory
    plans: Plans
    running: Mapping[str, RunningFragment]
    exchange: FileExchange
    outbox: SinkOutbox

    @property
    def sources(self) -> RunningSources:
        """Where the sources stand."""
        return RunningSources(self.state, self.plans, self.running)

    def change(self, allow_partial: bool = False) -> PendingChange:
        """A change to come, which knows where sources stand."""
        now_s = time.time()
        return PendingChange(self.plans.snapshot, now_s=now_s, standing=self.sources, allow_partial=allow_partial)

    # where the past ends

    def settle(self, fragment: Fragment, number: int, offset: Mapping[str, Any]) -> None:
        """Settle where the past of those ends that join a source with snapshot ``number`` or an earlier one.

        To be called before an epoch of the source that runs ``number``; the last one has read up to ``offset``, and has
        been delivered.
        """
        self._settle_bounds(fragment, number, offset)
        if self.plans.snapshot.number >= number:
            self._follow(self.plans(number), fragment.id)

    def _settle_bounds(self, fragment: Fragment, number: int, offset: Mapping[str, Any]) -> None:
        for source in self._unsettled(self.plans.snapshot, fragment, number):
            folder, host = self.state.fragment(fragment_of(source)), fragment.roots[0]
            if self.sources.past_of(host) is Past.FILES:
                past = read_until(self.state.fragment(fragment.id) / "files", offset.get("batch", 0))
                past.store(folder / "files")
            elif (bound := self.sources.bound(host, offset)) is not None:
                write_text(folder / UNTIL, json.dumps(bound), "catch-up-bound")

    def _follow(self, plan: CompiledPlan, writer: str) -> None:
        """Let rows that have waited for a past follow it, in the topics that a source writes again by itself."""
        for topic in _written(plan, writer):
            self.exchange.follow(topic)

    def _follow_idle(self) -> bool:
        """The same for sources that are between two epochs now; returns whether rows have waited."""
        waiting, plan = self.exchange.waited_for(), self.plans.current
        writers = [name for name in self.running if waiting and not waiting.isdisjoint(_written(plan, name))]
        for name in writers:
            fragment = self.running[name]

            def follow(offset: Mapping[str, Any], fragment: RunningFragment = fragment) -> None:
                del offset
                if fragment.is_delivered():
                    self._follow(plan, fragment.fragment.id)

            with suppress(OSError):  # a full disk; it is done again
                fragment.between_epochs(follow)
        return bool(writers)

    def settle_idle(self) -> None:
        """Settle it for sources that are between two epochs now.

        The last one may have been committed and not delivered yet, so nothing follows here.
        """
        snapshot = self.plans.snapshot
        for fragment in list(self.running.values()) if snapshot.catch_ups else ():
            if any(self._unsettled(snapshot, fragment.fragment, snapshot.number)):
                with suppress(OSError):  # a full disk; it is done again
                    fragment.between_epochs(partial(self._settle_bounds, fragment.fragment, snapshot.number))

    def _unsettled(self, snapshot: Snapshot, fragment: Fragment, number: int) -> Iterator[Signature]:
        if fragment.kind is Kind.SOURCE:
            for source, reading in list(snapshot.readings.items()):
                joins = reading.bounded and reading.of == fragment.roots[0] and reading.number <= number
                if joins and not _is_settled(self.state.fragment(fragment_of(source))):
                    yield source

    # when it is computed

    def advance(self, publish: Callable[[PendingChange], object]) -> bool:
        """End catch-ups that have computed what had passed; what waited for them follows.

        Returns whether others go on by themselves.
        """
        self.settle_idle()
        snapshot, ended = self.plans.snapshot, self.ended()
        if ended:
            with suppress(OSError):  # a full disk; it is done again
                publish(PendingChange(snapshot).caught_up(ended))
                for name in ended:
                    self.outbox.rename(snapshot.catch_ups[name].sinks)
                self.outbox.retry()
        return self._follow_idle() or self.under_way()

    def go_on(self, lock: AbstractContextManager[object], publish: Callable[[PendingChange], object]) -> bool:
        """The same, under the lock of all changes, for one who waits."""
        with lock:
            if not self.advance(publish):
                return False
        time.sleep(0.01)
        return True

    def ended(self) -> list[DataflowName]:
        """The dataflows whose past has been put out."""
        snapshot, plan = self.plans.snapshot, self.plans.current
        return [name for name in snapshot.catch_ups if self._has_ended(name, snapshot, plan)]

    def _has_ended(self, name: DataflowName, snapshot: Snapshot, plan: CompiledPlan) -> bool:
        tasks = snapshot.submitted(past_name(name)).signatures.values()
        computed = all(self._is_quiet(fragment, plan) for fragment in plan.fragments_of(tasks))
        return computed and not any(self.outbox.keeps(sink) for sink in snapshot.catch_ups[name].sinks)

    def _is_quiet(self, name: str, plan: CompiledPlan) -> bool:
        """Whether a fragment of a past has put out all; those that it reads are looked at first."""
        fragment = self.running.get(name)
        if fragment is None or fragment.failure is not None:
            return False
        if fragment.fragment.kind is Kind.SOURCE:
            ended = ended_after(fragment.folder)
            return ended is not None and fragment.last_batch() == ended and fragment.is_delivered()
        writers = [one.id for one in plan.fragments.values() if any(topic.reader == name for topic in one.writes)]
        if not all(self._is_quiet(writer, plan) for writer in writers):
            return False
        return all(self.exchange.position(topic) >= self.exchange.head(topic) for topic in fragment.fragment.reads)

    def under_way(self) -> bool:
        """Whether a past will go on being computed by itself."""
        snapshot = self.plans.snapshot
        refused = self.outbox.refusals.keys()
        return any(
            name not in snapshot.paused and refused.isdisjoint(one.sinks) for name, one in snapshot.catch_ups.items()
        )

    # how far it is

    def explain(self, flows: Sequence[DataflowStatus]) -> list[DataflowStatus]:
        """Dataflows, with how far they have caught up."""
        return [flow if (far := self.progress(DataflowName(flow.name))) is None else _with(flow, far) for flow in flows]

    def progress(self, name: DataflowName) -> CatchUpStatus | None:
        """How far a dataflow has caught up; ``None`` if it has."""
        snapshot = self.plans.snapshot
        if name not in snapshot.catch_ups:
            return None
        tasks = snapshot.submitted(past_name(name)).signatures.values()
        sources = [f for task in tasks if (f := self.running.get(fragment_of(task))) is not None]
        done = total = 0
        rate = 0.0
        for fragment in sources:
            due, read = due_in(fragment.folder), fragment.rows_read()
            done += read
            total += max(read, 0 if due is None else due.rows)
            rate += read / max(time.time() - fragment.started, 0.001)
        known = bool(sources) and all(ended_after(f.folder) is not None or due_in(f.folder) for f in sources)
        return CatchUpStatus(done, total if known else None, (total - done) / rate if known and rate > 0 else None)


def _with(flow: DataflowStatus, far: CatchUpStatus) -> DataflowStatus:
    reason = "; ".join(filter(None, [far.sentence(), flow.reason]))
    return replace(flow, state="catching up" if flow.state == "running" else flow.state, reason=reason, catch_up=far)


def _is_settled(folder: Path) -> bool:
    """Whether it is settled where the past ends that the fragment of a folder reads."""
    return (folder / UNTIL).exists() or ReadUntil.stored(folder / "files") is not None


def _written(plan: CompiledPlan, writer: str) -> list[str]:
    """The topics that a running source writes to as it always does, and not a past before it."""
    fragment = plan.fragments.get(writer)
    if fragment is None or fragment.kind is not Kind.SOURCE:
        return []
    readers = {topic.id: plan.fragments.get(topic.reader) for topic in fragment.writes}
    return [topic for topic, reader in readers.items() if reader is not None and not plan.tasks[reader.roots[0]].copies]
