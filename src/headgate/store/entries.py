"""The entries of a state directory's journal: all that an engine must not forget, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

from pydantic import TypeAdapter

from headgate.store.chain_entries import ChainKept
from headgate.store.decision_entries import (
    DecisionEnded,
    DecisionMade,
    DecisionVerified,
    PolicyChosen,
    StepChanged,
    TermsRecorded,
)

__all__ = [
    "STEPS",
    "Acknowledged",
    "Audited",
    "CommittedOutput",
    "DataflowStored",
    "Delivered",
    "Entry",
    "EpochCommitted",
    "FragmentBegun",
    "FragmentRemoved",
    "LettersRedriven",
    "MachineNoted",
    "OutputKind",
    "SnapshotPublished",
    "StagedRows",
    "Target",
    "TokenStored",
    "UsageChanged",
    "decoded_entry",
    "encoded_entry",
]


@dataclass(frozen=True, slots=True)
class DataflowStored:
    """A dataflow as it was submitted, checked and signed; snapshots refer to it."""

    id: str
    document: Mapping[str, Any]

    @property
    def key(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True)
class SnapshotPublished:
    """A plan snapshot: every epoch that is planned after this entry runs it or a later one."""

    number: int
    snapshot: Mapping[str, Any]

    @property
    def key(self) -> str:
        return str(self.number)


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What a request was answered; appended together with the change that it asked for."""

    KEPT_S: ClassVar[float] = 24 * 3600.0
    """How long answers are known."""

    request: str
    """The id that the client chose."""

    fingerprint: str
    """Of what was asked for: the same id with another request is a mistake."""

    status: int
    body: Mapping[str, Any]
    at: float

    @property
    def key(self) -> str:
        return self.request


@dataclass(frozen=True, slots=True)
class FragmentBegun:
    """A fragment came with a snapshot."""

    fragment: str
    snapshot: int
    run: str
    """Tells this run of the fragment from others: epochs count from 0 again in a new one."""

    start: Mapping[str, int]
    """After which batch of each topic it begins to read."""

    groups: int
    """How many groups the keys of a keyed host are hashed into."""

    @property
    def key(self) -> str:
        return self.fragment

    @property
    def origin(self) -> str:
        """Fragment and run, the key of its commits."""
        return f"{self.fragment}-{self.run}"


@dataclass(frozen=True, slots=True)
class FragmentRemoved:
    """A run of a fragment was stopped for good."""

    fragment: str
    run: str

    @property
    def key(self) -> str:
        return self.fragment


class OutputKind(StrEnum):
    """Where an output goes."""

    SINK = "sink"
    TOPIC = "topic"
    LETTERS = "letters"
    HOST_LETTERS = "host letters"
    """Rows for which some tasks of a keyed host raised, with the errors of all of them together."""


class Target(NamedTuple):
    """Where an output goes, and under which plan snapshot."""

    kind: OutputKind
    name: str
    snapshot: int


class StagedRows(NamedTuple):
    """A staged file, and how many rows it has."""

    path: str
    rows: int


@dataclass(frozen=True, slots=True)
class CommittedOutput:
    """The staged files of an epoch for one target."""

    target: Target
    files: tuple[StagedRows, ...]
    number: int = -1
    """Of the batch, if it goes to a topic."""

    ingested_us: int = 0
    """When the events of a topic's rows were taken in, in the mean."""

    reasons: tuple[str, ...] = ()
    """Known reasons why a task raises, for rows that failed."""

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


@dataclass(frozen=True, slots=True)
class EpochCommitted:
    """What an epoch has put out; it is never run again."""

    origin: str
    epoch: int
    snapshots: tuple[int, ...]
    """The plan snapshots that it ran."""

    outputs: tuple[CommittedOutput, ...] = ()
    offsets: str = ""
    """Up to where it has read, as Spark's checkpoint has it."""

    chains: tuple[ChainKept, ...] = ()
    """The state of its windows and joins after it."""

    @property
    def key(self) -> str:
        return self.origin


