"""The controller: collects, evaluates, decides, guards, writes down, carries out, and looks at what came of it.

A decision is in the journal before anything of it is done, each step before and after it is done. Whenever the process
is killed, the next one finishes the decision or abandons it: :mod:`headgate.adaptation.controller.recovery`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headgate.adaptation.controller.choice import ControlSettings, PolicyChoice, PolicyMode
from headgate.adaptation.controller.enacting import Enacting
from headgate.adaptation.controller.fleet import FleetWatch, Seen
from headgate.adaptation.controller.guards import History, guarded
from headgate.adaptation.controller.memory import PolicyMemory
from headgate.adaptation.controller.plant import ControlledCluster
from headgate.adaptation.controller.pressure import Pressure, pressure_of
from headgate.adaptation.controller.records import (
    RecordedDecision,
    decision_document,
    decision_of,
    terms_entry,
    window_document,
)
from headgate.adaptation.controller.recovery import Recovered, changes_of, recovered
from headgate.adaptation.controller.steps import AwaitReady, step_document, steps_of
from headgate.adaptation.controller.verifying import TOLERATED, WRONG_IN_A_ROW, Verifier
from headgate.adaptation.controller.windows import window_of
from headgate.adaptation.evaluating import evaluated
from headgate.adaptation.joining import joined
from headgate.adaptation.policy import Decision, Memory, Policy
from headgate.adaptation.window import Window
from headgate.machines.provider import Provider
from headgate.model.cluster.observation import Observation
from headgate.store.decision_entries import (
    DecisionEnded,
    DecisionMade,
    DecisionOutcome,
    DecisionVerified,
    StepState,
    TermsRecorded,
)
from headgate.store.entries import Entry
from headgate.store.journal import Journal

__all__ = ["Controller", "Thought"]

WARM = 3
"""Epochs of a fragment after which it counts, or a window if it has fewer in that time."""

KEPT_S = 120.0
"""For so long observations are kept at least, or for two windows, to know what rows usually cost."""

URGENT_S = 10.0
"""When more comes than can be done, the last seconds count and not the whole window."""

VERIFIED = 0.75
"""After that part of a window a decision is looked at again: before the next one can change what came of it."""

REMEMBERED_EVERY = 60
"""So many decisions that do nothing, and then one is written down all the same, with the policy's memory."""


@dataclass(frozen=True, slots=True)
class Thought:
    """What was thought last, whether or not anything was done."""

    at: float
    decision: Decision
    pressure: Pressure
    number: int | None = None
    """Of the decision, if it was written down."""


