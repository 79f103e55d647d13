"""The optimum on shared pools: alternates and machines together, value weighed against price."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import inf

import numpy as np

from headgate.adaptation.policy import Rejected, Terms
from headgate.adaptation.pooled.deciding import Notes
from headgate.adaptation.pooled.draft import Draft
from headgate.adaptation.pooled.machine_moves import grow
from headgate.capacity.epochs import overhead_s, startable, usable_line
from headgate.model.capacity import FragmentLoad
from headgate.planning.programs.serving import Allowed
from headgate.planning.programs.shared_pools import MachineChoice, PoolChoice, PoolProblem

__all__ = ["PooledOptimum"]

FREE = 1e-4
"""Share of its price that a machine costs for as long as it is paid: what is not needed should still go."""

MOST_COMBINATIONS = 64
CUTS = 6
"""Rounds in which a fragment whose partitions are too few for what was chosen is held to what it can use."""

LATER = 8
"""Steps in which margins grow until latencies are met."""


@dataclass(frozen=True, slots=True)
class PooledOptimum:
    r"""Maximises value minus :math:`\sigma` times price, alternates by machines of the pool, at every decision.

    A machine costs next to nothing for as long as it is paid, its price when its period ends, and a new one
    ``1 + new_costs`` times its price: it is paid for a period, and most dips are shorter. Alternates change only where
    that brings ``switch_gain`` of value, and twice as much for a task that was switched within the last paid period;
    and to costlier ones only where ``headroom`` is left with them: what is gained by going back and forth is mostly
    noise. Without break-even costs value comes first, then price.
    Where a latency is asked for, margins grow until it is predicted to be met.
    """

    margin: float = 0.02
    headroom: float = 0.12
    switch_gain: float = 0.002
    new_costs: float = 2.0
    time_limit_s: float = 2.0

    def check(self, terms: Terms) -> None:
        """Nothing is needed."""

    def decide(self, draft: Draft, notes: Notes) -> str:
        margin = self._margin(draft)
        stay = self.chosen(draft, margin, fixed=True)
        best = self.chosen(draft, margin, fixed=False)
        if best is not None and self._is_costlier(draft, best) and self.headroom > margin:
            best = self.chosen(draft, self.headroom, fixed=False)
        if best is None:
            draft.sentences.append("the program has no solution in time; machines are covered as ce does")
            return "demand above usable" if not grow(draft, self.margin) else "none"
        chosen = best
        if stay is not None:
            needed = self._needed(draft, best, notes)
            draft.figures["gain"] = best.objective - stay.objective
            if best.objective - stay.objective <= needed:
                chosen = stay
                if (best.active != draft.seen.active).any():
                    gain = best.objective - stay.objective
                    reason = f"they gain {gain:.3g} of value an hour, and {needed:.3g} is asked for a switch"
                    draft.rejected.append(Rejected("other alternates", reason))
        self._enact(draft, chosen, notes)
        return self._explain(draft)

    def _is_costlier(self, draft: Draft, choice: PoolChoice) -> bool:
        """Whether some task would run an alternate that costs more than the one it runs now."""
        shape = draft.seen.shape
        return bool((shape.cost_of(choice.active) > shape.cost_of(draft.seen.active)).any())

    def _margin(self, draft: Draft) -> float:
        """The least margin with which latencies are predicted to be met; the usual one if none is enough."""
        tried = draft.tried()
        if draft.late(tried.latencies()) is None and len(draft.kept):
            return self.margin
        terms = draft.seen.terms
        if all(each.latency_max_s is None for each in [terms.level, *terms.levels.values()]):
            return self.margin
        margin = self.margin
        for _ in range(LATER):
            chosen = self.chosen(draft, margin, fixed=False)
            if chosen is None:
                break
            tried = draft.tried()
            self._enact(tried, chosen, {})
            if tried.late(tried.latencies()) is None:
                return margin
            margin = 1.6 * margin + 0.05
        draft.rejected.append(Rejected("more machines for latency", "even many more are not predicted to meet it"))
        return self.margin

    def _needed(self, draft: Draft, best: PoolChoice, notes: Notes) -> float:
        shape, now = draft.seen.shape, draft.seen.ended_s
        switched = [str(shape.names[task]) for task in np.flatnonzero(best.active != draft.seen.active)]
        lately = notes.get("switched", {})
        back = any(now - lately.get(name, -inf) < draft.seen.terms.cloud.billing.period_s for name in switched)
        return self.switch_gain * (2.0 if back else 1.0)

    def chosen(self, draft: Draft, margin: float, fixed: bool) -> PoolChoice | None:
        """The best choice; fragments that cannot use what they need, whatever machines there are, are held to it."""
        problem = self._problem(draft, margin)
        choice: PoolChoice | None = None
        for _ in range(CUTS):
            choice = self._best(draft, problem, fixed)
            if choice is None:
                return None
            tried = draft.tried()
            self._enact(tried, choice, {})
            limits = tried.limits()
            held = limits.held_up(margin)
            fixed_parts = np.flatnonzero(problem.per_power == 0)
            tighter = [g for g in held.tolist() if g in fixed_parts and limits.cap[g] < problem.caps[g] * (1 - 1e-6)]
            if not tighter or fixed:
                return choice
            caps = problem.caps.copy()
            caps[tighter] = limits.cap[tighter]
            problem = replace(problem, caps=caps)
        return choice

    def _best(self, draft: Draft, problem: PoolProblem, fixed: bool) -> PoolChoice | None:
        shape, active = draft.seen.shape, draft.seen.active
        ways: Allowed = [[int(active[task])] if fixed else draft.ways(task) for task in range(shape.tasks)]
        best: PoolChoice | None = None
        for allowed in _combinations(draft, ways):
            picked = np.array([each[0] for each in allowed], dtype=np.int64)
            rates = draft.graph.rates(picked, draft.asked)
            choice = problem.solved(allowed, rates, self.time_limit_s)
            if choice is not None and (best is None or choice.objective > best.objective + 1e-9):
                best = choice
        return best

    def _problem(self, draft: Draft, margin: float) -> PoolProblem:
        seen, graph, worth = draft.seen, draft.graph, draft.worth
        level = seen.terms.level
        lost = np.zeros(len(graph.sharing.pools))
        for place, pool in enumerate(graph.sharing.pools):
            loads = [load for load in graph.loads if load.pool == pool.name]
            lost[place] = usable_line(loads, pool.epoch_s, pool.used)[2]
        groups, pools = self._groups(draft), {pool.name: pool for pool in graph.sharing.pools}
        price = max((each.cost_per_h for each in groups), default=1.0)
        return PoolProblem(
            seen.shape,
            worth.weight,
            worth.sigma if worth.sigma > 0 else 1e-6 / price,
            graph.pool_of[graph.fragment_of],
            graph.fragment_of,
            groups,
            lost,
            np.full(len(graph.loads), inf),
            np.array([_of_every_core(load, pools[load.pool].epoch_s) for load in graph.loads]),
            margin,
            None if level.budget_per_h is None else float(level.budget_per_h),
            level.processors_max,
        )

    def _groups(self, draft: Draft) -> list[MachineChoice]:
        """Machines that are there, by kind and speed, and whether they are due; then classes that can be acquired."""
        groups = []
        for rows in _alike(draft):
            row = rows[0]
            pool, machines = int(draft.pool_of[row]), draft.seen.machines
            price = float(draft.prices[machines.kind[row]])
            cores = int(machines.cores[row, pool])
            goes = bool(draft.due[row]) and draft.may_release
            speed = float(machines.speed[rows].mean())
            gain = draft.gain(pool, cores, cores * speed)
            weighs = price * (1.0 if goes else FREE)
            least = 0 if goes else len(rows)
            most = float(len(rows))
            groups.append(MachineChoice(pool, gain, cores * speed, weighs, cores, most, least, price))
        if draft.may_acquire:
            for pool, (kind, each) in product(
                range(len(draft.graph.sharing.pools)), enumerate(draft.seen.terms.cloud.classes)
            ):
                price = float(each.price_per_h)
                power = each.power * draft.usual
                gain = draft.gain(pool, each.cores, power)
                if gain > 1e-9:
                    weighs = price * (1 + self.new_costs)
                    groups.append(MachineChoice(pool, gain, power, weighs, each.cores, cost_per_h=price, kind=kind))
        return groups

    def _enact(self, draft: Draft, choice: PoolChoice, notes: Notes) -> None:
        shape, now = draft.seen.shape, draft.seen.ended_s
        switched = np.flatnonzero(choice.active != draft.seen.active).tolist()
        if switched:
            lately = dict(notes.get("switched", {}))
            notes["switched"] = lately | {str(shape.names[task]): now for task in switched}
        draft.active[:] = choice.active
        counts = choice.machines.tolist()
        groups = _alike(draft)
        for rows, count in zip(groups, counts, strict=False):
            speed = draft.seen.machines.speed[rows]
            going = np.array(rows, dtype=np.int64)[np.argsort(-speed, kind="stable")][count:]
            draft.kept[going] = False
        draft.new[:] = 0
        for each, count in zip(self._groups(draft)[len(groups) :], counts[len(groups) :], strict=True):
            draft.new[each.pool, each.kind] += count

    def _explain(self, draft: Draft) -> str:
        shape, seen = draft.seen.shape, draft.seen
        switched = np.flatnonzero(draft.active != seen.active).tolist()
        parts = [f"'{shape.names[t]}' to '{shape.alternates[t][int(draft.active[t])]}'" for t in switched[:4]]
        parts += [f"{len(switched) - 4} more"] if len(switched) > 4 else []
        added, gone = int(draft.new.sum()), int((~draft.kept).sum())
        parts += [f"{added} machine{'s' if added > 1 else ''} more"] if added else []
        parts += [f"{gone} machine{'s' if gone > 1 else ''} less"] if gone else []
        if not parts:
            return "none"
        draft.fit_partitions()
        draft.sentences.append(f"most value for its price: {', '.join(parts)}")
        return "optimum"


def _of_every_core(load: FragmentLoad, epoch_s: float) -> float:
    """What a fragment whose stages have a part for every core can use of a reference core; 0 for others."""
    if epoch_s <= 0 or any(stage.partitions is not None for stage in load.stages):
        return 0.0
    return startable(max(epoch_s, load.trigger_s), overhead_s(load, 1), 1.0)


def _alike(draft: Draft) -> list[list[int]]:
    """Rows of machines of one pool, kind, speed (to 1 %) and of one side of the end of their paid time."""
    machines, groups = draft.seen.machines, dict[tuple[int, int, bool, int], list[int]]()
    for row in range(len(machines.names)):
        pace = round(float(machines.speed[row]) * (100 if len(machines.names) <= 40 else 25))
        key = int(draft.pool_of[row]), int(machines.kind[row]), bool(draft.due[row]), pace
        groups.setdefault(key, []).append(row)
    return [groups[key] for key in sorted(groups)]


def _combinations(draft: Draft, ways: Allowed) -> list[Allowed]:
    """Sets of alternates that leave rates as they are; where there are too many, those one change away from now."""
    shape = draft.seen.shape
    by_task: list[list[list[int]]] = []
    for task, each in enumerate(ways):
        groups: dict[float, list[int]] = {}
        for way in each:
            key = 0.0 if task in shape.outputs else float(shape.selectivity[task, way])
            groups.setdefault(key, []).append(way)
        by_task.append(list(groups.values()))
    count = 1
    for choices in by_task:
        count *= len(choices)
        if count > MOST_COMBINATIONS:
            break
    if count <= MOST_COMBINATIONS:
        return [list(each) for each in product(*by_task)]
    now = [next(g for g in choices if draft.seen.active[task] in g) for task, choices in enumerate(by_task)]
    changed = [
        [*now[:task], other, *now[task + 1 :]]
        for task, choices in enumerate(by_task)
        for other in choices
        if other is not now[task]
    ]
    return [now, *changed[: MOST_COMBINATIONS - 1]]
