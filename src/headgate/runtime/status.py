"""How dataflows and fragments are doing, as values."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from headgate.model.dataflow import Dataflow
from headgate.model.names import Signature
from headgate.runtime.fragment import RunningFragment
from headgate.runtime.outbox import SinkOutbox
from headgate.runtime.plan import Plan, RunningTask
from headgate.runtime.snapshot import Snapshot

__all__ = ["DataflowStatus", "FragmentStatus", "dataflow_status", "fragment_status"]


@dataclass(frozen=True, slots=True)
class FragmentStatus:
    """How a fragment is doing."""

    id: str
    kind: str
    tasks: int
    epoch: int
    snapshot: int
    rows_in: int
    rows_out: int
    batch_s: float
    behind: int
    failure: str | None
    rate_per_s: float


@dataclass(frozen=True, slots=True)
class DataflowStatus:
    """How a dataflow is doing: running, paused, or degraded with the reason."""

    name: str
    owner: str
    state: str
    reason: str
    tasks: int
    shared: int
    rows_out: int


def dataflow_status(
    dataflow: Dataflow,
    mine: Sequence[RunningTask],
    snapshot: Snapshot,
    plan: Plan,
    running: Sequence[RunningFragment],
    outbox: SinkOutbox,
) -> DataflowStatus:
    """How a dataflow, to which some tasks of the plan belong, is doing.

    It is degraded where a sink of its refuses rows, a task of its raises, or a fragment that runs it has failed.
    """
    signatures = {task.signature for task in mine}
    reasons = [outbox.refusals[signature] for signature in signatures if signature in outbox.refusals]
    mine_run = [f for f in running if signatures & {*f.fragment.tasks, *f.fragment.roots}]
    reasons += [reason for fragment in mine_run if (reason := fragment.failure) is not None]
    reasons += [reason for fragment in mine_run for reason in _raised(fragment, plan, signatures)]
    state = "paused" if dataflow.name in snapshot.paused else "degraded" if reasons else "running"
    rows = sum(outbox.delivered.get(signature, 0) for signature in signatures)
    shared = sum(len(task.users) > 1 for task in mine)
    owner = str(dataflow.owner)
    return DataflowStatus(dataflow.name, owner, state, "; ".join(reasons), len(mine), shared, rows)


def _raised(fragment: RunningFragment, plan: Plan, signatures: Collection[str]) -> Iterator[str]:
    """What tasks of a dataflow raised, or the streams into its stateful tasks, and so are left out for a while."""
    readers = {topic.id: plan.fragments.get(topic.reader) for topic in fragment.fragment.writes}
    for item, reason in fragment.epochs.quarantine.reasons.items():
        task, reader = plan.tasks.get(Signature(item)), readers.get(item)
        if task is not None and item in signatures:
            yield f"task '{task.name}' raised {reason}; it is left out and tried again later"
        elif reader is not None and not set(signatures).isdisjoint(reader.roots):
            yield f"a stream into a stateful task raised {reason}; it is left out and tried again later"


def fragment_status(fragment: RunningFragment) -> FragmentStatus:
    """How a fragment is doing."""
    progress = fragment.query.lastProgress if fragment.query is not None else None
    last = fragment.last
    return FragmentStatus(
        fragment.fragment.id,
        fragment.fragment.kind.value,
        len(fragment.fragment.tasks),
        last.epoch,
        last.snapshot,
        int(progress["numInputRows"]) if progress else 0,
        last.rows_out,
        last.seconds,
        fragment.behind(),
        fragment.failure,
        _rate(progress["inputRowsPerSecond"]) if progress else 0.0,
    )


def _rate(told: float | None) -> float:
    return told if told is not None and math.isfinite(told) else 0.0
