"""A utilisation target for cores that all tasks share: cheaper alternates at once, machines as they come."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headgate.adaptation.actions import AcquireMachine, Action, ReleaseMachine, SetPartitions, SwitchAlternate
from headgate.adaptation.controller.pressure import Pressure, pressure_of, tasks_work, usable
from headgate.adaptation.policy import Capabilities, Decision, Memory, Prediction, Reason, Terms
from headgate.adaptation.pooled.draft import Draft
from headgate.adaptation.window import Window
from headgate.capacity.cover import cheapest_cover
from headgate.errors import BadValue
from headgate.model.arrays import Ints

__all__ = ["PooledTarget"]


@dataclass(frozen=True, slots=True)
class PooledTarget:
    r"""Keeps the utilisation of a pool, D / U, in a band around a target.

    Above the band, the switches go first that free most work for least value, until the target is reached, since they
    take effect with the next epoch; the cheapest machines for the rest, and for the best alternates, are asked for.
    Below it, better alternates come back as far as they fit, and then a machine goes whose paid time ends. What waits
    is worked off within ``catch_up_s``.

    It is the rule of Flink's autoscaler, for one pool, with alternates.
    """

    target: float = 0.7
    low: float = 0.5
    high: float = 0.85
    catch_up_s: float = 120.0
    name: str = "threshold"
    version: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.low < self.target < self.high <= 1:
            message = f"a target utilisation of {self.target:g} in a band from {self.low:g} to {self.high:g}"
            raise BadValue(message, "0 < low < target < high, at most 1")

    def begin(self, terms: Terms, capabilities: Capabilities) -> Memory:
        del terms, capabilities
        return Memory(self.name, self.version)

    def decide(self, seen: Window, memory: Memory) -> tuple[Decision, Memory]:
        """Actions, and the memory as it was: it needs none."""
        return self._decision(seen), memory

    def _decision(self, seen: Window) -> Decision:
        decision = self._on_power(seen)
        cut = _partitions(seen, decision.actions)
        if not cut:
            return decision
        parts = ", ".join(str(action.partitions) for action in cut)
        reason = decision.reason
        if not decision.actions:
            reason = replace(reason, rule="partitions", sentences=reason.sentences[:1])
        reason = replace(reason, sentences=(*reason.sentences, f"partitions that use all cores: {parts}"))
        machines = [each for each in decision.actions if isinstance(each, ReleaseMachine)]
        others = [each for each in decision.actions if not isinstance(each, ReleaseMachine)]
        return replace(decision, actions=(*others, *cut, *machines), reason=reason)

    def _on_power(self, seen: Window) -> Decision:
        now = pressure_of(seen)
        needed = self._needed(seen, seen.active)
        figures = {"demand_cores": now.demand, "backlog_core_s": now.backlog, "usable_cores": now.usable}
        share = needed / now.usable if now.usable > 0 else np.inf
        text = f"{needed:.2f} reference cores are needed and {now.usable:.2f} can be used"
        if share > self.high:
            active = self._relieved(seen, now)
            actions = (*_switches(seen, active), *self._bought(seen, now, active))
            sentence = f"{text}: above {self.high:.0%}"
            return self._done("above the band", sentence, figures, seen, active, actions)
        active = self._improved(seen, now)
        if not np.array_equal(active, seen.active):
            sentence = f"{text}: better alternates fit below {self.target:.0%}"
            return self._done("room for better", sentence, figures, seen, active, _switches(seen, active))
        if share < self.low:
            released = self._released(seen, needed)
            if released is not None:
                sentence = f"{text}: below {self.low:.0%}, also without {released.machine}"
                return self._done("below the band", sentence, figures, seen, active, (released,))
        return Decision(reason=Reason("none", (f"{text}: nothing is to be done",), figures))

    def _needed(self, seen: Window, active: Ints) -> float:
        """Reference cores for what comes, and for what waits within the time to catch up."""
        return float(tasks_work(seen, active, self.catch_up_s).sum())

    def _relieved(self, seen: Window, now: Pressure) -> Ints:
        """Cheaper alternates until what is needed fits: most work for least value first."""
        active = seen.active.copy()
        while (needed := self._needed(seen, active)) > self.target * now.usable:
            options = []
            for task in _switchable(seen):
                for way in range(len(seen.shape.alternates[task])):
                    saved = needed - self._needed(seen, _with(active, task, way))
                    lost = seen.shape.value[task, active[task]] - seen.shape.value[task, way]
                    if saved > 0:
                        options.append((saved / max(lost, 1e-3), task, way))
            if not options:
                break
            _, task, way = max(options)
            active[task] = way
        return active

    def _bought(self, seen: Window, now: Pressure, active: Ints) -> tuple[Action, ...]:
        """Machines for all that comes in the best alternates, beside those that are there or start."""
        if "acquire_machine" not in seen.capabilities.kinds:
            return ()
        wanted = max(float(tasks_work(seen, _best(seen)).sum()), self._needed(seen, active)) / self.target
        power = float((seen.machines.cores.sum(axis=1) * seen.machines.speed).sum())
        share = now.coming / power if power > 0 else 1.0
        missing = (wanted - now.coming) / max(share, 0.1)
        counts = cheapest_cover(seen.terms.cloud.classes, missing)
        return tuple(AcquireMachine(name) for name, count in counts.items() for _ in range(count))

    def _improved(self, seen: Window, now: Pressure) -> Ints:
        """Better alternates, those of least value first, as long as the work stays below the target."""
        active = seen.active.copy()
        for task in sorted(_switchable(seen), key=lambda each: float(seen.shape.value[each, active[each]])):
            for way in np.argsort(-seen.shape.value[task], kind="stable").tolist():
                if seen.shape.value[task, way] <= seen.shape.value[task, active[task]]:
                    break
                tried = _with(active, task, way)
                if self._needed(seen, tried) <= self.target * now.usable:
                    active = tried
                    break
        return active

    def _released(self, seen: Window, needed: float) -> ReleaseMachine | None:
        """The machine of which most money comes back, if the rest is enough."""
        if "release_machine" not in seen.capabilities.kinds or len(seen.machines.names) < 2:
            return None
        prices = [float(seen.terms.cloud.classes[kind].price_per_h) for kind in seen.machines.kind.tolist()]
        for row in sorted(range(len(prices)), key=lambda each: (-prices[each], -each)):
            gone = np.arange(len(prices)) == row
            if needed <= self.target * usable(seen, without=gone):
                return ReleaseMachine(seen.machines.names[row])
        return None

    def _done(
        self,
        rule: str,
        sentence: str,
        figures: dict[str, float],
        seen: Window,
        active: Ints,
        actions: tuple[Action, ...],
    ) -> Decision:
        if not actions:
            return Decision(reason=Reason(rule, (sentence, "nothing more can be done"), figures))
        work = float(tasks_work(seen, active).sum())
        values = seen.shape.value[np.arange(seen.shape.tasks), active]
        prediction = Prediction(seen.ended_s + seen.terms.interval_s, gamma=float(values.mean()), demand=work)
        if any(isinstance(action, AcquireMachine | ReleaseMachine) for action in actions):
            prediction = replace(prediction, cost_per_h=_cost(seen, actions))
        return Decision(actions, Reason(rule, (sentence,), {**figures, "demand_after_cores": work}), prediction)


def _partitions(seen: Window, actions: tuple[Action, ...]) -> tuple[SetPartitions, ...]:
    """Into how many parts tasks are to be cut, so that the machines that work or start have something to do."""
    if seen.sharing is None:
        return ()
    draft = Draft.of(seen, 0.0)
    for action in actions:
        match action:
            case ReleaseMachine(machine):
                draft.kept[seen.machines.names.index(machine)] = False
            case SwitchAlternate(task, way):
                place = next(p for p in range(seen.shape.tasks) if draft.signature(p) == task)
                draft.active[place] = seen.shape.alternates[place].index(way)
    draft.fit_partitions()
    cut = (action for action in draft.actions() if isinstance(action, SetPartitions))
    return tuple(action for action in cut if seen.capabilities.accepts(action))


def _switchable(seen: Window) -> list[int]:
    return [
        place
        for place, name in enumerate(seen.shape.names)
        if len(seen.shape.alternates[place]) > 1
        and seen.capabilities.accepts(SwitchAlternate(seen.terms.signatures[name], ""))
    ]


def _best(seen: Window) -> Ints:
    active = seen.active.copy()
    for task in _switchable(seen):
        active[task] = int(np.argmax(seen.shape.value[task]))
    return active


def _with(active: Ints, task: int, way: int) -> Ints:
    changed = active.copy()
    changed[task] = way
    return changed


def _switches(seen: Window, active: Ints) -> tuple[Action, ...]:
    return tuple(
        SwitchAlternate(seen.terms.signatures[seen.shape.names[task]], seen.shape.alternates[task][int(active[task])])
        for task in np.flatnonzero(active != seen.active).tolist()
    )


def _cost(seen: Window, actions: tuple[Action, ...]) -> float:
    classes, machines = seen.terms.cloud.classes, seen.machines
    gone = {action.machine for action in actions if isinstance(action, ReleaseMachine)}
    kept = [classes[k] for name, k in zip(machines.names, machines.kind.tolist(), strict=True) if name not in gone]
    bought = [seen.terms.cloud.vm_class(action.vm_class) for action in actions if isinstance(action, AcquireMachine)]
    return float(sum(each.price_per_h for each in [*kept, *bought]))
