"""DYN's runtime heuristics (Alg. 2) on shared pools: alternates from time to time, machines in between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.adaptation.policy import Terms
from headgate.adaptation.pooled.deciding import Notes
from headgate.adaptation.pooled.draft import Draft
from headgate.adaptation.pooled.machine_moves import grow, repack_due, shrink
from headgate.model.arrays import Floats

__all__ = ["PooledHeuristic"]


@dataclass(frozen=True, slots=True)
class PooledHeuristic:
    r"""Keeps demand at what the pool can use.

    Every ``alternates_every`` decisions (m) each task, in the order of the graph, may switch: while the pool cannot
    keep up to an alternate that needs no more than the active one, above the band to one that needs no less. Feasible
    are those whose work fits what the *pool* has to spare with all other tasks as they are; of these the one of most
    value for its cost, with what it makes those behind it do if ``centralised``. Of the other decisions every
    ``resources_every``-th (n) is on machines: what is missing is covered at least cost, what is too much is released
    at the end of its paid time. Never both at once.

    Where what waits is counted, throughput of a shared pool is 1 or falls towards 0, so it is not throughput but demand
    that is held: ``margin`` below what is usable.

    Reference: DYN, Alg. 2 and Eq. 10.
    """

    centralised: bool = True
    alternates_every: int = 5
    resources_every: int = 1
    margin: float = 0.025

    def check(self, terms: Terms) -> None:
        """Nothing is needed."""

    def decide(self, draft: Draft, notes: Notes) -> str:
        turn, seen = int(notes["turn"]), draft.seen
        low, high = seen.terms.level.throughput_band
        short = not draft.keeps_up()
        if turn % self.alternates_every == 0 and len(draft.kept):
            if short or seen.omega <= low:
                return self._switched(draft, cheaper=True)
            if seen.omega >= min(high, 1.0) - 1e-9:
                return self._switched(draft, cheaper=False)
            return "none"
        if turn % self.resources_every and len(draft.kept):
            return "none"
        return self._resized(draft, short)

    def _resized(self, draft: Draft, short: bool) -> str:
        if short:
            grow(draft, self.margin)
            draft.fit_partitions()
            added = int(draft.new.sum())
            if added:
                draft.sentences.append(f"demand is above what the pool can use: {added} machines added")
            return "demand above usable"
        gone = shrink(draft, self.margin)
        if self.centralised:
            gone += repack_due(draft, self.margin)
        if gone:
            draft.sentences.append(f"demand is below what the pool can use: {gone} machines released")
            return "demand below usable"
        return "none"

    def _switched(self, draft: Draft, cheaper: bool) -> str:
        shape, before = draft.seen.shape, draft.active.copy()
        total = self._costs(draft)
        for task in range(shape.tasks):
            ways = draft.ways(task)
            if len(ways) > 1 and not (cheaper and draft.keeps_up()):
                self._switch(draft, task, ways, total, cheaper)
        switched = np.flatnonzero(draft.active != before).tolist()
        if not switched:
            return "none"
        names = ", ".join(f"'{shape.names[t]}' to '{shape.alternates[t][int(draft.active[t])]}'" for t in switched[:4])
        more = f" and {len(switched) - 4} more" if len(switched) > 4 else ""
        why = "demand is above what the pool can use" if cheaper else "the pool has cores to spare"
        draft.sentences.append(f"{why}: {names}{more}")
        return "cheaper alternates" if cheaper else "better alternates"

    def _switch(self, draft: Draft, task: int, ways: list[int], total: Floats, cheaper: bool) -> None:
        shape, now = draft.seen.shape, int(draft.active[task])
        rate = float(draft.graph.rates(draft.active, draft.asked)[task])
        needed = {way: float(shape.cost_s[task, way]) * rate for way in ways}
        pool = int(draft.graph.pool_of[draft.graph.fragment_of[task]])
        limits = draft.limits()
        room = float(limits.usable[pool] - limits.demand[pool])
        allowed = [way for way in ways if (needed[way] <= needed[now] if cheaper else needed[way] >= needed[now])]
        fits = [way for way in allowed if needed[way] - needed[now] <= room and self._fits(draft, task, way, cheaper)]
        if not fits and cheaper:
            # Nothing fits yet: the tasks that follow make room, too.
            fits = [min(allowed, key=lambda way: (needed[way], -shape.value[task, way]))]
        if fits:
            draft.active[task] = max(fits, key=lambda way: shape.value[task, way] / max(float(total[task, way]), 1e-12))

    def _fits(self, draft: Draft, task: int, way: int, cheaper: bool) -> bool:
        """Whether pools keep up with an alternate, those behind the task included; cheaper ones only help."""
        now, draft.active[task] = int(draft.active[task]), way
        fits = cheaper or draft.keeps_up()
        draft.active[task] = now
        return fits

    def _costs(self, draft: Draft) -> Floats:
        """The cost of a message by alternate: its own, or with that of the downstream tasks as they are now."""
        shape = draft.seen.shape
        if not self.centralised:
            return shape.cost_s
        total = shape.cost_s.copy()
        behind = np.zeros(shape.tasks)
        for task in range(shape.tasks - 1, -1, -1):
            for stream in range(shape.first_stream[task], shape.first_stream[task + 1]):
                reader = int(shape.stream_target[stream])
                if not shape.stream_returns[stream]:
                    behind[task] += shape.stream_share[stream] * total[reader, draft.active[reader]]
            total[task] += shape.selectivity[task] * behind[task]
        return total
