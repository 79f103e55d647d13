"""DYN's runtime heuristics (Alg. 2): alternates from time to time, resources in between, never both at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from headgate.adaptation.cluster_view import ClusterView
from headgate.adaptation.core_moves import add_cores, drain_due, remove_cores
from headgate.adaptation.repacking import repack_due
from headgate.model.arrays import Floats

__all__ = ["Core", "Reactive"]


class Core(Protocol):
    """Changes a cluster view in place; what a policy for placed instances is made of."""

    @property
    def name(self) -> str:
        """The name of the policy."""

    def decide(self, now: ClusterView, turn: int) -> None:
        """Change the view; ``turn`` counts decisions from 1."""


@dataclass(frozen=True, slots=True)
class Reactive:
    r"""Keeps relative throughput within :math:`\hat\Omega \pm \varepsilon`.

    Every ``alternates_every`` decisions (m) each task may switch: below the band to an alternate that needs no more
    than the active one, above it to one that needs no less; the one of most value for its cost that fits the cores it
    has. It needs power for everything that comes, not only for the share of it that is asked for. Of the other
    decisions every ``resources_every``-th (n) is on resources: below the band cores go to bottlenecks, above it
    instances go from the machines of least weight. Machines without instances are released at the end of their billing
    period.

    A centralised one counts what an alternate makes those behind it do, empties machines whose paid time is up into
    the free cores of others, and repacks what is left on such machines onto smaller ones; a sharded one does none of
    this. It aims ``margin`` above the throughput that is asked for,
    since rates and machines move on before the decision takes effect.

    Reference: DYN, Alg. 2 and Eq. 10.
    """

    centralised: bool = True
    alternates_every: int = 5
    resources_every: int = 1
    margin: float = 0.025

    @property
    def name(self) -> str:
        return "ce" if self.centralised else "sh"

    def decide(self, now: ClusterView, turn: int) -> None:
        cores, active = int(now.placed.sum()), now.active.copy()
        self._change(now, turn)
        added, switched = int(now.placed.sum()) - cores, int((now.active != active).sum())
        if added or switched:
            low, high = now.level.throughput_band
            band = "within its band" if low <= now.omega <= high else f"outside {low:g} to {high:g}"
            done = (
                f"{switched} alternates switched"
                if switched
                else f"{abs(added)} instances {'added' if added > 0 else 'removed'}"
            )
            now.reasons.append(f"relative throughput was {now.omega:.3f}, {band}: {done}")

    def _change(self, now: ClusterView, turn: int) -> None:
        asked, eps = now.level.throughput_min, now.level.throughput_tolerance
        if turn % self.alternates_every == 0:
            if now.omega <= asked - eps:
                self._switch(now, cheaper=True)
            elif now.omega >= asked + eps:
                self._switch(now, cheaper=False)
            return
        if turn % self.resources_every:
            return
        aim = now.aim(self.margin)
        if now.omega <= aim - eps:
            add_cores(now, aim)
        elif now.omega >= asked + eps:
            remove_cores(now, aim)
        if self.centralised:
            drain_due(now)
            repack_due(now)

    def _switch(self, now: ClusterView, cheaper: bool) -> None:
        shape = now.shape
        total = self._costs(now)
        power = now.power
        offered = now.external + now.waiting
        for task, ways in enumerate(shape.alternates):
            if len(ways) > 1:
                needed = shape.cost_s[task, : len(ways)] * offered[task]
                has = needed[now.active[task]]
                fits = [
                    way
                    for way in range(len(ways))
                    if (needed[way] <= has if cheaper else needed[way] >= has) and needed[way] <= power[task]
                ]
                if fits:
                    value = shape.value[task]
                    now.active[task] = max(fits, key=lambda way: value[way] / max(total[task, way], 1e-12))
            cost = shape.cost_s[task, now.active[task]]
            finish = min(offered[task], power[task] / cost) if cost > 0 else offered[task]
            for stream in range(shape.first_stream[task], shape.first_stream[task + 1]):
                out = shape.selectivity[task, now.active[task]] * shape.stream_share[stream]
                offered[shape.stream_target[stream]] += finish * out

    def _costs(self, now: ClusterView) -> Floats:
        """The cost of a message by alternate: its own, or with that of the downstream tasks as they are now."""
        shape = now.shape
        if not self.centralised:
            return shape.cost_s
        total = shape.cost_s.copy()
        behind = np.zeros(shape.tasks)
        for task in range(shape.tasks - 1, -1, -1):
            for stream in range(shape.first_stream[task], shape.first_stream[task + 1]):
                reader = int(shape.stream_target[stream])
                behind[task] += shape.stream_share[stream] * total[reader, now.active[reader]]
            total[task] += shape.selectivity[task] * behind[task]
        return total
