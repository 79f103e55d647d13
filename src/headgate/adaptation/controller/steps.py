"""The steps in which a decision is carried out: growing comes before shrinking, so that nothing is ever short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headgate.adaptation.actions import (
    AcquireMachine,
    Action,
    Pause,
    ReleaseMachine,
    SetPartitions,
    SetRateLimit,
    SwitchAlternate,
    action_of,
    document_of,
)
from headgate.adaptation.controller.guards import is_cheaper
from headgate.adaptation.window import Window
from headgate.errors import BadValue

__all__ = ["Acquire", "AwaitReady", "Publish", "Release", "Step", "step_document", "step_of", "steps_of"]


@dataclass(frozen=True, slots=True)
class Publish:
    """Change how tasks are run, all in one plan snapshot."""

    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Acquire:
    """Ask the provider for a machine, with the key ``engine/decision/step``."""

    vm_class: str


@dataclass(frozen=True, slots=True)
class AwaitReady:
    """Wait until the machines of some steps take work."""

    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Release:
    """Give a machine back after what it is doing."""

    machine: str


Step = Publish | Acquire | AwaitReady | Release


def steps_of(actions: tuple[Action, ...], seen: Window) -> tuple[Step, ...]:
    """What is to be done, in this order: relief at once; machines; when they are ready, what needs them; releases.

    What makes less work, such as a cheaper alternate, need not wait for machines. What makes more waits for all of
    them.
    """
    return tuple(_steps(actions, seen))


def _steps(actions: tuple[Action, ...], seen: Window) -> Iterator[Step]:
    acquired = [action.vm_class for action in actions if isinstance(action, AcquireMachine)]
    released = [action.machine for action in actions if isinstance(action, ReleaseMachine)]
    rest = [action for action in actions if not isinstance(action, AcquireMachine | ReleaseMachine)]
    first = [action for action in rest if not acquired or _relieves(action, seen)]
    later = [action for action in rest if action not in first]
    if first:
        yield Publish(tuple(first))
    begin = 1 if first else 0
    yield from map(Acquire, acquired)
    if acquired:
        yield AwaitReady(tuple(range(begin, begin + len(acquired))))
    if later:
        yield Publish(tuple(later))
    yield from map(Release, dict.fromkeys(released))


def _relieves(action: Action, seen: Window) -> bool:
    match action:
        case SwitchAlternate():
            return is_cheaper(action, seen)
        case SetRateLimit(_, rows):
            return rows is not None
        case SetPartitions():
            return True  # they are for the machines that are there
        case _:
            return isinstance(action, Pause)


def step_document(step: Step) -> dict[str, Any]:
    """A step as JSON.

    >>> step_document(Acquire("small"))
    {'step': 'acquire', 'vm_class': 'small'}
    """
    match step:
        case Publish(actions):
            return {"step": "publish", "actions": [document_of(action) for action in actions]}
        case Acquire(vm_class):
            return {"step": "acquire", "vm_class": vm_class}
        case AwaitReady(steps):
            return {"step": "await_ready", "steps": list(steps)}
        case Release(machine):
            return {"step": "release", "machine": machine}


def step_of(document: Mapping[str, Any]) -> Step:
    """A step from JSON.

    >>> step_of({"step": "release", "machine": "small-1"})
    Release(machine='small-1')
    """
    match document:
        case {"step": "publish", "actions": actions}:
            return Publish(tuple(action_of(action) for action in actions))
        case {"step": "acquire", "vm_class": vm_class}:
            return Acquire(vm_class)
        case {"step": "await_ready", "steps": steps}:
            return AwaitReady(tuple(steps))
        case {"step": "release", "machine": machine}:
            return Release(machine)
    raise BadValue(f"a step {document!r}"[:200], "what step_document writes")
