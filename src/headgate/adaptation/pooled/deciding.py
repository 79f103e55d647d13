"""From a window and a memory to a decision: what all policies on shared pools have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from headgate.adaptation.policy import Capabilities, Decision, Memory, PlannedAction, Prediction, Reason, Terms
from headgate.adaptation.pooled.draft import Draft
from headgate.adaptation.window import Window
from headgate.errors import InputError

__all__ = ["Notes", "PooledPolicy", "PooledRule"]

Notes = dict[str, Any]
"""What a rule remembers, by name. Objects are copied before they change."""


class PooledRule(Protocol):
    """Changes a draft; what a policy on shared pools is made of."""

    def check(self, terms: Terms) -> None:
        """Raise :class:`InputError` where these terms cannot be decided on."""

    def decide(self, draft: Draft, notes: Notes) -> str:
        """Change the draft and the notes; returns what has fired, in a word or two, or ``none``."""


@dataclass(frozen=True, slots=True)
class PooledPolicy:
    """A rule as a :class:`headgate.adaptation.policy.Policy`."""

    name: str
    rule: PooledRule
    catch_up_s: float = 300.0
    """Seconds in which a backlog is to be worked off; no less than an interval."""

    version: int = 1

    def begin(self, terms: Terms, capabilities: Capabilities) -> Memory:
        if capabilities.exclusive:
            raise InputError("EXCLUSIVE", f"policy '{self.name}' decides on shared cores, and these tasks own theirs")
        self.rule.check(terms)
        return Memory(self.name, self.version, {"turn": 0})

    def decide(self, seen: Window, memory: Memory) -> tuple[Decision, Memory]:
        notes: Notes = dict(memory.values)
        notes["turn"] = int(notes.get("turn", 0)) + 1
        draft = Draft.of(seen, self.catch_up_s)
        planned: list[PlannedAction] = []
        draft.fit_partitions()  # nobody buys machines for what cores that are there would do
        fired = self.rule.decide(draft, notes)
        planned += notes.pop("planned", [])
        draft.settle()
        actions = draft.actions()
        if actions and fired == "none":
            fired = "other partitions" if draft.partitions else "pool without machine"
        reason = Reason(
            fired, tuple(draft.sentences), MappingProxyType(_figures(draft)), tuple(dict.fromkeys(draft.rejected))
        )
        decision = Decision(actions, reason, _prediction(draft), tuple(planned))
        return decision, Memory(self.name, self.version, notes)


def _figures(draft: Draft) -> Mapping[str, float]:
    """What was seen, and what the rule has weighed."""
    seen, there = draft.seen, draft.graph.limits(draft.seen.active, draft.asked, draft.speeds(planned=False))
    return {
        "omega": float(seen.omega),
        "demand_cores": float(there.demand.sum()),
        "usable_cores": float(there.usable.sum()),
        "waiting_messages": float(seen.waiting.sum()),
        **draft.figures,
    }


def _prediction(draft: Draft) -> Prediction:
    """The interval after the decision has taken effect, if as much comes as now."""
    seen, terms = draft.seen, draft.seen.terms
    starts = [
        each.boot_s for each, count in zip(terms.cloud.classes, draft.new.sum(axis=0).tolist(), strict=True) if count
    ]
    ready_s = max([*starts, *seen.machines.starts_s[draft.kept].tolist(), 0.0])
    limits = draft.limits(seen.external)
    served = draft.graph.served(
        draft.active, seen.external, seen.waiting, draft.speeds(), terms.interval_s, terms.counts_queues
    )
    gamma = float(seen.shape.value[np.arange(seen.shape.tasks), draft.active].mean())
    latencies = {name: value for name, value in draft.latencies().items() if np.isfinite(value)}
    return Prediction(
        seen.ended_s + ready_s + terms.interval_s,
        served.omega,
        gamma,
        draft.cost_per_h,
        float(limits.demand.sum()),
        float(limits.usable.sum()),
        MappingProxyType(latencies),
    )
