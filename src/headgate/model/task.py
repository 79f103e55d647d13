"""Tasks and their alternates."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from headgate.model.config import Config
from headgate.model.names import PortName, TaskId
from headgate.model.on_error import OnError
from headgate.model.schema import Schema
from headgate.model.share import Share

__all__ = ["Alternate", "Gather", "Port", "Ports", "Task"]


class Gather(StrEnum):
    """What happens to several streams that enter one port."""

    INTERLEAVE = "interleave"
    """Their rows are mixed as they come; the order of the streams means nothing."""

    JOIN = "join"
    """They are the sides of a join; the first listed is the left one."""


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a task; the schema is ``None`` where any rows do."""

    name: PortName
    schema: Schema | None = None
    gather: Gather = Gather.INTERLEAVE
    streams_min: int = 1
    streams_max: int | None = None


@dataclass(frozen=True, slots=True)
class Ports:
    """The inputs and outputs of a task, in order."""

    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()

    def input(self, name: str) -> Port | None:
        return next((port for port in self.inputs if port.name == name), None)

    def output(self, name: str) -> Port | None:
        return next((port for port in self.outputs if port.name == name), None)


@dataclass(frozen=True, slots=True)
class Alternate:
    """One interchangeable way to do a task.

    ``value`` is the result of the owner's value function, any positive number (f in DYN, Eq. 1); ``cost_s`` the known
    core-seconds per message on the reference core (c), ``selectivity`` the known messages out per message in (s).
    """

    name: str
    type: str
    config: Config = field(default_factory=Config)
    value: float = 1.0
    cost_s: float | None = None
    selectivity: float | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One typed step of a dataflow: what it does, as one alternate or several.

    ``ports`` is set only where the dataflow's author names them (user-defined tasks); otherwise the task type has them.

    >>> task = Task(TaskId("t"), (Alternate("lda", "python", value=0.7), Alternate("mwe", "python", value=1.4)))
    >>> task.relative_values
    (0.5, 1.0)
    """

    id: TaskId
    alternates: tuple[Alternate, ...]
    ports: Ports | None = None
    share: Share | None = None
    """With whom it may be shared; as its dataflow says if left out."""

    on_error: OnError = OnError.FAIL
    """What becomes of a row for which it raises."""

    time_budget_s: float | None = None
    """The most time that it may take for a micro-batch; as the engine says if left out."""

    publish: str = ""
    """Under which name other dataflows may read what it puts out; under none if empty."""

    scope: str = ""
    """In a merged graph, the circle to which the task is confined; empty in what people write."""

    def __post_init__(self) -> None:
        if not self.alternates:
            raise ValueError(f"task '{self.id}' has no alternate: give it a type")
        if len({alternate.name for alternate in self.alternates}) < len(self.alternates):
            raise ValueError(f"task '{self.id}' has two alternates of one name")

    @property
    def type(self) -> str:
        """The type of the first alternate, which is the only one of most tasks."""
        return self.alternates[0].type

    @property
    def config(self) -> Config:
        """The configuration of the first alternate."""
        return self.alternates[0].config

    @property
    def is_dynamic(self) -> bool:
        """Whether there is a choice between alternates."""
        return len(self.alternates) > 1

    @property
    def relative_values(self) -> tuple[float, ...]:
        """Each alternate's value over the best one's, in (0, 1] (gamma in DYN, Eq. 1)."""
        best = max(alternate.value for alternate in self.alternates)
        return tuple(alternate.value / best for alternate in self.alternates)
