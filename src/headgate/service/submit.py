"""Submit dataflows to a running engine and withdraw them, all or none, and what that changes as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.documents.check import check
from headgate.documents.located import Located
from headgate.errors import InputError
from headgate.service.engine import RunningEngine
from headgate.service.load import with_all_faults
from headgate.service.serve import Acknowledger, acknowledging
from headgate.sharing.applied import Applied
from headgate.sharing.change import GraphChange, RunningStream
from headgate.sharing.deduplicate import SignedDataflow, deduplicate
from headgate.sharing.running import RunningSet
from headgate.sharing.shared_set import Submission
from headgate.tasks.registry import Registry

__all__ = ["SubmissionSplit", "split_submission", "submit", "withdraw"]


@dataclass(frozen=True, slots=True)
class SubmissionSplit:
    """Which dataflows are new, which simply go on, and which take the place of a running one of their name."""

    new: tuple[SignedDataflow, ...] = ()
    continued: tuple[SignedDataflow, ...] = ()
    replacing: tuple[SignedDataflow, ...] = ()


def split_submission(running: RunningSet, given: Sequence[SignedDataflow], replace: bool) -> SubmissionSplit:
    """Sort dataflows by what has to be done; raises :class:`InputError` for a name that two different ones have.

    >>> from headgate.model.dataflow import Dataflow
    >>> one, other = (SignedDataflow(Dataflow("a", (), description=text), {}) for text in ("", "changed"))
    >>> running, _ = RunningSet().submit(one)
    >>> split_submission(running, [one], replace=False).continued == (one,)
    True
    >>> split_submission(running, [other], replace=False)
    Traceback (most recent call last):
        ...
    headgate.errors.InputError: a different version of dataflow 'a' is running; ...
    """
    seen: dict[str, SignedDataflow] = {}
    for signed in given:
        if seen.setdefault(signed.name, signed) is not signed:
            message = f"two of the files hold a dataflow '{signed.name}'; give one of them another name"
            raise InputError("NAME_TAKEN", message)
    known = {signed.name: running.submitted.get(signed.name) for signed in given}
    new = tuple(signed for signed in given if known[signed.name] is None)
    there = [(signed, one) for signed in given if (one := known[signed.name]) is not None]
    continued = tuple(signed for signed, one in there if one.written == signed.dataflow)
    changed = tuple(signed for signed, one in there if one.written != signed.dataflow)
    if changed and not replace:
        names = ", ".join(f"'{signed.name}'" for signed in changed)
        are = f"a different version of dataflow {names} is" if len(changed) == 1 else f"other versions of {names} are"
        message = f"{are} running; use --replace to update: tasks that are the same keep their state"
        raise InputError("DATAFLOW_CHANGED", message)
    return SubmissionSplit(new, continued, changed)


def submit(
    engine: RunningEngine,
    documents: Sequence[Mapping[str, Any]],
    registry: Registry,
    replace: bool = False,
    acknowledge: Acknowledger | None = None,
    *,
    allow_partial: bool = False,
) -> Mapping[str, Any]:
    """Submit dataflows as documents; answers what each reuses and adds, and which fragments the change affects.

    Each is checked and signed here, once. One that already runs exactly as given is left as it is. What ``acknowledge``
    makes of the answer becomes durable with the change. Raises :class:`~headgate.errors.InputError` for a dataflow that
    is not valid, a name that is taken and for what Spark refuses; nothing has changed then.
    """
    signed = with_all_faults(lambda document: _signed(document, registry), documents)
    todo = split_submission(engine.shared.running, signed, replace)
    given = (*todo.new, *todo.replacing)
    about = {**engine.about(), "continued": [signed.name for signed in todo.continued]}
    if not given:
        return {**about, "submitted": [], "withdrawn": [], "fragments": {"touched": [], "started": [], "restarted": []}}

    answer = acknowledging(acknowledge, lambda applied: {**about, **_applied_facts(applied)})
    applied = engine.submit(*given, replace=replace, allow_partial=allow_partial, acknowledge=answer)
    return {**about, **_applied_facts(applied)}


def _signed(document: Mapping[str, Any], registry: Registry) -> SignedDataflow:
    return deduplicate(check(Located(document, "request", lambda: None), registry).dataflow)


def withdraw(engine: RunningEngine, names: Sequence[str], acknowledge: Acknowledger | None = None) -> Mapping[str, Any]:
    """Withdraw dataflows; answers what is removed of each, and which of its tasks keep running for others.

    What ``acknowledge`` makes of the answer becomes durable with the change. Raises
    :class:`~headgate.errors.InputError` for an unknown dataflow, with the nearest name; nothing has changed then.
    """
    about = engine.about()
    answer = acknowledging(acknowledge, lambda applied: {**about, **_applied_facts(applied)})
    applied = engine.withdraw(*dict.fromkeys(names), acknowledge=answer)
    return {**about, **_applied_facts(applied)}


def _applied_facts(applied: Applied) -> dict[str, Any]:
    """What submissions and withdrawals have changed."""
    return {
        "snapshot": applied.snapshot,
        "submitted": [_submission_facts(submission) for submission in applied.submissions],
        "withdrawn": [_withdrawal_facts(change) for change in applied.withdrawals],
        "fragments": {
            "touched": list(applied.touched),
            "started": list(applied.started),
            "restarted": list(applied.restarted),
        },
    }


def _submission_facts(submission: Submission) -> dict[str, Any]:
    """What a submission reuses, and whose it is; what it adds; where it taps what runs."""
    change, exact = submission.change, set(submission.exact)
    return {
        "dataflow": change.dataflow,
        "reused": [
            {
                "task": shared.id,
                "users": len(shared.users),
                "for": shared.named_users(),
                "brought_by": shared.running.brought_by,
            }
            for shared in change.shared
            if shared.id in exact
        ],
        "wider": [
            {"task": match.task, "wider": match.wider, "residual": list(match.residual)} for match in submission.wider
        ],
        "added": list(change.own_ids),
        "start": {"from": submission.start.start, "how": submission.start.how.value, "text": submission.start.sentence},
        **_both_ways(change),
    }


def _withdrawal_facts(change: GraphChange) -> dict[str, Any]:
    """What a withdrawal removes, and what keeps running for others."""
    return {
        "dataflow": change.dataflow,
        "left": [
            {"task": shared.id, "users": len(shared.users), "for": shared.named_users()} for shared in change.shared
        ],
        "removed": list(change.own_ids),
        **_both_ways(change),
    }


def _both_ways(change: GraphChange) -> dict[str, Any]:
    names = change.names

    def stream(tap: RunningStream) -> dict[str, str]:
        return {"from": names[tap.source], "to": names[tap.target]}

    return {
        "streams_shared": sum(1 for _ in change.shared_streams),
        "streams_own": sum(1 for _ in change.own_streams),
        "taps": [stream(tap) for tap in change.taps],
        "touched": sorted(change.touched),
        "running_dataflows": {"before": list(change.before), "after": list(change.after)},
    }
