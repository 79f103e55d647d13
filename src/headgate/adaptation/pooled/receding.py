"""The receding horizon on a shared pool: the same program without instances, for what the pool can use."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from headgate.adaptation.cluster_view import ClusterView
from headgate.adaptation.look_ahead import PolicySettings
from headgate.adaptation.policies.receding import Receding
from headgate.adaptation.policy import Terms
from headgate.adaptation.pooled.deciding import Notes
from headgate.adaptation.pooled.draft import Draft
from headgate.adaptation.pooled.foresight import check_forecasts, forecaster_of, view_of
from headgate.adaptation.pooled.heuristics import PooledHeuristic
from headgate.capacity.epochs import usable_line
from headgate.errors import InputError
from headgate.model.arrays import Floats
from headgate.model.cluster.vm_class import VmClass
from headgate.planning.objective import BreakEven

__all__ = ["PooledReceding"]

KEEPS_UP = 0.985
"""Throughput that is asked for: where cores are shared, what is not served now waits."""


@dataclass(slots=True)
class _Instead:
    """Notes that the program did not decide."""

    called: bool = False
    name: str = "instead"

    def decide(self, now: ClusterView, turn: int) -> None:
        del now, turn
        self.called = True


@dataclass(slots=True)
class _SharedReceding(Receding):
    """Nobody has cores of his own, so none are shared out."""

    def _share(self, now: ClusterView, forecast: Any, leaving: list[int]) -> None:
        """Leave cores as they are."""


@dataclass(frozen=True, slots=True)
class PooledReceding:
    """Runs :class:`Receding` on one pool, with the power that is usable of each core; L is constant in the program."""

    settings: PolicySettings
    heuristic: PooledHeuristic = field(default_factory=PooledHeuristic)
    budget_s: float = 20.0
    """Of a program; one that is cut short is not the same when it is solved again."""

    def check(self, terms: Terms) -> None:
        """There must be break-even costs, no loop, and one pool."""
        check_forecasts(self.settings, terms)
        even = BreakEven.of(terms.dataflow)
        if even is None or even.sigma <= 0:
            message = f"policy 'receding' weighs value against cost, but '{terms.dataflow.name}' does not say how"
            raise InputError("NO_BREAK_EVEN", f"{message}; give break-even costs and alternates of different value")
        if any(stream.feedback for stream in terms.dataflow.streams):
            raise InputError("LOOP", f"policy 'receding' cannot plan '{terms.dataflow.name}': it has a loop")

    def decide(self, draft: Draft, notes: Notes) -> str:
        if len(draft.graph.sharing.pools) != 1 or not len(draft.kept):
            return self.heuristic.decide(draft, notes)
        core = self._core(draft, notes)
        view = _usable_view(draft)
        held, active, instead = view.held, view.active.copy(), _Instead()
        core.reactive = instead
        core.decide(view, int(notes["turn"]))
        core.took_s.clear()
        notes["core"] = core
        draft.sentences += view.reasons
        if instead.called:
            return self.heuristic.decide(draft, notes)
        draft.active[:] = view.active
        leaving = np.flatnonzero((view.placed[:held].sum(axis=1) == 0) & draft.due)
        if draft.may_release:
            draft.kept[leaving[: max(len(draft.kept) - 1, 0)]] = False
        if draft.may_acquire:
            for kind in view.kind[held:].tolist():
                draft.new[0, kind] += 1
        for task in np.flatnonzero(draft.active != active).tolist():
            if int(draft.active[task]) not in draft.ways(task):
                draft.active[task] = active[task]
        changed = draft.new.any() or not draft.kept.all() or bool((draft.active != active).any())
        return "program over the forecast" if changed else "none"

    def _core(self, draft: Draft, notes: Notes) -> _SharedReceding:
        terms, sources = draft.seen.terms, list(draft.seen.shape.sources)
        kept: _SharedReceding | None = notes.get("core")
        forecaster = forecaster_of(None if kept is None else kept.forecaster, self.settings, terms, len(sources))
        if kept is not None:
            core = deepcopy(kept)
            core.forecaster = forecaster
            return core
        even = BreakEven.of(terms.dataflow)
        assert even is not None
        core = _SharedReceding(forecaster, sources, even, terms.interval_s, terms.steps, terms.counts_queues)
        core.budget_s, core.shared = self.budget_s, True
        return core


def _usable_view(draft: Draft) -> ClusterView:
    """The pool's machines with the power that is usable of their cores, all of which are in use."""
    view, pool = view_of(draft.seen), draft.graph.sharing.pools[0]
    per_power, per_core, lost = usable_line(draft.graph.loads, pool.epoch_s, pool.used)
    cores = draft.seen.machines.cores[:, 0]
    per_core += lost / max(float(cores.sum()), 1.0)

    def usable(speed: Floats | float) -> Any:
        return np.maximum(per_power * speed - per_core, 1e-6)

    view.speed = usable(view.speed)
    view.cloud = replace(view.cloud, classes=tuple(_of_power(each, usable) for each in view.cloud.classes))
    view.placed[:, 0] = cores
    view.level = replace(view.level, throughput_min=KEEPS_UP, throughput_tolerance=0.01)
    return view


def _of_power(each: VmClass, usable: Any) -> VmClass:
    return replace(each, core_power=float(usable(each.core_power)))
