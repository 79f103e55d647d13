"""What submissions and withdrawals change, as plain values that any edge can send and show."""

from __future__ import annotations

from typing import Any

from headgate.model.names import Signature, TaskId
from headgate.sharing.change import GraphChange, RunningStream
from headgate.sharing.shared_set import Submission

__all__ = ["submission_facts", "task_names", "withdrawal_facts"]


def task_names(change: GraphChange) -> dict[Signature, TaskId]:
    """What the dataflow calls each task that it uses."""
    names = {shared.running.signature: shared.id for shared in change.shared}
    return names | {task.signature: name for task, name in zip(change.own, change.own_ids, strict=True)}


def submission_facts(submission: Submission) -> dict[str, Any]:
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
        **_both_ways(change),
    }


def withdrawal_facts(change: GraphChange) -> dict[str, Any]:
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
    names = task_names(change)

    def stream(tap: RunningStream) -> dict[str, str]:
        return {"from": names[tap.source], "to": names[tap.target]}

    return {
        "streams_shared": sum(1 for _ in change.shared_streams),
        "streams_own": sum(1 for _ in change.own_streams),
        "taps": [stream(tap) for tap in change.taps],
        "touched": sorted(change.touched),
        "running_dataflows": {"before": list(change.before), "after": list(change.after)},
    }
