"""Decisions as they are written down, with all that they follow from, and decided again from that."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from headgate.adaptation.actions import action_of, document_of
from headgate.adaptation.controller.steps import Step, step_of
from headgate.adaptation.kept import read_kept, written_kept
from headgate.adaptation.policy import Capabilities, Decision, Memory, Policy, Prediction, Reason, Rejected, Terms
from headgate.adaptation.window import Window
from headgate.errors import InputError
from headgate.store.decision_entries import (
    DecisionEnded,
    DecisionMade,
    DecisionVerified,
    StepChanged,
    StepState,
    TermsRecorded,
)
from headgate.store.journal import Journal
from headgate.store.observations import observation_of, observation_text

__all__ = [
    "RecordedDecision",
    "decided_again",
    "decision_document",
    "decision_of",
    "recorded_decision",
    "recorded_decisions",
    "terms_entry",
    "window_document",
    "window_of_record",
]

_NOT_IN_WINDOW = ("terms", "capabilities", "measured")


def decision_document(decision: Decision) -> dict[str, Any]:
    """A decision as JSON: actions, reason, and what is expected of it."""
    reason, prediction = decision.reason, decision.prediction
    return {
        "actions": [document_of(action) for action in decision.actions],
        "rule": reason.rule,
        "sentences": list(reason.sentences),
        "figures": {name: float(value) for name, value in reason.figures.items()},
        "rejected": [{"option": each.option, "reason": each.reason} for each in reason.rejected],
        "prediction": None if prediction is None else _prediction_document(prediction),
    }


def _prediction_document(prediction: Prediction) -> dict[str, Any]:
    known = {each.name: getattr(prediction, each.name) for each in fields(prediction)}
    return {name: dict(value) if name == "latency_s" else value for name, value in known.items() if value is not None}


def decision_of(document: Mapping[str, Any]) -> Decision:
    """A decision from JSON."""
    rejected = tuple(Rejected(**each) for each in document["rejected"])
    reason = Reason(document["rule"], tuple(document["sentences"]), document["figures"], rejected)
    expected = document["prediction"]
    prediction = None if expected is None else Prediction(**expected)
    return Decision(tuple(action_of(each) for each in document["actions"]), reason, prediction)


def terms_entry(terms: Terms, capabilities: Capabilities) -> TermsRecorded:
    """Terms and capabilities as an entry whose id follows from them."""
    document = {"terms": written_kept(terms), "capabilities": written_kept(capabilities)}
    text = json.dumps(document, sort_keys=True)
    return TermsRecorded(hashlib.blake2b(text.encode(), digest_size=12).hexdigest(), document)


def window_document(seen: Window) -> dict[str, Any]:
    """What a window has beside its terms, as JSON."""
    values = {each.name: getattr(seen, each.name) for each in fields(seen) if each.name not in _NOT_IN_WINDOW}
    document = {name: written_kept(value) for name, value in values.items()}
    return {**document, "measured": None if seen.measured is None else observation_text(seen.measured)}


def window_of_record(document: Mapping[str, Any], terms: TermsRecorded) -> Window:
    """The window that was written down, with the terms that it refers to."""
    values = {name: read_kept(value) for name, value in document.items() if name != "measured"}
    measured = document["measured"]
    return Window(
        read_kept(terms.document["terms"]),
        read_kept(terms.document["capabilities"]),
        **values,
        measured=None if measured is None else observation_of(measured),
    )


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """A decision of the journal, and what became of it so far."""

    made: DecisionMade
    progress: Mapping[int, StepChanged] = field(default_factory=dict)
    """How far its steps are, of those that have begun."""

    ended: DecisionEnded | None = None
    verified: DecisionVerified | None = None

    @property
    def number(self) -> int:
        return self.made.number

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step_of(document) for document in self.made.steps)

    @property
    def next_step(self) -> int | None:
        """The first step that is not done."""
        undone = (place for place in range(len(self.made.steps)) if not self._is_done(place))
        return next(undone, None)

    def result(self, step: int) -> str:
        """What a step has brought."""
        return self.progress[step].result

    def with_step(self, change: StepChanged) -> RecordedDecision:
        return replace(self, progress={**self.progress, change.step: change})

    def _is_done(self, step: int) -> bool:
        return step in self.progress and self.progress[step].state is StepState.DONE

    def window(self, journal: Journal) -> Window:
        """What was seen when it was made."""
        terms = journal.latest(TermsRecorded, self.made.terms)
        if terms is None:
            message = f"decision {self.number} was made on terms that the journal no longer has"
            raise InputError("TERMS_GONE", f"{message}; only recent decisions can be made again")
        return window_of_record(self.made.window, terms)


def recorded_decision(journal: Journal, number: int) -> RecordedDecision:
    """A decision by its number; raises :class:`InputError` if it is not in the journal."""
    made = journal.latest(DecisionMade, str(number))
    if made is None:
        last = journal.latest(DecisionMade)
        known = "none was made yet" if last is None else f"the last one is {last.number}"
        raise InputError("UNKNOWN_DECISION", f"there is no decision {number}: {known}")
    return _recorded(journal, made)


def recorded_decisions(journal: Journal) -> Iterator[RecordedDecision]:
    """All decisions of the journal, oldest first."""
    return (_recorded(journal, made) for made in sorted(journal.every(DecisionMade), key=lambda each: each.number))


def _recorded(journal: Journal, made: DecisionMade) -> RecordedDecision:
    changed = {
        step: entry
        for step in range(len(made.steps))
        if (entry := journal.latest(StepChanged, f"{made.number}/{step}")) is not None
    }
    key = str(made.number)
    return RecordedDecision(made, changed, journal.latest(DecisionEnded, key), journal.latest(DecisionVerified, key))


def decided_again(record: RecordedDecision, journal: Journal, policy: Policy) -> Decision:
    """What the policy decides on the window and the memory of a record, before guard rails.

    Raises :class:`InputError` if the policy has another version now, and reads no memory of that one.
    """
    memory = Memory.of(record.made.memory, policy.name, policy.version)
    if memory is None:
        message = f"policy '{record.made.policy}' has version {policy.version} now, and decision {record.number} was"
        raise InputError("OTHER_VERSION", f"{message} made by version {record.made.version}")
    decision, _ = policy.decide(record.window(journal), memory)
    return decision
