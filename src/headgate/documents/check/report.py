"""Faults and notices of a check so far, and the tasks as far as they could be read."""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.documents.document import InputDocument
from headgate.documents.located import Located, Path
from headgate.errors import Fault, NameFinder, Notice, shorten
from headgate.model.names import TaskId
from headgate.model.on_error import OnError
from headgate.model.share import Share
from headgate.model.stream import Stream
from headgate.model.task import Alternate, Ports
from headgate.model.task_type import TaskConfig

__all__ = ["Report", "TaskInCheck", "failed"]


class Report:
    """Collects faults and notices, each with its place in the document."""

    def __init__(self, located: Located) -> None:
        self.located = located
        self.faults: list[Fault] = list(located.faults)
        self.notices: list[Notice] = []
        self.nearest = NameFinder().nearest

    def fault(
        self,
        condition: str,
        path: Path,
        message: str,
        task: str | None = None,
        expected: str | None = None,
        near: str | None = None,
    ) -> None:
        self.faults.append(Fault(condition, message, self.located.place(path), task, expected, near))

    def notice(self, condition: str, path: Path, message: str, task: str) -> None:
        self.notices.append(Notice(condition, message, self.located.place(path), task))


@dataclass(slots=True)
class TaskInCheck:
    """A task as far as it could be understood."""

    id: TaskId
    path: Path
    inputs: tuple[InputDocument, ...]
    """The streams that enter it, as they are written. The rest of its document is released as soon as it is read:
    with many tasks, time goes into memory."""

    has_alternates: bool
    share: Share | None = None
    on_error: OnError = OnError.FAIL
    time_budget_s: float | None = None
    publish: str = ""
    alternates: list[Alternate] = field(default_factory=list)
    configs: list[tuple[int, TaskConfig]] = field(default_factory=list)
    """The options of each alternate, with its place in the document's list of alternates."""

    ports: Ports | None = None
    """The ports, where they are known."""

    declared: Ports | None = None
    """The ports that the author named, where the type leaves that open."""

    user_defined: bool = False
    """Whether every alternate leaves its ports to the author."""

    feeds: list[tuple[int, Stream]] = field(default_factory=list)
    """The streams that enter it, each with its place in the document's list of inputs."""


def failed(task_type: str, error: Exception) -> str:
    """Say that the code of a task type raised what it should not have: its author's mistake, not the dataflow's."""
    return f"task type '{task_type}' failed: {type(error).__name__}: {shorten(str(error), 200)}"
