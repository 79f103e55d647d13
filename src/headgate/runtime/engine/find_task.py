"""Finding tasks of a snapshot: by the names that people use, and by the signatures that policies use. Pure."""

from __future__ import annotations

from headgate.errors import InputError, unknown
from headgate.model.names import Signature, TaskId
from headgate.model.task import Task
from headgate.model.task_type import Role, State, TaskType
from headgate.model.work import SourceWork
from headgate.runtime.compile.plan import CompiledPlan, alternate_key
from headgate.runtime.engine.snapshot import Snapshot
from headgate.runtime.io.sources import hot_limit
from headgate.sharing.past import dataflow_of
from headgate.tasks.registry import Registry

__all__ = ["check_limit", "check_partitions", "check_places", "chosen_alternate", "find_task", "task_of"]


def find_task(snapshot: Snapshot, dataflow: str, task: str) -> tuple[Signature, Task]:
    """The task of that name in a dataflow, as it runs."""
    submitted = snapshot.find(dataflow)
    signature = submitted.signatures.get(TaskId(task))
    if signature is not None:
        return signature, next(one for one in submitted.dataflow.tasks if one.id == task)
    if task in {one.id for one in submitted.written.tasks}:
        message = f"task '{task}' of '{dataflow}' does not run: its rows come from a wider stream that others share"
        raise InputError("TASK_NOT_RUN", message)
    raise unknown("UNKNOWN_TASK", f"dataflow '{dataflow}' has no task '{task}'", task, submitted.signatures)


def task_of(snapshot: Snapshot, signature: Signature) -> tuple[str, Task]:
    """A dataflow that has a task of this signature, and the task."""
    used = snapshot.shared.running.tasks.get(signature)
    if used is None:
        raise InputError("UNKNOWN_TASK", f"no task has the signature '{signature[:16]}'")
    name = min(used.users)
    tasks = snapshot.submitted(name).dataflow.tasks
    return dataflow_of(name), next(task for task in tasks if task.id == used.users[name])


def chosen_alternate(dataflow: str, task: Task, alternate: str) -> str:
    """An alternate of a task, as snapshots name it."""
    names = [way.name for way in task.alternates]
    if alternate not in names:
        message = f"task '{task.id}' of '{dataflow}' has no alternate '{alternate}'; it has {', '.join(names)}"
        raise InputError("UNKNOWN_ALTERNATE", message)
    return alternate_key(task.alternates[names.index(alternate)])


def check_partitions(count: int | None) -> None:
    """Raise :class:`InputError` for a number of partitions that there cannot be."""
    if count is not None and count < 1:
        raise InputError("BAD_PARTITIONS", f"{count} partitions: at least 1 is needed")


def check_places(dataflow: str, task: Task, registry: Registry, machines: tuple[str, ...] | None) -> None:
    """Raise :class:`InputError` for a task whose partitions cannot be placed on machines."""
    if machines is None:
        return
    if not machines:
        raise InputError("BAD_PLACES", f"no machine is given for task '{task.id}' of '{dataflow}'; name one for each")
    works = [registry[way.type].work for way in task.alternates]
    if all(isinstance(work, SourceWork) and work.splits is not None for work in works):
        return
    if any(isinstance(work, SourceWork) for work in works):
        readable = ", ".join(kind.name for kind in registry.values() if _is_read_in_parts(kind))
        reason = f"Spark reads it by itself; sources that can be placed are {readable}"
    else:
        reason = "it runs where its rows are; place the source that it reads"
    raise InputError("NOT_PLACEABLE", f"task '{task.id}' of '{dataflow}' cannot be placed: {reason}")


def _is_read_in_parts(kind: TaskType) -> bool:
    return isinstance(kind.work, SourceWork) and kind.work.splits is not None


def check_limit(plan: CompiledPlan, signature: Signature, dataflow: str, task: str, rows: int | None) -> bool:
    """Raise :class:`InputError` for a limit that a task cannot have.

    Returns whether it holds from the next micro-batch on, without a restart of the query.
    """
    if rows is not None and rows < 1:
        raise InputError("BAD_LIMIT", f"{rows} rows per trigger: at least 1 is needed")
    running = plan.tasks.get(signature)
    if running is None:
        raise InputError("CANNOT_LIMIT", f"dataflow '{dataflow}' is paused; resume it first")
    if running.role is not Role.SOURCE and running.state is State.NONE:
        message = f"task '{task}' has no input limit of its own; set the limit on its source or on the stateful"
        raise InputError("CANNOT_LIMIT", f"{message} task before it")
    return running.role is not Role.SOURCE or hot_limit(running)
