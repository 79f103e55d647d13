"""What a journal says about decisions when a process takes over.

================================ ===================================================================================
killed                           then
================================ ===================================================================================
before a decision was written    nothing has happened
written, nothing begun           it is carried out; abandoned if it is older than a window
a machine asked for, no answer   it is asked for again with the same key: it is the same machine
machines there, not ready        it waits for them
a snapshot published             the step is done: both are one entry
a release asked for              done if the machine drains or is gone; otherwise asked for again
================================ ===================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.adaptation.actions import SwitchAlternate
from headgate.adaptation.controller.choice import PolicyChoice
from headgate.adaptation.controller.guards import Change, is_cheaper
from headgate.adaptation.controller.records import RecordedDecision, recorded_decisions
from headgate.adaptation.controller.steps import Acquire, Publish, Release
from headgate.errors import InputError
from headgate.store.decision_entries import DecisionOutcome, PolicyChosen, StepState
from headgate.store.journal import Journal

__all__ = ["Recovered", "changes_of", "recovered"]


@dataclass(frozen=True, slots=True)
class Recovered:
    """What is known from before."""

    choice: PolicyChoice | None
    engine: str
    number: int
    """Of the last decision; 0 if none was made."""

    under_way: tuple[RecordedDecision, ...]
    unverified: tuple[RecordedDecision, ...]
    changes: tuple[Change, ...]
    """Of decisions that are finished or abandoned."""

    demands: tuple[tuple[float, float], ...]
    last: RecordedDecision | None


def recovered(journal: Journal) -> Recovered:
    """Read a journal."""
    chosen = journal.latest(PolicyChosen)
    records = list(recorded_decisions(journal))
    last = records[-1] if records else None
    return Recovered(
        None if chosen is None else PolicyChoice.of(chosen),
        "" if chosen is None else chosen.engine,
        0 if last is None else last.number,
        tuple(record for record in records if record.ended is None),
        tuple(record for record in records if _is_unverified(record)),
        tuple(change for record in records[-200:] if record.ended for change in changes_of(record, journal)),
        tuple(
            (record.made.at, record.made.guarded["figures"]["demand_cores"])
            for record in records
            if "demand_cores" in record.made.guarded["figures"]
        ),
        last,
    )


def _is_unverified(record: RecordedDecision) -> bool:
    done = record.ended is not None and record.ended.outcome is DecisionOutcome.DONE
    return done and bool(record.made.steps) and record.verified is None


def changes_of(record: RecordedDecision, journal: Journal) -> tuple[Change, ...]:
    """What the steps of a decision that are done have changed."""
    changes: list[Change] = []
    for place, step in enumerate(record.steps):
        change = record.progress.get(place)
        if change is None or change.state is not StepState.DONE:
            continue
        match step:
            case Acquire():
                changes.append(Change(change.at, 1))
            case Release():
                changes.append(Change(change.at, -1))
            case Publish(actions):
                switches = [action for action in actions if isinstance(action, SwitchAlternate)]
                changes += [Change(change.at, _direction(each, record, journal), each.task) for each in switches]
    return tuple(changes)


def _direction(switch: SwitchAlternate, record: RecordedDecision, journal: Journal) -> int:
    try:
        return 1 if is_cheaper(switch, record.window(journal)) else -1
    except InputError:  # its terms are gone: it is too long ago to matter
        return 1
