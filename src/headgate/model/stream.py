"""Streams: the edges of a dataflow, with their ports and routing."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.model.names import PortName, TaskId

__all__ = ["DUPLICATE", "ByKey", "ByPredicate", "Duplicate", "Routing", "Stream"]


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Every row goes down this stream, whatever goes down the others."""


@dataclass(frozen=True, slots=True)
class ByPredicate:
    """Only the rows for which a SQL predicate holds go down this stream."""

    where: str


@dataclass(frozen=True, slots=True)
class ByKey:
    """Every row goes down this stream; rows with equal keys go to one instance of the reader, in order."""

    columns: tuple[str, ...]


Routing = Duplicate | ByPredicate | ByKey

DUPLICATE = Duplicate()


@dataclass(frozen=True, slots=True)
class Stream:
    """Rows on their way from an output port to an input port.

    ``side`` is the stream's place (from 0) among those that enter a joining port, ``None`` where streams interleave.
    ``feedback`` marks the streams that close a loop.
    """

    source: TaskId
    source_port: PortName
    target: TaskId
    target_port: PortName
    routing: Routing = DUPLICATE
    side: int | None = None
    feedback: bool = False

    def __str__(self) -> str:
        return f"{self.source}:{self.source_port} -> {self.target}:{self.target_port}"
