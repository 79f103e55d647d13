"""Guard rails: what a decision may do at most, whatever a policy thinks. Pure; what they remove is in the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np

from headgate.adaptation.actions import AcquireMachine, Action, ReleaseMachine, SetPartitions, SwitchAlternate, kind_of
from headgate.adaptation.controller.pressure import usable
from headgate.adaptation.policy import Decision, Rejected
from headgate.adaptation.window import Window
from headgate.errors import BadValue
from headgate.model.names import Signature

__all__ = ["Change", "GuardRails", "History", "guarded", "is_cheaper"]

HOUR_S = 3_600.0


@dataclass(frozen=True, slots=True)
class GuardRails:
    """Limits of what is decided. Times are in seconds."""

    budget_per_h: Decimal | None = None
    """For all machines, those that start included."""

    machines_max: int | None = None
    changes_per_h: int = 12
    """Of machines, and of the alternate of each task."""

    cooldown_s: float = 60.0
    """After a change, until the next of machines, or of the same task."""

    shrink_after_s: float = 300.0
    """After a change, until something is taken away."""

    floor_s: float = HOUR_S
    """Machines stay enough for the greatest demand of so long."""

    floor_used: float = 0.8
    """How much of what is usable the greatest demand may take, a tenth set aside."""

    reversals: int = 4
    """So many changes of direction within half of ``freeze_s`` are an oscillation: nothing shrinks for that long."""

    freeze_s: float = HOUR_S

    epochs_min: int = 5
    """In a window, over all fragments; less says nothing, unless they take half of the time, or of the cores."""

    unknown_max: float = 0.2
    """The share of what sources take of which it is not known what arrived."""

    replaced_per_h: int = 3
    """Machines of a class that are replaced at once when they are lost."""

    def __post_init__(self) -> None:
        if self.budget_per_h is not None and not (self.budget_per_h.is_finite() and self.budget_per_h >= 0):
            raise BadValue(f"a budget of {self.budget_per_h} an hour", "an amount such as 0.40, at least 0")
        if self.machines_max is not None and self.machines_max < 1:
            raise BadValue(f"at most {self.machines_max} machines", "at least 1")
        for name in ("cooldown_s", "shrink_after_s", "floor_s", "freeze_s"):
            if not 0 <= getattr(self, name) <= 30 * 24 * HOUR_S:
                raise BadValue(f"{name} is {getattr(self, name)}", "seconds from 0 to 30 days")

    def document(self) -> dict[str, Any]:
        """As JSON."""
        budget = None if self.budget_per_h is None else str(self.budget_per_h)
        return {**asdict(self), "budget_per_h": budget}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> GuardRails:
        """From JSON."""
        budget = document.get("budget_per_h")
        return cls(**{**document, "budget_per_h": None if budget is None else Decimal(budget)})


@dataclass(frozen=True, slots=True)
class Change:
    """Something that a decision has done: more power (+1) or less (-1), of machines or by the alternate of a task."""

    at: float
    direction: int
    task: Signature | None = None


@dataclass(frozen=True, slots=True)
class History:
    """What guard rails must know of what was."""

    changes: tuple[Change, ...] = ()
    demands: tuple[tuple[float, float], ...] = ()
    """When how many reference cores were needed."""

    lost: tuple[tuple[float, str], ...] = ()
    """When machines of which class ended by themselves, and were not replaced yet."""

    replaced: tuple[tuple[float, str], ...] = ()
    refused: Mapping[str, float] = field(default_factory=dict)
    """Until when each class cannot be had, because the provider did not give one."""

    decides_every_s: float = 60.0

    def last(self, task: Signature | None = None) -> float:
        """When machines, or the alternate of a task, were changed last."""
        return max((change.at for change in self.changes if change.task == task), default=float("-inf"))

    def count(self, since: float, task: Signature | None = None) -> int:
        return sum(change.task == task and change.at > since for change in self.changes)

    def reversals(self, since: float) -> int:
        """How often the direction has changed, each of machines and of the alternate of each task by itself."""
        count, before = 0, dict[Signature | None, int]()
        for change in sorted(self.changes, key=lambda each: each.at):
            known = before.get(change.task)
            count += known is not None and known != change.direction and change.at > since
            before[change.task] = change.direction
        return count

    def after(self, changes: Iterable[Change], now: float) -> History:
        """With what a decision has changed; lost machines of which as many came count as replaced."""
        new = tuple(changes)
        came = sum(change.task is None and change.direction > 0 for change in new)
        replaced = tuple((now, name) for _, name in self.lost[:came])
        return replace(self, changes=(*self.changes, *new), lost=self.lost[came:], replaced=(*self.replaced, *replaced))

    def froze_at(self, rails: GuardRails) -> float | None:
        """When shrinking was frozen last."""
        times = [change.at for change in self.changes]
        for at in sorted(times, reverse=True):
            until = History(tuple(change for change in self.changes if change.at <= at))
            if until.reversals(at - rails.freeze_s / 2) >= rails.reversals:
                return at
        return None


_Check = Callable[[Action, list[Action]], str | None]
"""Why an action is removed, given those that were kept before it."""


def guarded(decision: Decision, seen: Window, rails: GuardRails, history: History) -> Decision:
    """What guard rails leave of a decision.

    Actions are looked at in their order; one that is removed is rejected in the reason, with the rail that did it.
    """
    checks = list(_checks(seen, rails, history))
    kept: list[Action] = []
    rejected: list[Rejected] = []
    for action in decision.actions:
        why = next((text for check in checks if (text := check(action, kept)) is not None), None)
        if why is None:
            kept.append(action)
        else:
            rejected.append(Rejected(text_of(action, seen), why))
    if any(isinstance(action, AcquireMachine) and action not in kept for action in decision.actions):
        # What needs more power was meant to wait for it.
        needs = [action for action in kept if isinstance(action, SwitchAlternate) and _shrinks(action, seen)]
        rejected += [Rejected(text_of(action, seen), "it needs machines that are not acquired") for action in needs]
        kept = [action for action in kept if action not in needs]
    if any(isinstance(action, ReleaseMachine) and action not in kept for action in decision.actions):
        # Fewer partitions were meant for fewer machines.
        fewer = [action for action in kept if isinstance(action, SetPartitions) and _is_coarser(action, seen)]
        rejected += [Rejected(text_of(action, seen), "it is for fewer machines than stay") for action in fewer]
        kept = [action for action in kept if action not in fewer]
    if not rejected:
        return decision
    rejected = list(dict.fromkeys(rejected))
    reason = replace(decision.reason, rejected=(*decision.reason.rejected, *rejected))
    # What was expected was expected of all of it.
    return replace(decision, actions=tuple(kept), reason=reason, prediction=None)


def text_of(action: Action, seen: Window) -> str:
    """An action in words."""
    names = {signature: str(task) for task, signature in seen.terms.signatures.items()}
    match action:
        case SwitchAlternate(task, alternate):
            return f"{names.get(task, task[:12])} by {alternate}"
        case AcquireMachine(vm_class):
            return f"acquire a {vm_class}"
        case ReleaseMachine(machine):
            return f"release {machine}"
        case _:
            return kind_of(action).replace("_", " ")


def is_cheaper(action: SwitchAlternate, seen: Window) -> bool:
    """Whether a switch makes less work than the alternate that is active."""
    place = _place(seen, action.task)
    if place is None or action.alternate not in seen.shape.alternates[place]:
        return False
    column = seen.shape.alternates[place].index(action.alternate)
    return bool(seen.shape.cost_s[place, column] < seen.shape.cost_s[place, seen.active[place]])


def _place(seen: Window, task: Signature) -> int | None:
    name = next((name for name, signature in seen.terms.signatures.items() if signature == task), None)
    return None if name is None else seen.shape.place(name)


def _is_coarser(action: SetPartitions, seen: Window) -> bool:
    """Whether a task would be cut into fewer parts than it is."""
    place = _place(seen, action.task)
    if place is None or seen.sharing is None or action.partitions is None:
        return False
    name = str(seen.shape.names[place])
    stages = [stage for load in seen.sharing.fragments for stage in load.stages if name in stage.tasks]
    return any(stage.partitions is not None and stage.partitions > action.partitions for stage in stages)


def _shrinks(action: Action, seen: Window) -> bool:
    match action:
        case ReleaseMachine():
            return True
        case SwitchAlternate():
            return not is_cheaper(action, seen)
        case _:
            return False


def _checks(seen: Window, rails: GuardRails, history: History) -> Iterator[_Check]:
    yield lambda action, _kept: _not_accepted(action, seen)
    yield _enough_seen(seen, rails)
    yield _not_too_often(seen, rails, history)
    yield _not_swinging(seen, rails, history)
    yield _available(seen, history)
    yield _within_numbers(seen, rails)
    yield _within_budget(seen, rails)
    yield _above_floor(seen, rails, history)


def _not_accepted(action: Action, seen: Window) -> str | None:
    can = seen.capabilities
    if can.accepts(action):
        return None
    task = getattr(action, "task", getattr(action, "source", ""))
    return can.reasons.get(task) or can.reasons.get(kind_of(action)) or "this engine cannot do that"


def _enough_seen(seen: Window, rails: GuardRails) -> _Check:
    measured = seen.measured
    why: str | None = None
    if measured is not None:
        epochs = sum(fragment.batches for fragment in measured.fragments)
        # Who has too little time for his rows has few epochs, and long ones.
        is_full = any(fragment.batches and 2 * fragment.batch_s > measured.seconds for fragment in measured.fragments)
        is_full |= any(row.works and (row.busy or 0.0) > 0.5 for row in measured.machines)
        if epochs < rails.epochs_min and not is_full:
            why = f"only {epochs} epochs were seen in {measured.seconds:.0f} s, and {rails.epochs_min} are needed"
        taken = sum(source.rows_taken for source in measured.sources)
        unknown = sum(source.rows_taken for source in measured.sources if source.rows_arrived is None)
        if why is None and taken and unknown > rails.unknown_max * taken:
            why = f"of {unknown / taken:.0%} of what sources take it is not known what arrives"
    return lambda _action, _kept: why


def _not_too_often(seen: Window, rails: GuardRails, history: History) -> _Check:
    now = seen.ended_s
    due = {name: sum(each == name for _, each in history.lost) for _, name in history.lost}

    def check(action: Action, kept: list[Action]) -> str | None:
        match action:
            case AcquireMachine(vm_class) if due.get(vm_class, 0) > 0:
                recent = sum(at > now - HOUR_S and name == vm_class for at, name in history.replaced)
                if recent < rails.replaced_per_h:
                    due[vm_class] -= 1
                    return None
                task = None
            case AcquireMachine() | ReleaseMachine():
                task = None
            case SwitchAlternate(switched):
                task = switched
            case _:
                return None
        count = history.count(now - HOUR_S, task) + sum(_is_of(each, task) for each in kept)
        if count >= rails.changes_per_h:
            return f"{count} changes within an hour are the most (changes_per_hour)"
        wait = rails.shrink_after_s if _shrinks(action, seen) else rails.cooldown_s
        last = history.last(task) if isinstance(action, SwitchAlternate) else history.last()
        since = now - last
        if since < wait:
            what = "shrink_after" if _shrinks(action, seen) else "cooldown"
            return f"the last change was {since:.0f} s ago, and {wait:.0f} s must pass ({what})"
        return None

    return check


def _is_of(action: Action, task: Signature | None) -> bool:
    if task is None:
        return isinstance(action, AcquireMachine | ReleaseMachine)
    return isinstance(action, SwitchAlternate) and action.task == task


def _not_swinging(seen: Window, rails: GuardRails, history: History) -> _Check:
    froze = history.froze_at(rails)
    until = None if froze is None else froze + rails.freeze_s

    def check(action: Action, _kept: list[Action]) -> str | None:
        if until is not None and seen.ended_s < until and _shrinks(action, seen):
            half, whole = (f"{seconds / 60:g} min" for seconds in (rails.freeze_s / 2, rails.freeze_s))
            return f"it went to and fro {rails.reversals} times in {half}; nothing shrinks for {whole} after that"
        return None

    return check


def _available(seen: Window, history: History) -> _Check:
    def check(action: Action, _kept: list[Action]) -> str | None:
        if isinstance(action, AcquireMachine):
            left = history.refused.get(action.vm_class, 0.0) - seen.ended_s
            if left > 0:
                return f"the provider did not give a {action.vm_class}; it is asked again in {left:.0f} s"
        return None

    return check


def _balance(kept: list[Action]) -> int:
    return sum(isinstance(each, AcquireMachine) - isinstance(each, ReleaseMachine) for each in kept)


def _within_numbers(seen: Window, rails: GuardRails) -> _Check:
    there, working = len(seen.machines.names), int((seen.machines.starts_s <= 0).sum())

    def check(action: Action, kept: list[Action]) -> str | None:
        match action:
            case AcquireMachine() if rails.machines_max is not None:
                if there + _balance(kept) >= rails.machines_max:
                    return f"{rails.machines_max} machines are the most (max_machines)"
            case ReleaseMachine(machine):
                if machine not in seen.machines.names:
                    return f"machine '{machine}' is not there"
                gone = {each.machine for each in kept if isinstance(each, ReleaseMachine)} | {machine}
                left = working - sum(
                    name in gone and start <= 0
                    for name, start in zip(seen.machines.names, seen.machines.starts_s, strict=True)
                )
                if left < 1:
                    return "the last machine that works stays"
        return None

    return check


def _within_budget(seen: Window, rails: GuardRails) -> _Check:
    classes = seen.terms.cloud.classes
    held = sum((classes[kind].price_per_h for kind in seen.machines.kind.tolist()), Decimal(0))

    def check(action: Action, kept: list[Action]) -> str | None:
        if rails.budget_per_h is None or not isinstance(action, AcquireMachine):
            return None
        bought = [seen.terms.cloud.vm_class(each.vm_class) for each in kept if isinstance(each, AcquireMachine)]
        price = seen.terms.cloud.vm_class(action.vm_class).price_per_h
        total = held + sum((each.price_per_h for each in bought), price)
        if total > rails.budget_per_h:
            return f"with it machines would cost {total} an hour, and the budget is {rails.budget_per_h}"
        return None

    return check


def _above_floor(seen: Window, rails: GuardRails, history: History) -> _Check:
    since = seen.ended_s - rails.floor_s
    greatest = max((demand for at, demand in history.demands if at > since), default=0.0)
    needed = 0.9 * greatest / rails.floor_used

    def check(action: Action, kept: list[Action]) -> str | None:
        if not isinstance(action, ReleaseMachine):
            return None
        gone = {each.machine for each in kept if isinstance(each, ReleaseMachine)} | {action.machine}
        left = usable(seen, without=np.array([name in gone for name in seen.machines.names], dtype=np.bool_))
        if left < needed:
            return f"{left:.2f} cores would be left, and {needed:.2f} are kept for the most that came lately (floor)"
        place = seen.machines.names.index(action.machine)
        paid_s = float(seen.machines.left_s[place])
        if paid_s > history.decides_every_s:
            return f"it is paid for another {paid_s:.0f} s"
        return None

    return check
