"""What a snapshot holds of starts: which sources read from where, and which dataflows catch up. Values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from headgate.model.names import Signature

__all__ = ["Begin", "CatchUp", "Reading", "SinkTurn"]


@dataclass(frozen=True, slots=True)
class Reading:
    """From where, and up to where, a source reads that does not read all there is."""

    of: Signature
    """The source as it would be without this."""

    mark: str
    """What its tasks are marked with."""

    number: int
    """The snapshot with which it came."""

    bounded: bool = False
    """Whether it reads what the running source had read before that snapshot, and no more."""

    modified_since_ns: int = 0
    arrived_since_ns: int = 0
    earliest: bool = False
    """Whether it begins at the earliest, of a source that else begins now."""

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> Reading:
        return cls(**kept)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class CatchUp:
    """The past of a dataflow, as it is run beside the running tasks."""

    stored: str
    """Under which name the copy is stored."""

    sinks: Mapping[Signature, Signature]
    """For each sink of the copy the running one, which keeps its rows until the copy has ended."""

    handed: tuple[Signature, ...] = ()
    """Running tasks with state of their own, which get the rows of the copy first, and then those of running tasks."""

    copies: Mapping[Signature, Signature] = field(default_factory=dict)
    """For each running task that the copy has too the task of the copy, if anything is handed."""

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "sinks": dict(self.sinks), "handed": list(self.handed), "copies": dict(self.copies)}

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> CatchUp:
        return cls(**{**kept, "handed": tuple(kept.get("handed", ()))})


@dataclass(frozen=True, slots=True)
class Begin:
    """From where a dataflow begins, and its tasks count."""

    state: str = ""
    """The mark of its stateful tasks and sinks."""

    sources: Mapping[Signature, str] = field(default_factory=dict)
    """The marks of its sources, by what they would be without."""

    since: str = ""
    """From when on its output is complete: ``earliest``, or a time."""

    lacks: str = ""
    """What was gone of its past when it came."""

    def as_dict(self) -> dict[str, Any]:
        return {"state": self.state, "sources": dict(self.sources), "since": self.since, "lacks": self.lacks}


class SinkTurn(Enum):
    """What is to become of rows for a sink."""

    NOW = 0
    LATER = 1
    """They follow what is still being caught up with."""

    NEVER = 2
    """Their dataflow was withdrawn before it had caught up."""
