"""From a document to a dataflow: all faults are reported at once, each with its line.

The steps, each over what the steps before it could make sense of:

1. the document's own fields (here);
2. each task's fields, types, options and ports (:mod:`headgate.documents.check.tasks`);
3. the streams and the graph they make (:mod:`headgate.documents.check.streams`);
4. the columns that options and routing read (:mod:`headgate.documents.check.columns`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from headgate.documents.check.columns import check_columns
from headgate.documents.check.limits import check_chains, check_size
from headgate.documents.check.pydantic_faults import complaints
from headgate.documents.check.report import Report
from headgate.documents.check.streams import check_loops, connect, tell_unread_outputs
from headgate.documents.check.tasks import Tasks, understand_tasks
from headgate.documents.document import DataflowDocument
from headgate.documents.located import Located
from headgate.errors import InvalidDataflow, Notice, Place
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, Owner
from headgate.model.start import Start, StartKind
from headgate.model.task import Task
from headgate.model.task_type import OUT
from headgate.model.work import SourceWork
from headgate.tasks.registry import Registry

__all__ = ["Checked", "check"]


@dataclass(frozen=True, slots=True)
class Checked:
    """A valid dataflow, and notices for its author."""

    dataflow: Dataflow
    notices: tuple[Notice, ...]
    located: Located

    def places(self, tasks: Iterable[str]) -> dict[str, Place]:
        """Where tasks are in their file."""
        wanted = set(tasks)
        numbered = enumerate(self.dataflow.tasks)
        return {task.id: self.located.place(["tasks", index]) for index, task in numbered if task.id in wanted}


def check(located: Located, registry: Registry, default_name: str = "dataflow") -> Checked:
    """Turn a document into a dataflow; raises :class:`InvalidDataflow` with every fault."""
    report = Report(located)
    head = _understand_head(report)
    raw = list(_raw_tasks(located.value))
    tasks = understand_tasks(raw if check_size(len(raw), report) else (), registry, report)
    connect(tasks, report)
    if not check_loops(tasks, report):
        check_columns(tasks, report)
        check_chains(tasks, registry, report)
    _check_published(tasks, report)
    if head is not None and head.start is not None:
        _check_start(Start.parse(head.start), tasks, registry, report)
    if report.faults or head is None:
        raise InvalidDataflow(report.faults)
    tell_unread_outputs(tasks, report)
    return Checked(_dataflow(head, tasks, default_name), tuple(report.notices), located)


def _understand_head(report: Report) -> DataflowDocument | None:
    value = report.located.value
    if not isinstance(value, Mapping):
        message = "the file is empty" if value is None else f"the file holds {_kind(value)}"
        report.fault("NOT_A_DATAFLOW", (), message, expected="a mapping with name and tasks")
        return None
    try:
        return DataflowDocument.model_validate(value)
    except ValidationError as error:
        report.faults += complaints(error, DataflowDocument, report.located)
        return None


def _raw_tasks(value: object) -> Iterable[object]:
    tasks = value.get("tasks") if isinstance(value, Mapping) else None
    return tasks if isinstance(tasks, list) else ()


def _check_start(start: Start, tasks: Tasks, registry: Registry, report: Report) -> None:
    """A dataflow cannot start in the past of a source that has none."""
    if start.kind in (StartKind.NOW, StartKind.WITH):
        return
    for task in tasks.known.values():
        for alternate in task.alternates:
            work = registry[alternate.type].work
            if isinstance(work, SourceWork) and not work.past:
                message = f"start: {start} needs a source whose past can be read again, which {alternate.type} is not"
                expected = "start: now, or no start: then files are read from the earliest and other sources from now"
                report.fault("NO_PAST", ("start",), message, task.id, expected)


def _check_published(tasks: Tasks, report: Report) -> None:
    """What is published is a stream, and each has a name of its own."""
    names: dict[str, str] = {}
    for task in tasks.known.values():
        if not task.publish:
            continue
        if task.ports is not None and OUT not in [port.name for port in task.ports.outputs]:
            message = f"publish: {task.publish} needs a task that puts rows out at '{OUT}', which '{task.id}' does not"
            report.fault("NOTHING_TO_PUBLISH", [*task.path, "publish"], message, task.id, "publish at another task")
        if names.setdefault(task.publish, task.id) != task.id:
            message = f"'{task.publish}' is published by task '{names[task.publish]}' already"
            report.fault("DUPLICATE_STREAM", [*task.path, "publish"], message, task.id, "a name for each stream")


def _dataflow(head: DataflowDocument, tasks: Tasks, default_name: str) -> Dataflow:
    return Dataflow(
        name=DataflowName(head.name or default_name),
        tasks=tuple(
            Task(
                task.id,
                tuple(task.alternates),
                task.declared,
                task.share,
                task.on_error,
                task.time_budget_s,
                task.publish,
            )
            for task in tasks.known.values()
        ),
        streams=tuple(stream for task in tasks.known.values() for _, stream in task.feeds),
        owner=Owner(head.owner),
        description=head.description,
        service_level=head.service_level.value(),
        share=head.share,
        start=None if head.start is None else Start.parse(head.start),
    )


def _kind(value: object) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value)) or ("a list" if isinstance(value, list) else f"a {type(value).__name__}")
