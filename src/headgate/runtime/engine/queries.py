"""The fragments that run: started when a plan needs them, restarted, and stopped once nothing is on its way to them."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from headgate.errors import HeadgateError
from headgate.model.names import Signature
from headgate.runtime.compile.plan import FED, CompiledPlan, Fragment, Kind
from headgate.runtime.engine.plans import Plans
from headgate.runtime.engine.snapshot import Snapshot
from headgate.runtime.epochs.chained_fragment import ChainedFragment, running_fragment
from headgate.runtime.epochs.context import FragmentContext
from headgate.runtime.epochs.fragment import RunningFragment, begun_in
from headgate.runtime.exchange.files import FileExchange
from headgate.runtime.isolation.quarantine import Quarantine
from headgate.runtime.spark_internals.failures import JOB_FAILURES, reason_of, storage_refused, workers_were_late
from headgate.store.entries import FragmentBegun, FragmentRemoved
from headgate.tasks.source_folder import set_extent, set_limit

__all__ = ["Queries"]

ROOM_BYTES = 256 * 1024
"""How much must fit into the state directory before a fragment is tried again that a full disk has stopped."""

Prepared = list[tuple[RunningFragment, DataFrame]]


class Queries:
    """The running fragments of an engine, by id."""

    def __init__(self, context: FragmentContext, plans: Plans) -> None:
        self.running: dict[str, RunningFragment] = {}
        self._context = context
        self._plans = plans
        self._failed = Quarantine()
        """Fragments whose query failed, and when each is started again."""

        self._left: dict[str, CompiledPlan] = {}
        """The last plan of fragments that run on without being in the current one."""

    # a change of plan

    def prepare(self, plan: CompiledPlan, snapshot: Snapshot) -> Prepared:
        """The fragments of a plan that do not run yet, ready to be started; raises before anything has changed."""
        new = [fragment for fragment in plan.fragments.values() if fragment.id not in self.running]
        prepared: Prepared = []
        made: list[RunningFragment] = []
        try:
            for fragment in new:
                made.append(running_fragment(fragment, plan.number, self._context))
                prepared.append((made[-1], made[-1].prepare(plan)))
                self.apply_limit(made[-1], snapshot)
        except BaseException:
            for fragment_made in made:
                _remove(fragment_made.folder)
            raise
        return prepared

    def discard(self, prepared: Prepared) -> None:
        """Forget fragments that were made ready for a plan which does not come."""
        for fragment, _ in prepared:
            _remove(fragment.folder)

    def running_any(self, tasks: Iterable[Signature]) -> list[RunningFragment]:
        """The running fragments that run any of some tasks."""
        wanted = set(tasks)
        return [f for f in self.running.values() if not wanted.isdisjoint((*f.fragment.roots, *f.fragment.tasks))]

    def adopt(self, plan: CompiledPlan) -> None:
        """Give the fragments that run already their part of the new plan."""
        self._left = {gone: last for gone, last in self._left.items() if gone not in plan.fragments}
        for name, fragment in self.running.items():
            if name in plan.fragments:
                fragment.adopt(plan.fragments[name], plan.number)

    def start(self, prepared: Prepared) -> None:
        """Start fragments, readers first, so that nothing waits in a topic for its reader to come up."""
        for fragment, stream in sorted(prepared, key=lambda pair: pair[0].fragment.kind is Kind.SOURCE):
            self.running[fragment.fragment.id] = fragment
            try:
                fragment.start(stream)
            except JOB_FAILURES as error:  # on a full disk; the plan is durable already
                fragment.refusal = reason_of(str(error))

    def retire(self) -> None:
        """Stop fragments that the plan does not need, once nothing is on its way to them."""
        needed = {*self._plans.current.fragments, *self._paused_sources(), *self._plans.snapshot.resting}
        self._drop_topics()
        for name in [known for known in self.running if known not in needed]:
            fragment = self.running[name]
            source = fragment.fragment.kind is Kind.SOURCE
            last = self._last_plan_with(name)
            drained = source or _is_drained(fragment, last, self.running, self._context.exchange)
            if drained or (fragment.failure is not None and fragment not in self.without_workers()):
                fragment.stop()
                fragment.finish()
                self._end(fragment)
                del self.running[name]
                for topic in fragment.topics():
                    self._context.exchange.forget(topic)

    def _drop_topics(self) -> None:
        """Forget the topics of windows and joins that are gone from fragments that run on."""
        exchange = self._context.exchange
        for name, fragment in self.running.items():
            if isinstance(fragment, ChainedFragment) and name in self._plans.current.fragments:

                def is_drained(topic: str, left: int, reader: str = name) -> bool:
                    last = self._plans(left - 1)
                    quiet = _is_quiet(reader, last, self.running, exchange, set())
                    return quiet and exchange.position(topic) >= exchange.head(topic)

                for topic in fragment.drop_topics(is_drained):
                    exchange.forget(topic)

    def _paused_sources(self) -> dict[str, tuple[Fragment, CompiledPlan]]:
        """The sources that only paused dataflows read, with the plan that there would be without pauses."""
        if not self._plans.snapshot.paused:
            return {}
        every = self._plans.unpaused()
        there = self._plans.current.fragments
        kept = [f for f in every.fragments.values() if f.kind is Kind.SOURCE and f.id not in there]
        return {fragment.id: (fragment, every) for fragment in kept}

    def _last_plan_with(self, name: str) -> CompiledPlan:
        if name not in self._left:
            self._left[name] = self._plans.last_with(name, self.running[name].begun.snapshot)
        return self._left[name]

    def left(self) -> list[CompiledPlan]:
        """The last plans of the fragments that have left the current one and are being drained."""
        there = {*self._plans.current.fragments, *self._plans.snapshot.resting}
        return [self._last_plan_with(name) for name in self.running if name not in there]

    def _end(self, fragment: RunningFragment) -> None:
        """Note that a run of a fragment is over, and remove what it leaves."""
        self._context.state.journal.append(FragmentRemoved(fragment.fragment.id, fragment.begun.run))
        _remove(fragment.folder)
        _remove(self._context.state.path / "staging" / fragment.fragment.id)

    # starting again

    def resume(self) -> None:
        """Start what ran when the engine was last stopped, retired fragments that were not drained included.

        What cannot be started, because its source is gone for example, keeps the others from nothing.
        """
        current, snapshot = self._plans.current, self._plans.snapshot
        wanted = {name: (fragment, current) for name, fragment in current.fragments.items()}
        wanted |= self._paused_sources()
        journal = self._context.state.journal
        begun = {one.fragment: one for one in journal.every(FragmentBegun) if begun_in(journal, one.fragment)}
        for folder in (self._context.state.path / "fragments").iterdir():
            if folder.name not in begun:
                _remove(folder)  # the engine was killed as it removed it, or before it had begun
        for name, one in begun.items():
            if name in wanted:
                continue
            plan = self._plans(one.snapshot)
            fragment = plan.fragments[name]
            if fragment.kind is Kind.SOURCE and name not in snapshot.resting:  # withdrawn just before the end
                gone = running_fragment(fragment, plan.number, self._context)
                gone.finish()
                self._end(gone)
            else:
                wanted[name] = (fragment, plan)
        for fragment, plan in wanted.values():
            running = running_fragment(fragment, plan.number, self._context)
            self.running[fragment.id] = running
            self.start_again(running, plan)

    def start_again(self, fragment: RunningFragment, plan: CompiledPlan) -> None:
        """Start a fragment that has run before, or remember why it cannot be started."""
        try:
            self.apply_limit(fragment, self._plans.snapshot)
            fragment.start(fragment.prepare(plan))
            fragment.refusal = None
        except HeadgateError as error:
            fragment.refusal = error.message
        except (*JOB_FAILURES, OSError) as error:
            fragment.refusal = reason_of(str(error))

    def restart(self, fragment: RunningFragment) -> None:
        """Stop a fragment after its epoch, unless it has been, and start it again from its checkpoint."""
        fragment.stop()
        name, current = fragment.fragment.id, self._plans.current
        plan = current if name in current.fragments else self._plans(fragment.begun.snapshot)
        try:
            again = running_fragment(plan.fragments[name], current.number, self._context)
        except OSError as error:
            fragment.refusal = reason_of(str(error))
            return
        self.running[name] = again
        self.start_again(again, plan)

    def start_refused(self) -> None:
        """Try to start again what could not be."""
        for fragment in [one for one in self.running.values() if one.refusal is not None]:
            if fragment.fragment.id in self._plans.current.fragments and self._has_room(fragment):
                self.restart(fragment)

    def start_failed(self) -> None:
        """Start fragments whose query failed again, each after a rest that grows."""
        late = self.without_workers()
        for name, fragment in list(self.running.items()):
            if fragment.failure is None:
                self._failed.passed([name])
            elif fragment.refusal is None and fragment not in late and name in self._plans.current.fragments:
                if storage_refused(fragment.failure):
                    if self._has_room(fragment):
                        self.restart(fragment)
                elif name not in self._failed.reasons:
                    self._failed.put(name, fragment.failure)
                elif name in self._failed.due():
                    self._failed.try_now([name])
                    self._failed.passed([name])
                    self.restart(fragment)

    def _has_room(self, fragment: RunningFragment) -> bool:
        """Whether a fragment that a file system refused may be tried again: the state directory takes a file."""
        if not storage_refused(fragment.failure or ""):
            return True
        probe = self._context.state.path / ".room"
        try:
            probe.write_bytes(bytes(ROOM_BYTES))
        except OSError:
            return False
        finally:
            with suppress(OSError):
                probe.unlink(missing_ok=True)
        return True

    def without_workers(self) -> list[RunningFragment]:
        """The fragments that failed because their Python workers did not come up in time."""
        running = list(self.running.values())
        return [fragment for fragment in running if workers_were_late(fragment.failure or "")]

    def failures(self) -> dict[str, str]:
        """Why fragments have failed, by fragment."""
        reasons = ((name, fragment.failure) for name, fragment in self.running.items())
        return {name: reason for name, reason in reasons if reason is not None}

    def apply_limit(self, fragment: RunningFragment, snapshot: Snapshot) -> None:
        """Let a fragment heed the smallest of its roots' limits, and a source from where and up to where it reads."""
        for source in fragment.fragment.roots if fragment.fragment.kind is Kind.SOURCE else ():
            if (extent := snapshot.extent(source)) is not None:
                set_extent(fragment.folder, extent)
        roots = fragment.fragment.roots if fragment.fragment.kind not in FED else ()
        set_limit(fragment.folder, min((snapshot.limits[r] for r in roots if r in snapshot.limits), default=None))

    # waiting

    def wait_until_idle(self, lock: AbstractContextManager[object], despite_failures: bool) -> None:
        """Wait until all that sources have to give has been put out; fragments are started again under the lock."""
        while True:
            before = self._epochs()
            waited = [self._wait_for_all(some, lock, despite_failures) for some in self._sources_first()]
            # One that was started again has yet to do what it failed to do.
            going = [fragment for some in self._sources_first() for fragment in some if fragment.failure is None]
            if all(waited) and before == self._epochs() and all(fragment.backlog.is_empty() for fragment in going):
                return
            time.sleep(0.01)

    def _sources_first(self) -> list[list[RunningFragment]]:
        running = list(self.running.values())  # a copy: others may start and stop fragments meanwhile
        sources = [fragment for fragment in running if fragment.fragment.kind is Kind.SOURCE]
        return [some for some in (sources, [each for each in running if each not in sources]) if some]

    def _wait_for_all(
        self, fragments: Sequence[RunningFragment], lock: AbstractContextManager[object], despite_failures: bool
    ) -> bool:
        """Wait until fragments have read all there is; returns whether none had to be started again instead.

        All at once: each takes up to a trigger to find that there is nothing more.
        """
        outcomes: list[bool | Exception] = []

        def wait(fragment: RunningFragment) -> None:
            try:
                outcomes.append(self._wait_for(fragment, lock, despite_failures))
            except Exception as error:
                outcomes.append(error)

        if len(fragments) == 1:
            wait(fragments[0])
        else:
            # Threads that nobody waits for if this one is interrupted.
            threads = [threading.Thread(target=wait, args=(each,), daemon=True) for each in fragments]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for error in outcomes:
            if isinstance(error, Exception):
                raise error
        return all(outcomes)

    def _epochs(self) -> dict[str, int]:
        return {name: fragment.last.epoch for name, fragment in list(self.running.items())}

    def _wait_for(
        self, fragment: RunningFragment, lock: AbstractContextManager[object], despite_failures: bool
    ) -> bool:
        """Wait until a fragment has read all there is; returns whether it did not have to be started again instead."""
        try:
            if fragment.query is not None:
                fragment.query.processAllAvailable()
        except PySparkException as error:
            reason = fragment.failure or reason_of(str(error))
            if fragment in self.without_workers():
                with lock:
                    self.restart(fragment)
                return False
            if not despite_failures:
                raise HeadgateError("FRAGMENT_FAILED", f"fragment {fragment.fragment.id} failed: {reason}") from None
        return True

    def stop(self) -> None:
        """Stop every fragment after the epoch under way."""
        for fragment in self.running.values():
            fragment.end()
        for fragment in self.running.values():
            fragment.stop()