@dataclass(slots=True)
class Controller:
    """Decides for an engine. It has no clock and no thread: whoever calls :meth:`tick` says what time it is."""

    cluster: ControlledCluster
    provider: Provider | None
    journal: Journal
    settings: ControlSettings
    make_policy: Callable[[str], Policy]
    fallback: str
    """The policy that takes the place of one that predicts badly."""

    default: PolicyChoice
    """What decides if nobody has chosen yet."""

    engine: str
    """Begins the keys of its machines; the journal's, if it has one."""

    policy_settings: Mapping[str, Any] = field(default_factory=dict)
    """With what policies are made: recorded with decisions, so that they can be made again."""

    choice: PolicyChoice = field(init=False)
    thought: Thought | None = None
    seen: Seen = field(default_factory=Seen)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _observed: list[Observation] = field(default_factory=list)
    _epochs: Counter[str] = field(default_factory=Counter)
    """How many each fragment has had since this controller began."""

    _begun: dict[str, float] = field(default_factory=dict)
    """When each has ended its first one."""

    _under_way: list[Enacting] = field(default_factory=list)
    _history: History = field(default_factory=History)
    _number: int = 0
    _decided_at: float = float("-inf")
    _urgent: bool = False
    _is_fresh: bool = False
    """Whether something was observed since the last tick."""

    _quiet: int = 0
    _last_notable: tuple[object, ...] = ()
    _memory: PolicyMemory = field(init=False)
    _verifier: Verifier = field(init=False)
    _fleet: FleetWatch | None = field(init=False)

    def __post_init__(self) -> None:
        known: Recovered = recovered(self.journal)
        self.choice = known.choice or self.default
        self.engine = known.engine or self.engine
        if known.choice is None:
            self.journal.append(self.choice.entry(0.0, self.engine))
        self._number = known.number
        self._history = History(known.changes, known.demands, decides_every_s=self.settings.every_s)
        least_s = min(self.settings.window_s, self.settings.every_s)
        last = known.last if known.last is None or known.last.made.settings == self.policy_settings else None
        self._memory = PolicyMemory(self.make_policy, self.journal, last)
        self._verifier = Verifier(VERIFIED * least_s, list(known.unverified))
        self._fleet = None if self.provider is None else FleetWatch(self.provider, self.journal, self.engine)
        for record in known.under_way:
            self._under_way.append(self._enacting(record))

    @property
    def under_way(self) -> Sequence[RecordedDecision]:
        """Decisions of which something is left to be done."""
        return [each.record for each in self._under_way]

    def choose(self, now: float, choice: PolicyChoice, *also: Entry) -> None:
        """Let another policy decide, in another mode or within other guard rails; durable when this returns."""
        self.make_policy(choice.policy)
        with self._lock:
            self.journal.append(choice.entry(now, self.engine), *also)
            if choice.policy != self.choice.policy:
                self._verifier.forget()
            self.choice = choice
            self._decided_at = float("-inf")

    def tick(self, now: float) -> None:
        """Look, do one step of each decision under way, and decide if it is time. Never waits."""
        with self._lock:
            self._collect(now)
            self._recheck(now)
            for one in list(self._under_way):
                self._advance(one, now)
            if self.choice.mode is PolicyMode.OFF:
                return
            if not (self._is_fresh or self._urgent):
                return
            seen = self._window(now, self.settings.window_s)
            if seen is None:
                return
            self._verify(now)
            if self._is_due(now):
                quick = self._window(now, URGENT_S) if self._urgent else None
                self._decide(now, seen if quick is None or not _has_epochs(quick) else quick)

    # collect and evaluate

    def _collect(self, now: float) -> None:
        new = self.cluster.observations()
        self._is_fresh = bool(new)
        for observation in new:
            began = [each for each in observation.fragments if each.batches]
            if any(self._is_cold(each.id, now) for each in began):
                self._observed.clear()
            else:
                self._observed.append(observation)
            self._epochs.update({each.id: each.batches for each in began})
            for each in began:
                self._begun.setdefault(each.id, observation.ended)
        since = now - max(2 * self.settings.window_s, KEPT_S)
        self._observed = [each for each in self._observed if each.ended > since]
        if self._fleet is None:
            return
        self.seen = self._fleet.look(now)
        if self.seen.lost:
            self._urgent = True
            self._history = replace(
                self._history, lost=(*self._history.lost, *((now, name) for name in self.seen.lost))
            )

    def _is_cold(self, fragment: str, now: float) -> bool:
        """Whether a fragment had just begun: first epochs take long, and what they load is there afterwards."""
        is_new = now - self._begun.get(fragment, now) < self.settings.window_s
        return is_new and self._epochs[fragment] < WARM

    def _window(self, now: float, seconds: float) -> Window | None:
        """What was seen in the last seconds; none if nothing runs or nothing was measured."""
        known = [each for each in self._observed if each.seconds > 0]
        lately = [each for each in known if each.ended > now - seconds]
        if not lately:
            return None
        before = known[: -len(lately)]
        merged = evaluated(replace(joined(lately, before), machines=lately[-1].machines))
        terms = self.cluster.terms({(cost.task, cost.alternate) for cost in merged.costs})
        if terms is None:
            return None
        seen = window_of(*terms, merged, self.settings.epochs)
        return replace(seen, ended_s=now)

    def _is_due(self, now: float) -> bool:
        if any(not each.is_waiting for each in self._under_way):
            return False
        if not self._urgent and now - self._decided_at >= min(URGENT_S, self.settings.every_s):
            quick = self._window(now, URGENT_S)
            self._urgent = quick is not None and pressure_of(quick).is_short
        pause = min(URGENT_S, self.settings.every_s) if self._urgent else self.settings.every_s
        return now - self._decided_at >= pause

    # decide, guard, write down

    def _decide(self, now: float, seen: Window) -> None:
        self._decided_at, self._urgent = now, False
        entry = terms_entry(seen.terms, seen.capabilities)
        policy, memory = self._memory.begun(self.choice.policy, entry.id, seen)
        decision, after = policy.decide(seen, memory)
        pressure = pressure_of(seen)
        history = replace(
            self._history,
            demands=(*(each for each in self._history.demands if each[0] > now - 3_600), (now, pressure.demand)),
            changes=tuple(each for each in self._history.changes if each.at > now - 7_200),
            lost=tuple(each for each in self._history.lost if each[0] > now - 600),
            replaced=tuple(each for each in self._history.replaced if each[0] > now - 3_600),
            refused={} if self._fleet is None else dict(self._fleet.refused),
        )
        self._history = history
        for each in self._under_way:  # what is done of it counts before all of it is
            history = history.after(changes_of(each.record, self.journal), now)
        kept = guarded(decision, seen, self.choice.rails, history)
        self.thought = Thought(now, kept, pressure)
        if self._is_notable(kept):
            self._write_down(now, seen, policy, memory, decision, kept, entry)
        self._memory.remember(entry.id, after)

    def _is_notable(self, kept: Decision) -> bool:
        """Whether a decision is written down: it does something, or says something new."""
        self._quiet += 1
        acts = bool(kept.actions) and self.choice.mode is PolicyMode.AUTO
        notable = (self.choice.mode, kept.actions, kept.reason.rule, bool(kept.reason.rejected))
        is_new = notable != self._last_notable and bool(kept.actions or kept.reason.rejected)
        self._last_notable = notable
        if acts or is_new or self._quiet >= REMEMBERED_EVERY:
            self._quiet = 0
            return True
        return False

    def _write_down(
        self,
        now: float,
        seen: Window,
        policy: Policy,
        memory: Memory,
        decision: Decision,
        kept: Decision,
        terms: TermsRecorded,
    ) -> None:
        number, mode = self._number + 1, self.choice.mode
        steps = steps_of(kept.actions, seen) if mode is PolicyMode.AUTO else ()
        made = DecisionMade(
            number,
            now,
            policy.name,
            policy.version,
            mode.value,
            terms.id,
            window_document(seen),
            memory.document(),
            decision_document(decision),
            decision_document(kept),
            tuple(step_document(step) for step in steps),
            self.policy_settings,
        )
        entries: list[Entry] = [made]
        if self.journal.latest(TermsRecorded, terms.id) is None:
            entries.insert(0, terms)
        ended = None
        if not steps:
            outcome = DecisionOutcome.RECOMMENDED if kept.actions else DecisionOutcome.DONE
            ended = DecisionEnded(number, now, outcome)
            entries.append(ended)
        self.journal.append(*entries)
        self._number = number
        self.thought = replace(self.thought, number=number) if self.thought is not None else None
        if steps:
            self._supersede(now, number)
            self._under_way.append(self._enacting(RecordedDecision(made)))

    # carry out

    def _enacting(self, record: RecordedDecision) -> Enacting:
        return Enacting(record, self.cluster, self.provider, self.journal, self.engine)

    def _supersede(self, now: float, number: int) -> None:
        """What earlier decisions have not done yet is not done any more: this one has seen more."""
        for each in self._under_way:
            each.abandon(now, f"decision {number} takes its place")
            self._note_changes(each, now)
        self._under_way.clear()

    def _recheck(self, now: float) -> None:
        """Decisions that a process before this one made and of which nothing is done yet: old ones are abandoned."""
        for each in list(self._under_way):
            made = each.record.made
            if self.choice.mode is not PolicyMode.AUTO:
                reason = f"the mode is {self.choice.mode} now"
            elif each.record.progress:
                continue
            elif now - made.at > self.settings.window_s:
                reason = "it was made too long ago, and nothing of it was done"
            elif not self._is_still_allowed(each.record):
                reason = "guard rails do not allow it any more"
            else:
                continue
            each.abandon(now, reason)
            self._note_changes(each, now)
            self._under_way.remove(each)

    def _is_still_allowed(self, record: RecordedDecision) -> bool:
        decision = decision_of(record.made.guarded)
        kept = guarded(decision, record.window(self.journal), self.choice.rails, self._history)
        return kept.actions == decision.actions

    def _advance(self, one: Enacting, now: float) -> None:
        refused = one.advance(now)
        if refused is not None and self._fleet is not None:
            self._fleet.was_refused(refused.vm_class, now)
        if one.record.ended is None:
            return
        self._under_way.remove(one)
        done = self._note_changes(one, now)
        if one.record.ended.outcome is DecisionOutcome.DONE:
            self._verifier.expect(one.record)
            # Tasks are cut for the machines that are there: now there are others.
            self._urgent |= done and any(isinstance(step, AwaitReady) for step in one.record.steps)
        else:
            self._urgent = True

    def _note_changes(self, one: Enacting, now: float) -> bool:
        """Have guard rails count what was done of a decision, finished or not; whether anything was."""
        done = any(change.state is StepState.DONE for change in one.record.progress.values())
        if done:
            self._history = self._history.after(changes_of(one.record, self.journal), now)
        return done

    # look at what came of it

    def _verify(self, now: float) -> None:
        record = self._verifier.due(now)
        if record is None or record.ended is None:
            return
        seen = self._window(now, min(now - record.ended.at, self.settings.window_s))
        entry = None if seen is None else self._verifier.verified(record, now, seen)
        if entry is None:
            return
        self.journal.append(entry)
        if self._verifier.is_wrong():
            self._demote(now, entry)

    def _demote(self, now: float, entry: DecisionVerified) -> None:
        """Let a policy that predicts badly decide no longer."""
        name = self.choice.policy
        text = f"policy '{name}' was off by more than {TOLERATED:.0%} {WRONG_IN_A_ROW} times in a row"
        text += f", last in decision {entry.number}"
        if name != self.fallback:
            choice = replace(self.choice, policy=self.fallback, by="controller", reason=f"{text}; this one took over")
        else:
            reason = f"{text}; it only recommends until somebody sets the mode again"
            choice = replace(self.choice, mode=PolicyMode.RECOMMEND, by="controller", reason=reason)
        self.choose(now, choice)
        self._verifier.forget()


def _has_epochs(seen: Window) -> bool:
    return seen.measured is not None and any(fragment.batches for fragment in seen.measured.fragments)
