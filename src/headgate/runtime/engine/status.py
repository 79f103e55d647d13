"""How dataflows and fragments are doing, as values."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from headgate.model.dataflow import Dataflow
from headgate.model.names import Signature
from headgate.model.on_error import OnError
from headgate.model.status import DataflowStatus, FragmentStatus
from headgate.runtime.compile.plan import CompiledPlan, CompiledTask, Fragment
from headgate.runtime.engine.past import Begin
from headgate.runtime.engine.snapshot import Snapshot
from headgate.runtime.epochs.fragment import RunningFragment
from headgate.runtime.io.outbox import SinkOutbox
from headgate.runtime.isolation.dead_letters import DeadLetters
from headgate.runtime.spark_internals.failures import source_is_away, storage_refused

__all__ = ["dataflow_statuses", "fragment_name", "fragment_status"]


def dataflow_statuses(
    snapshot: Snapshot,
    plan: CompiledPlan,
    running: Sequence[RunningFragment],
    outbox: SinkOutbox,
    dead_letters: DeadLetters,
) -> list[DataflowStatus]:
    """How each dataflow is doing, in the order of submission."""
    tasks: dict[str, list[CompiledTask]] = {}
    for task in plan.tasks.values():
        for user in task.used_by:
            tasks.setdefault(user, []).append(task)
    return [
        _dataflow_status(flow, tasks.get(flow.name, []), snapshot, plan, running, outbox, dead_letters)
        for flow in snapshot.dataflows
    ]


def _dataflow_status(
    dataflow: Dataflow,
    mine: Sequence[CompiledTask],
    snapshot: Snapshot,
    plan: CompiledPlan,
    running: Sequence[RunningFragment],
    outbox: SinkOutbox,
    dead_letters: DeadLetters,
) -> DataflowStatus:
    """How a dataflow, to which some tasks of the plan belong, is doing.

    It is degraded where a sink of its refuses rows, a task of its raises, or a fragment that runs it has failed.
    """
    signatures = {task.signature for task in mine}
    reasons = [outbox.refusals[signature] for signature in signatures if signature in outbox.refusals]
    mine_run = [f for f in running if signatures & {*f.fragment.tasks, *f.fragment.roots}]
    reasons += [_failed(reason) for fragment in mine_run if (reason := fragment.failure) is not None]
    reasons += [reason for fragment in mine_run for reason in _raised(fragment, plan, signatures)]
    reasons += [_waits(reason) for fragment in mine_run if (reason := fragment.backlog.waits()) is not None]
    degraded = bool(reasons)
    throttled = [reason for fragment in mine_run if (reason := _throttled(fragment, signatures)) is not None]
    reasons += throttled
    reasons += [reason for task in mine if (reason := _left_out(task, dead_letters)) is not None]
    state = (
        "paused"
        if dataflow.name in snapshot.paused
        else "degraded"
        if degraded
        else "throttled"
        if throttled
        else "running"
    )
    rows = sum(outbox.delivered.get(signature, 0) for signature in signatures)
    shared = sum(len(task.used_by) > 1 for task in mine)
    owner = str(dataflow.owner)
    left_out = [dead_letters.left_out(task.signature) for task in mine]
    skipped, dead = sum(one.skipped for one in left_out), sum(one.dead_letters for one in left_out)
    begin = snapshot.begins.get(dataflow.name, Begin())
    counts = len(mine), shared, rows, skipped, dead
    since = begin.since or "earliest"
    return DataflowStatus(dataflow.name, owner, state, "; ".join(reasons), *counts, start=since, lacks=begin.lacks)


def _throttled(fragment: RunningFragment, signatures: Collection[str]) -> str | None:
    """Why a dataflow lags that brings more rows than fit into its triggers; nothing for what only reads behind it.

    As many as the next trigger takes always wait for a moment.
    """
    limit, waiting = fragment.admission.limit, fragment.backlog.throttled()
    if limit is None or waiting <= limit or set(signatures).isdisjoint(fragment.fragment.roots):
        return None
    return (
        f"throttled: input exceeds what one trigger can process; limited to {limit:,} rows a trigger, {waiting:,} wait"
    )


def _waits(reason: str) -> str:
    """That a source waits, and why."""
    return f"{reason}; the source waits, and goes on by itself"


def _failed(reason: str) -> str:
    """Why a fragment has failed; that it waits if it does, and what helps if Spark's file is damaged."""
    if "checksum" in reason.lower():
        return f"{reason}; this file is damaged: restore it from a backup of the state directory"
    if source_is_away(reason):
        return _waits(reason.rpartition("Error: ")[2])
    return f"waits for the file system, and goes on by itself: {reason}" if storage_refused(reason) else reason


def _left_out(task: CompiledTask, dead_letters: DeadLetters) -> str | None:
    """What a task that goes on without the rows for which it raises has left out."""
    left_out = dead_letters.left_out(task.signature)
    counted = left_out.skipped + left_out.dead_letters - left_out.redriven
    if counted <= 0:
        return None
    kept = "skipped" if task.on_error is OnError.SKIP else "put among the dead letters"
    return (
        f"task '{task.name}' has {kept} {counted:,} {'row' if counted == 1 else 'rows'}, the last for {left_out.latest}"
    )


def _raised(fragment: RunningFragment, plan: CompiledPlan, signatures: Collection[str]) -> Iterator[str]:
    """What tasks of a dataflow raised, or the streams into its stateful tasks, and so are left out for a while."""
    readers = {topic.id: plan.fragments.get(topic.reader) for topic in fragment.fragment.writes}
    for item, reason in fragment.epochs.quarantine.reasons.items():
        task, reader = plan.tasks.get(Signature(item)), readers.get(item)
        if task is not None and item in signatures:
            yield f"task '{task.name}' raised {reason}; it is left out and tried again later"
        elif reader is not None and not set(signatures).isdisjoint(reader.roots):
            yield f"a stream into a stateful task raised {reason}; it is left out and tried again later"


def fragment_name(fragment: Fragment, plan: CompiledPlan) -> str:
    """What people call a fragment: its first root task, with the number of the others."""
    names = [plan.tasks[root].name for root in fragment.roots if root in plan.tasks]
    return names[0] + (f" +{len(names) - 1}" if len(names) > 1 else "") if names else fragment.id


def fragment_status(fragment: RunningFragment, plan: CompiledPlan) -> FragmentStatus:
    """How a fragment is doing."""
    last = fragment.last
    return FragmentStatus(
        fragment.fragment.id,
        fragment_name(fragment.fragment, plan),
        fragment.fragment.kind.value,
        len(fragment.fragment.tasks),
        last.epoch,
        last.snapshot,
        last.rows_in,
        last.rows_out,
        last.seconds,
        fragment.backlog.rows() or 0,
        fragment.failure,
        last.rows_per_s,
    )
