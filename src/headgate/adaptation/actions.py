"""What a policy may ask of a cluster: each action says how something is to be, so that twice is as good as once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from headgate.errors import BadValue, nearest
from headgate.model.names import Signature

__all__ = [
    "KINDS",
    "AcquireMachine",
    "Action",
    "AssignCores",
    "Pause",
    "PlaceFragment",
    "ReleaseMachine",
    "Resume",
    "SetEpoch",
    "SetPartitions",
    "SetRateLimit",
    "SwitchAlternate",
    "action_of",
    "document_of",
    "kind_of",
]


@dataclasses.dataclass(frozen=True, slots=True)
class SwitchAlternate:
    """Make another alternate of a task the active one, for all dataflows that share the task."""

    task: Signature
    alternate: str


@dataclasses.dataclass(frozen=True, slots=True)
class SetPartitions:
    """Set the number of processors of a task; ``None`` takes that of its upstream task."""

    task: Signature
    partitions: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class AcquireMachine:
    """Start one more machine of a VM class, for a pool; of a cluster with one pool, that one."""

    vm_class: str
    machine: str | None = None
    """What actions beside this one call it when they assign its cores; afterwards it has the cluster's name."""

    pool: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ReleaseMachine:
    """Stop a machine after it has finished its current work."""

    machine: str


@dataclasses.dataclass(frozen=True, slots=True)
class AssignCores:
    """Give a pool so many cores of a machine, or none. Where tasks have cores of their own, each task is a pool."""

    pool: str
    machine: str
    cores: int


@dataclasses.dataclass(frozen=True, slots=True)
class PlaceFragment:
    """Run a fragment on the cores of another pool, from its next epoch on."""

    fragment: str
    pool: str


@dataclasses.dataclass(frozen=True, slots=True)
class SetEpoch:
    """Let the epochs of a pool aim at so many seconds (L)."""

    pool: str
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class SetRateLimit:
    """Take at most so many rows a second from a source; ``None`` takes all that come."""

    source: Signature
    rows_per_s: float | None


@dataclasses.dataclass(frozen=True, slots=True)
class Pause:
    """Let a dataflow take no rows until it is resumed."""

    dataflow: str


@dataclasses.dataclass(frozen=True, slots=True)
class Resume:
    """Let a paused dataflow go on."""

    dataflow: str


Action = (
    SwitchAlternate
    | SetPartitions
    | AcquireMachine
    | ReleaseMachine
    | AssignCores
    | PlaceFragment
    | SetEpoch
    | SetRateLimit
    | Pause
    | Resume
)

KINDS: Mapping[str, type[Action]] = {
    "switch_alternate": SwitchAlternate,
    "set_partitions": SetPartitions,
    "acquire_machine": AcquireMachine,
    "release_machine": ReleaseMachine,
    "assign_cores": AssignCores,
    "place_fragment": PlaceFragment,
    "set_epoch": SetEpoch,
    "set_rate_limit": SetRateLimit,
    "pause": Pause,
    "resume": Resume,
}
"""All kinds of actions, by the names that journals and capabilities use."""

_NAMES = {kind: name for name, kind in KINDS.items()}


def kind_of(action: Action) -> str:
    """The name of an action's kind.

    >>> kind_of(Pause("orders"))
    'pause'
    """
    return _NAMES[type(action)]


def document_of(action: Action) -> dict[str, Any]:
    """An action as JSON.

    >>> document_of(SetEpoch("spark", 2.0))
    {'action': 'set_epoch', 'pool': 'spark', 'seconds': 2.0}
    """
    fields = (field.name for field in dataclasses.fields(action))
    return {"action": kind_of(action), **{name: getattr(action, name) for name in fields}}


def action_of(document: Mapping[str, Any]) -> Action:
    """An action from JSON; raises :class:`BadValue` if it is none.

    >>> action_of({"action": "release_machine", "machine": "vm-3"})
    ReleaseMachine(machine='vm-3')
    """
    name = str(document.get("action"))
    if name not in KINDS:
        raise BadValue(f"there is no action '{name[:60]}'", f"one of {', '.join(KINDS)}", nearest(name, list(KINDS)))
    try:
        return KINDS[name](**{key: value for key, value in document.items() if key != "action"})
    except TypeError as error:
        raise BadValue(f"action '{name}' has other fields: {error}", "those that document_of writes") from None
