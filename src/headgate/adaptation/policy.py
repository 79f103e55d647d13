"""The interface of policies: what one is told, what it decides, and what it remembers.

A policy is pure. It has no clock and no state of its own: what it must know of earlier decisions is its
:class:`Memory`, a value that is handed in and out and can be written down. So a decision can be computed again from
its record, and the same policy decides in simulations, in replays and for an engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from headgate.adaptation.actions import KINDS, Action, SetPartitions, SetRateLimit, SwitchAlternate, kind_of
from headgate.adaptation.kept import JsonValue, read_kept, written_kept
from headgate.errors import BadValue
from headgate.model.cluster.vm_class import Cloud
from headgate.model.dataflow import Dataflow
from headgate.model.names import Signature, TaskId
from headgate.model.service_level import ServiceLevel

if TYPE_CHECKING:
    from headgate.adaptation.window import Window

__all__ = [
    "Capabilities",
    "Decision",
    "Memory",
    "PlannedAction",
    "Policy",
    "Prediction",
    "Reason",
    "Rejected",
    "Terms",
]

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Which actions a platform accepts."""

    pools: tuple[str, ...]
    """Who has cores: where tasks have cores of their own the tasks, by name; on Spark the application."""

    kinds: frozenset[str] = frozenset(KINDS)
    """The kinds of actions that are accepted at all, by name."""

    exclusive: bool = False
    """Whether each task has cores of its own, which are assigned one by one; otherwise machines come whole."""

    switchable: frozenset[Signature] | None = None
    """Tasks whose alternates can be switched while they run; all if none are named."""

    resizable: frozenset[Signature] | None = None
    """Tasks whose number of partitions can be set while they run; all if none are named."""

    limitable: frozenset[Signature] | None = None
    """Sources that take a rate limit while they run; all if none are named."""

    reasons: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Why a kind, or the actions on a task, are refused, by the name of the kind or the task's signature."""

    def accepts(self, action: Action) -> bool:
        """Whether an action would be done.

        >>> Capabilities(("spark",), frozenset({"acquire_machine"})).accepts(SetPartitions(Signature("a"), 2))
        False
        """
        match action:
            case SwitchAlternate(task):
                tasks = self.switchable
            case SetPartitions(task):
                tasks = self.resizable
            case SetRateLimit(task):
                tasks = self.limitable
            case _:
                return kind_of(action) in self.kinds
        return kind_of(action) in self.kinds and (tasks is None or task in tasks)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a policy is to achieve, and with what. A policy begins anew when it changes."""

    dataflow: Dataflow
    """The graph that runs; of several dataflows, their merged tasks. Its service level binds all of it."""

    signatures: Mapping[TaskId, Signature]
    cloud: Cloud
    """The machines that can be had, with their prices, and boot times as they were measured."""

    interval_s: float
    """Seconds from one decision to the next."""

    steps: int
    """Decisions in the period whose profit counts: the horizon of those that plan as far as that."""

    counts_queues: bool = True
    """Whether what waits counts as achievable output, as in DYN; otherwise only what arrives does."""

    levels: Mapping[str, ServiceLevel] = field(default_factory=lambda: _NOTHING)
    """Service levels by dataflow, where there are several."""

    owners: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NOTHING)
    """The tasks of each of several dataflows, by their names in the graph."""

    @property
    def level(self) -> ServiceLevel:
        return self.dataflow.service_level


@dataclass(frozen=True, slots=True)
class Rejected:
    """An option that was weighed and not taken."""

    option: str
    reason: str


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a decision was made."""

    rule: str
    """The rule that has fired, in one word or two, such as ``below band``; ``none`` if nothing was to be done."""

    sentences: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=lambda: _NOTHING)
    """What was seen and weighed, with units at the end of the names."""

    rejected: tuple[Rejected, ...] = ()


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a policy expects of the interval after its decision has taken effect; none where it does not say."""

    at_s: float
    """When that interval ends, on the clock of the window."""

    omega: float | None = None
    gamma: float | None = None
    cost_per_h: float | None = None
    demand: float | None = None
    """Reference cores that are needed for all that comes."""

    usable: float | None = None
    """Reference cores that can be used for it."""

    latency_s: Mapping[str, float] = field(default_factory=lambda: _NOTHING)
    """By dataflow."""


@dataclass(frozen=True, slots=True)
class PlannedAction:
    """One step of a plan: what changes for a task, where, and how many seconds after the decision."""

    in_s: float
    task: str
    change: str
    """Another alternate, such as ``to 'quick'``, or cores, such as ``+2 cores``."""

    machine: str = ""
    """A machine by its name, or a new one with its class and when it is started."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now, why, and what is expected of it."""

    actions: tuple[Action, ...] = ()
    reason: Reason = Reason("none")
    prediction: Prediction | None = None
    planned: tuple[PlannedAction, ...] = ()
    """The steps that are planned, now and later; the next decision may replace what is not yet done."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What a policy knows of earlier decisions. Values are JSON, or objects of ours that can be written as such.

    Nobody changes a value that is in a memory: a policy that goes on from one copies it first.
    """

    policy: str
    version: int
    values: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", MappingProxyType(dict(self.values)))

    def document(self) -> dict[str, JsonValue]:
        """As JSON."""
        return {"policy": self.policy, "version": self.version, "values": written_kept(dict(self.values))}

    @classmethod
    def of(cls, document: Mapping[str, Any], policy: str, version: int) -> Memory | None:
        """From JSON; none if it is of another policy or another version of it, which then begins anew.

        >>> Memory.of(Memory("ce", 1, {"turn": 3}).document(), "ce", 1)
        Memory(policy='ce', version=1, values=mappingproxy({'turn': 3}))
        """
        if (document.get("policy"), document.get("version")) != (policy, version):
            return None
        values = read_kept(document.get("values"))
        if not isinstance(values, dict):
            raise BadValue(f"the memory of policy '{policy}' is damaged", "what Memory.document has written")
        return cls(policy, version, values)


class Policy(Protocol):
    """Decides, window by window."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int:
        """Of its memory: one of another version cannot be read."""

    def begin(self, terms: Terms, capabilities: Capabilities) -> Memory:
        """The memory before the first decision. Raises :class:`InputError` where these terms cannot be decided on."""

    def decide(self, seen: Window, memory: Memory) -> tuple[Decision, Memory]:
        """What to do after a window, and what to remember. The same window and memory give the same answer."""