def _remove(folder: Path) -> None:
    """Remove a fragment's folder; what is left of it if that fails is removed when the fragment begins again."""
    shutil.rmtree(folder, ignore_errors=True)


def _is_drained(
    fragment: RunningFragment, last: CompiledPlan, running: Mapping[str, RunningFragment], exchange: FileExchange
) -> bool:
    """Whether a fragment has read all that was on its way to it when it left the plan; ``last`` is its last plan."""
    quiet = _is_quiet(fragment.fragment.id, last, running, exchange, set())
    return quiet and all(exchange.position(t) >= exchange.head(t) for t in fragment.topics())


def _is_quiet(
    reader: str, last: CompiledPlan, running: Mapping[str, RunningFragment], exchange: FileExchange, seen: set[str]
) -> bool:
    """Whether no fragment before a reader still has work of its last plan, or of one before that, to do."""
    seen.add(reader)
    for writer in last.fragments.values():
        before = running.get(writer.id)
        if before is None or writer.id in seen or all(topic.reader != reader for topic in writer.writes):
            continue
        if writer.kind is Kind.SOURCE:
            done = before.is_past(last.number + 1)
        else:
            done = all(exchange.is_past(topic, last.number + 1) for topic in writer.reads)
        if not done or not _is_quiet(writer.id, last, running, exchange, seen):
            return False
    return True
