"""A change before it is made: what of the new dataflows runs already, what would be added, and everybody's bill."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from headgate.billing.usage import Customer
from headgate.documents import parse
from headgate.documents.document import to_document
from headgate.errors import InputError
from headgate.model.dataflow import Dataflow
from headgate.model.names import Signature
from headgate.service.console.hourly import HourlyCosts, MachinePrice, hourly_costs, users_of_tasks
from headgate.service.submit import split_submission
from headgate.sharing.deduplicate import SignedDataflow, deduplicate
from headgate.sharing.running import RunningSet
from headgate.sharing.shared_set import SharedSet, Submission
from headgate.tasks.registry import Registry

__all__ = [
    "FORMS",
    "BillDifference",
    "PlanPreview",
    "PlannedTask",
    "PreviewedDataflow",
    "check_snapshot",
    "preview",
    "read_text",
]

FORMS = ("yaml", "json", "xml")
"""Formats that a request may bring. A dataflow in Python is a program, and runs where its author is."""


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """What becomes of a task."""

    task: str
    type: str
    change: str
    """``reused``: it runs already. ``rewritten``: its rows come from a wider stream that runs. ``new``."""

    detail: str


@dataclass(frozen=True, slots=True)
class PreviewedDataflow:
    """What becomes of a dataflow: ``new``, ``replaced``, or ``unchanged`` if it runs exactly so."""

    dataflow: str
    owner: str
    change: str
    tasks: tuple[PlannedTask, ...]
    touched: tuple[str, ...]
    """Other dataflows that share a task with it."""

    service_level: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BillDifference:
    """What a dataflow pays an hour before and after; ``None`` while it is not there, or not for who asks."""

    dataflow: str
    owner: str
    before: float | None
    after: float | None
    alone: float | None


@dataclass(frozen=True, slots=True)
class PlanPreview:
    """What a submission would change; nothing has changed."""

    snapshot: int
    """The plan snapshot that it was computed for."""

    documents: tuple[Mapping[str, Any], ...]
    """The dataflows as their JSON documents, to be submitted."""

    notices: tuple[str, ...]
    dataflows: tuple[PreviewedDataflow, ...]
    bills: tuple[BillDifference, ...]
    total_before: float
    total_after: float
    currency: str
    tasks_before: int
    tasks_after: int


def read_text(text: str, form: str, registry: Registry) -> tuple[SignedDataflow, Dataflow, tuple[str, ...]]:
    """A dataflow from its text; raises :class:`~headgate.errors.InvalidDataflow` with every fault and its line."""
    if form not in FORMS:
        raise InputError("UNKNOWN_FORMAT", f"'{form[:20]}' is not a format of dataflows; choose {', '.join(FORMS)}")
    checked = parse(text, form, registry, f"dataflow.{form}")
    signed = deduplicate(checked.dataflow)
    return signed, checked.dataflow, tuple(notice.message for notice in (*checked.notices, *signed.notices))


def preview(
    shared: SharedSet,
    snapshot: int,
    given: tuple[SignedDataflow, Dataflow, tuple[str, ...]],
    *,
    replace: bool,
    paused: Collection[str],
    prices: tuple[list[MachinePrice], str],
    may_see_costs: Callable[[str], bool],
) -> PlanPreview:
    """Submit a dataflow to the running set as a value, of which nobody else hears."""
    signed, written, notices = given
    todo = split_submission(shared.running, [signed], replace)
    before, after, submission = shared, shared, None
    if not todo.continued:
        if todo.replacing:
            after, _ = after.withdraw(signed.name)
        after, submission = after.submit(signed)
    old = _costs(before.running, paused, prices)
    new = _costs(after.running, paused, prices)
    names = {str(name): str(one.dataflow.owner) for name, one in after.running.submitted.items()}
    bills = [
        BillDifference(
            name,
            owner,
            old.paid.get(name) if name in before.running else None,
            new.paid.get(name, 0.0),
            new.alone.get(name),
        )
        if may_see_costs(owner)
        else BillDifference(name, owner, None, None, None)
        for name, owner in names.items()
    ]
    change = "unchanged" if todo.continued else "replaced" if todo.replacing else "new"
    return PlanPreview(
        snapshot,
        (to_document(written),),
        notices,
        (_previewed(signed, written, change, submission, before.running),),
        tuple(bills),
        old.total,
        new.total,
        prices[1],
        len(before.running.tasks),
        len(after.running.tasks),
    )


def _costs(running: RunningSet, paused: Collection[str], prices: tuple[list[MachinePrice], str]) -> HourlyCosts:
    written = [one.written for one in running.submitted.values()]
    customers = [Customer(flow.name, flow.owner, len(flow.tasks)) for flow in written]
    return hourly_costs(users_of_tasks(running, paused), customers, *prices)


def _previewed(
    signed: SignedDataflow, written: Dataflow, change: str, submission: Submission | None, running: RunningSet
) -> PreviewedDataflow:
    level = to_document(written).get("service_level", {})
    if submission is None:
        tasks = [PlannedTask(task.id, task.type, "reused", "runs already, exactly so") for task in written.tasks]
        return PreviewedDataflow(signed.name, str(written.owner), change, tuple(tasks), (), level)
    users = {shared.id: shared.named_users() for shared in submission.change.shared}
    exact = set(submission.exact)
    feeds = {(submission.written.get(stream.source), stream.target) for stream in written.streams}
    # What reads its own input, as it was written, is not rewritten.
    wider = {match.task: match for match in submission.wider if (match.wider, match.task) not in feeds}
    residual = {name for match in submission.wider for name in match.residual}
    tasks = []
    for task in written.tasks:
        if task.id in exact:
            tasks.append(PlannedTask(task.id, task.type, "reused", f"shared with {users[task.id]}"))
        elif task.id in wider:
            match = wider[task.id]
            by = f", then {' and '.join(match.residual)}" if match.residual else ""
            detail = f"from the wider stream {_named(running, match.wider)}{by}"
            tasks.append(PlannedTask(task.id, task.type, "rewritten", detail))
        elif task.id in submission.change.own_ids or task.id in residual:
            tasks.append(PlannedTask(task.id, task.type, "new", ""))
        else:
            tasks.append(PlannedTask(task.id, task.type, "reused", "not needed: a wider stream has its rows"))
    touched = tuple(sorted(map(str, submission.change.touched)))
    return PreviewedDataflow(signed.name, str(written.owner), change, tuple(tasks), touched, level)


def _named(running: RunningSet, signature: str) -> str:
    """A running task as ``dataflow.task``."""
    used = running.tasks.get(Signature(signature))
    if used is None:
        return signature
    first = used.running.brought_by if used.running.brought_by in used.users else min(used.users)
    return f"{first}.{used.users[first]}"


def check_snapshot(planned: str | None, number: int) -> None:
    """Raise :class:`InputError` unless a change was planned for the snapshot that runs, such as ``"plan-17"``."""
    if planned is not None and planned != f'"plan-{number}"':
        message = f"This was planned for {planned}, and plan snapshot {number} runs by now. Look at the plan again."
        raise InputError("PLAN_STALE", message, {"planned": planned, "running": number})
