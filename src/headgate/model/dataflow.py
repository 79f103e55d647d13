"""The dataflow: a graph of tasks submitted by one owner, as a value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from headgate.model.names import DataflowName, Owner
from headgate.model.service_level import ServiceLevel
from headgate.model.share import Share, scope_of
from headgate.model.start import Start
from headgate.model.stream import Stream
from headgate.model.task import Task

__all__ = ["DEFAULT_OWNER", "Dataflow"]

DEFAULT_OWNER = Owner("nobody")


@dataclass(frozen=True, slots=True)
class Dataflow:
    """Tasks and the streams between them, whose they are and what is asked of them.

    Tasks stand in the order in which the author listed them; streams by the task they enter, and for one task in the
    order in which they were listed. Equal dataflows are equal values, whichever format they were read from.
    """

    name: DataflowName
    tasks: tuple[Task, ...]
    streams: tuple[Stream, ...] = ()
    owner: Owner = DEFAULT_OWNER
    description: str = ""
    service_level: ServiceLevel = field(default_factory=ServiceLevel)
    share: Share = Share.ANYONE
    """With whom its tasks may be shared, where a task does not say otherwise."""

    start: Start | None = None
    """From where it reads; as each of its sources would alone if left out."""

    def __post_init__(self) -> None:
        position = {task.id: index for index, task in enumerate(self.tasks)}
        if len(position) < len(self.tasks):
            raise ValueError(f"dataflow '{self.name}' has two tasks of one id")
        for stream in self.streams:
            if stream.source not in position or stream.target not in position:
                raise ValueError(f"stream {stream} has an end that is no task of dataflow '{self.name}'")
        object.__setattr__(self, "streams", tuple(sorted(self.streams, key=lambda s: position[s.target])))

    def scope(self, task: Task) -> str:
        """The circle within which one of its tasks may be shared; empty for everyone."""
        return task.scope or scope_of(task.share or self.share, self.owner, self.name)

    @property
    def types(self) -> Iterable[str]:
        """Every task type that is mentioned, alternates included, once each."""
        return dict.fromkeys(alternate.type for task in self.tasks for alternate in task.alternates)
