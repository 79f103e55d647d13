"""Finding tasks of a snapshot: by the names that people use, and by the signatures that policies use. Pure."""

from __future__ import annotations

from headgate.errors import InputError, unknown
from headgate.model.names import Signature
from headgate.model.task import Task
from headgate.runtime.engine.snapshot import Snapshot, alternate_key
from headgate.sharing.deduplicate import deduplicate

__all__ = ["check_partitions", "chosen_alternate", "find_task", "task_of"]


def find_task(snapshot: Snapshot, dataflow: str, task: str) -> tuple[Signature, Task]:
    """The task of that name in a dataflow, as it runs."""
    written = snapshot.find(dataflow)
    flow = snapshot.as_run(written)
    signatures = deduplicate(flow).signatures
    for found in flow.tasks:
        if found.id == task:
            return signatures[found.id], found
    if task in {found.id for found in written.tasks}:
        told = f"task '{task}' of '{dataflow}' does not run: its rows come from a wider stream that others share"
        raise InputError("TASK_NOT_RUN", told)
    raise unknown("UNKNOWN_TASK", f"dataflow '{dataflow}' has no task '{task}'", task, [each.id for each in flow.tasks])


def task_of(snapshot: Snapshot, signature: Signature) -> tuple[str, Task]:
    """A dataflow that has a task of this signature, and the task."""
    for written in snapshot.dataflows:
        flow = snapshot.as_run(written)
        signatures = deduplicate(flow).signatures
        for task in flow.tasks:
            if signatures.get(task.id) == signature:
                return flow.name, task
    raise InputError("UNKNOWN_TASK", f"no task has the signature '{signature[:16]}'")


def chosen_alternate(dataflow: str, task: Task, alternate: str) -> str:
    """An alternate of a task, as snapshots name it."""
    names = [way.name for way in task.alternates]
    if alternate not in names:
        told = f"task '{task.id}' of '{dataflow}' has no alternate '{alternate}'; it has {', '.join(names)}"
        raise InputError("UNKNOWN_ALTERNATE", told)
    return alternate_key(task.alternates[names.index(alternate)])


def check_partitions(count: int | None) -> None:
    """Raise :class:`InputError` for a number of partitions that there cannot be."""
    if count is not None and count < 1:
        raise InputError("BAD_PARTITIONS", f"{count} partitions: at least 1 is needed")
