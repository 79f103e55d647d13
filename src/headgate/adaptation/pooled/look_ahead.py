"""PLAN-AHEAD's Alg. 1 on shared pools: find where demand will exceed what is usable, and plan for it in advance."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headgate.adaptation.look_ahead import PolicySettings
from headgate.adaptation.policy import Terms
from headgate.adaptation.pooled.deciding import Notes
from headgate.adaptation.pooled.draft import Draft
from headgate.adaptation.pooled.foresight import PooledForesight, check_forecasts
from headgate.adaptation.pooled.heuristics import PooledHeuristic
from headgate.adaptation.pooled.horizon import PooledHorizon
from headgate.capacity.cover import cheapest_cover

__all__ = ["PooledLookAhead"]

MOST_CHANGES = 400


@dataclass(frozen=True, slots=True)
class PooledLookAhead:
    """Keeps demand within what pools can use over the coming interval, at the most profit.

    The first step at which a pool will not keep up is the cross-over. There one change is planned: a cheaper alternate
    for the task that frees most for the value that it loses, or one machine at its whole price for the paid periods
    until the end of the interval, whichever loses less for what it frees. This is repeated until the interval holds.
    Where all of it holds, better alternates are tried, and machines whose paid time ends are released. What is planned
    for now is done now, and machines are started as long before they are needed as they take to start; all else is
    planned again at the next decision.

    An interval of one step is the present, on which the heuristic decides; so it does while a forecaster fails.

    Reference: PLAN-AHEAD, Alg. 1.
    """

    settings: PolicySettings
    margin: float = 0.02

    def check(self, terms: Terms) -> None:
        """The forecaster must exist."""
        check_forecasts(self.settings, terms)

    def decide(self, draft: Draft, notes: Notes) -> str:
        foresight = PooledForesight.of(draft.seen, notes, self.settings)
        draft.sentences += foresight.sentences
        if foresight.outlook.steps == 1 or foresight.outlook.trouble or not len(draft.kept):
            chosen = self.settings
            heuristic = PooledHeuristic(True, chosen.alternates_every, chosen.resources_every, self.margin)
            return heuristic.decide(draft, notes)
        horizon = PooledHorizon(draft, foresight.outlook, self.margin)
        first = horizon.crossover()
        fired = "none"
        if first is not None:
            fired = "cross-over ahead" if first else "demand above usable"
            self._relieve(horizon)
        elif self._improve(horizon):
            fired = "room ahead"
        horizon.enact()
        notes["planned"] = horizon.planned
        draft.fit_partitions()
        self._explain(draft, horizon, first)
        return fired if horizon.planned or not draft.kept.all() else "none"

    def _relieve(self, horizon: PooledHorizon) -> None:
        """One change at a time, at the first cross-over that is left."""
        begin, ready = 0, horizon.ready_step
        for _ in range(MOST_CHANGES):
            step = horizon.crossover(begin)
            if step is None:
                return
            # A machine that is started now works from ``ready`` on; before that there is nothing to buy.
            at = min(max(step, ready), horizon.steps - 1)
            if at > step and horizon.holds(at):
                begin = at
            elif not self._one_change(horizon, at, step):
                begin = at + 1

    def _one_change(self, horizon: PooledHorizon, step: int, since: int) -> bool:
        lack = horizon.lack(step)
        pool = int(np.argmax(lack))
        missing = float(lack[pool])
        if missing <= 0:  # a fragment has too few partitions: no machine helps it, a cheaper alternate does
            return self._cheaper(horizon, since, pool, np.inf, np.inf)
        machine = self._machine(horizon, pool, missing, step)
        per_power = np.inf
        if machine is not None:
            kind, gain, count = machine
            per_power = horizon.price(kind, step) / min(gain, missing)
        if self._cheaper(horizon, since, pool, missing, per_power):
            return True
        if machine is None:
            return False
        for _ in range(count):
            horizon.open(step, pool, kind)
        return float(horizon.lack(step)[pool]) < missing - 1e-9

    def _machine(self, horizon: PooledHorizon, pool: int, missing: float, step: int) -> tuple[int, float, int] | None:
        """The class of a cheapest cover that gives most, what one gives, and how many; none where none can be had."""
        draft = horizon.draft
        classes = draft.seen.terms.cloud.classes
        gains = [draft.gain(pool, each.cores, each.power * draft.usual) for each in classes]
        if not draft.may_acquire or max(gains) <= 1e-9:
            return None
        useful = [
            replace(each, core_power=gain / each.cores)
            for each, gain in zip(classes, gains, strict=True)
            if gain > 1e-9 and each.boot_s <= max(step, horizon.ready_step) * horizon.step_s + 1e-9
        ]
        if not useful:
            return None
        cover = cheapest_cover(useful, missing)
        name = max(cover, key=lambda each: gains[draft.seen.terms.cloud.place(each)])
        place = draft.seen.terms.cloud.place(name)
        return place, gains[place], cover[name]

    def _cheaper(self, horizon: PooledHorizon, step: int, pool: int, missing: float, per_power: float) -> bool:
        """Switch to the cheaper alternate that loses least value for what it frees, if that is less than a price."""
        shape, draft = horizon.draft.seen.shape, horizon.draft
        best: tuple[float, int, int] | None = None
        for task in range(shape.tasks):
            now = int(horizon.active[task])
            for way in draft.ways(task):
                if (
                    shape.cost_s[task, way] >= shape.cost_s[task, now]
                    and shape.selectivity[task, way] >= (shape.selectivity[task, now])
                ):
                    continue
                freed = horizon.freed(step, task, way, pool)
                if freed > 1e-12:
                    loss = draft.worth.weight[task] * (shape.value[task, now] - shape.value[task, way])
                    lost = max(float(loss), 0.0) * horizon.rest_h(step) / min(freed, missing)
                    best = min(best or (np.inf, 0, 0), (lost, task, way))
        if best is None or best[0] >= per_power:
            return False
        horizon.switch(step, best[1], best[2])
        return True

    def _improve(self, horizon: PooledHorizon) -> bool:
        """Better alternates and fewer machines, as long as all steps keep up."""
        shape, draft, done = horizon.draft.seen.shape, horizon.draft, False
        gains = draft.worth.weight[:, None] * (
            shape.value - shape.value[np.arange(shape.tasks), horizon.active][:, None]
        )
        better = [(float(gains[task, way]), task, way) for task in range(shape.tasks) for way in draft.ways(task)]
        for gain, task, way in sorted(better, reverse=True):
            now = int(horizon.active[task])
            if gain > 1e-12 and shape.value[task, way] > shape.value[task, now]:
                done = horizon.tried_switch(task, way) or done
        return horizon.release_due() or done

    def _explain(self, draft: Draft, horizon: PooledHorizon, first: int | None) -> None:
        if not horizon.planned and draft.kept.all():
            return
        if first is not None:
            when = "now" if first == 0 else f"in {first * draft.seen.terms.interval_s / 60:g} min"
            changes = f"{len(horizon.planned)} changes planned"
            draft.sentences.append(f"demand will be above what the pool can use {when}: {changes}")
            draft.figures["crossover_s"] = first * draft.seen.terms.interval_s
        else:
            gone = int((~draft.kept).sum())
            changes = f"{len(horizon.planned)} changes, {gone} machines less"
            draft.sentences.append(f"there is room until the end of the interval: {changes}")