@dataclass(frozen=True, slots=True)
class Delivered:
    """Sinks and topics have what an epoch has committed, or it is queued for them."""

    origin: str
    epoch: int

    @property
    def key(self) -> str:
        return self.origin


@dataclass(frozen=True, slots=True)
class LettersRedriven:
    """Rows that failed were offered again; appended together with the commit of what came of them."""

    redrive: str
    """The origin of the commit."""

    deliveries: tuple[tuple[str, str], ...]
    """The letters: the signature of the task and what their files are called."""

    dataflows: tuple[str, ...]
    """For which they are none any more."""

    @property
    def key(self) -> str:
        return self.redrive


@dataclass(frozen=True, slots=True)
class UsageChanged:
    """What of the machines is used from a moment on, and by whom; nothing when an engine has stopped.

    It has no key: one does not replace another.
    """

    at_s: int
    usage: Mapping[str, Any] | None = None

    @property
    def key(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class MachineNoted:
    """A provider's machine, as it is paid for; times are seconds since 1970."""

    name: str
    vm_class: str
    cores: int
    price_per_h: str
    acquired: float
    gone: float | None = None
    known_until: float | None = None
    """Until when it is known to have been held, where no engine watches it any more."""

    @property
    def key(self) -> str:
        return f"{self.name} {self.acquired}"


@dataclass(frozen=True, slots=True)
class Audited:
    """Who has changed what, from where; appended together with the change.

    It has no key: one does not replace another.
    """

    KEPT_S: ClassVar[float] = 90 * 24 * 3600.0
    """How long it is known."""

    at: float
    principal: str
    role: str
    origin: str
    action: str
    objects: tuple[str, ...]
    outcome: str
    """``done``, or the condition of the refusal."""

    message: str = ""

    @property
    def key(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class TokenStored:
    """A token that requests may carry, or that it is revoked. Its secret is nowhere, only a hash of it."""

    name: str
    digest: str
    """The SHA-256 of the secret."""

    role: str
    teams: tuple[str, ...]
    created_by: str
    created_at: float
    expires_at: float | None = None
    revoked: bool = False

    @property
    def key(self) -> str:
        return self.name


Entry = (
    DataflowStored
    | SnapshotPublished
    | Acknowledged
    | FragmentBegun
    | FragmentRemoved
    | EpochCommitted
    | Delivered
    | LettersRedriven
    | UsageChanged
    | MachineNoted
    | Audited
    | PolicyChosen
    | TermsRecorded
    | DecisionMade
    | StepChanged
    | DecisionEnded
    | DecisionVerified
    | TokenStored
)

STEPS: dict[str, str] = {
    "DataflowStored": "dataflow",
    "SnapshotPublished": "snapshot",
    "Acknowledged": "answer",
    "FragmentBegun": "fragment",
    "FragmentRemoved": "fragment-removed",
    "EpochCommitted": "commit",
    "Delivered": "delivered",
    "LettersRedriven": "redriven",
    "UsageChanged": "usage",
    "MachineNoted": "usage",
    "Audited": "snapshot",
    "PolicyChosen": "decision",
    "TermsRecorded": "decision",
    "DecisionMade": "decision",
    "StepChanged": "step",
    "DecisionEnded": "decision-ended",
    "DecisionVerified": "decision-ended",
    "TokenStored": "token",
}
"""The durable step that appending each kind of entry is; who made a change is part of the change."""

_FORMS: dict[str, TypeAdapter[Any]] = {kind.__name__: TypeAdapter(kind) for kind in Entry.__args__}


def encoded_entry(entry: Entry) -> bytes:
    """An entry as JSON on one line.

    >>> encoded_entry(Delivered("a-1", 7))
    b'{"origin":"a-1","epoch":7}'
    """
    return _FORMS[type(entry).__name__].dump_json(entry)


def decoded_entry(kind: str, value: object) -> Entry:
    """The entry that was encoded."""
    entry: Entry = _FORMS[kind].validate_python(value)
    return entry
