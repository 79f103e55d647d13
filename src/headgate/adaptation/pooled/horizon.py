"""Machines and alternates of shared pools over the next steps, while changes are planned."""

from __future__ import annotations

from math import ceil

import numpy as np

from headgate.adaptation.outlook import Outlook
from headgate.adaptation.policy import PlannedAction
from headgate.adaptation.pooled.draft import Draft
from headgate.capacity.pooled import PoolLimits
from headgate.model.arrays import Floats, Ints

__all__ = ["PooledHorizon"]


class PooledHorizon:
    """Demand and usable power of every step; changes apply from their step to the end."""

    def __init__(self, draft: Draft, outlook: Outlook, margin: float) -> None:
        self.draft, self.outlook, self.margin = draft, outlook, margin
        self.steps, self.step_s = outlook.steps, draft.seen.terms.interval_s
        shape = draft.seen.shape
        self.alternates: Ints = np.tile(draft.active, (self.steps, 1))
        """By step and task."""

        late = draft.asked - draft.seen.external
        waiting_s = np.where(late > 0, draft.seen.waiting / np.maximum(late, 1e-300), 0.0)
        begins = np.arange(self.steps)[:, None] * self.step_s
        # A backlog is worked off over the first steps.
        part = np.clip((waiting_s[None, :] - begins) / self.step_s, 0.0, 1.0)
        self.external: Floats = outlook.external + late[None, :] * part
        self.opened: list[tuple[int, int, int]] = []
        """(step at which it is started, pool, class) of machines that are planned."""

        self.planned: list[PlannedAction] = []
        self._tasks = [str(name) for name in shape.names]
        self._cached: dict[int, PoolLimits] = {}

    @property
    def active(self) -> Ints:
        """The alternates at the end of the interval."""
        return np.asarray(self.alternates[-1])

    def speeds(self, step: int) -> list[Floats]:
        """Of every core that works in a step, by pool."""
        draft, begin = self.draft, step * self.step_s
        machines, classes = draft.seen.machines, draft.seen.terms.cloud.classes
        works = np.clip((begin + self.step_s - machines.starts_s) / self.step_s, 0.0, 1.0)
        speed = self.outlook.speed[step] * works
        stays = draft.kept & (speed > 0)
        result = []
        for pool in range(len(draft.graph.sharing.pools)):
            parts = [np.repeat(speed[stays], machines.cores[stays, pool])]
            for begun, of, kind in self.opened:
                each = classes[kind]
                ready_s = begun * self.step_s + each.boot_s
                share = float(np.clip((begin + self.step_s - ready_s) / self.step_s, 0.0, 1.0))
                if of == pool and share > 0:
                    parts.append(np.full(each.cores, each.core_power * self.outlook.usual * share))
            result.append(np.concatenate(parts))
        return result

    def limits(self, step: int) -> PoolLimits:
        if step not in self._cached:
            graph = self.draft.graph
            self._cached[step] = graph.limits(self.alternates[step], self.external[step], self.speeds(step))
        return self._cached[step]

    @property
    def ready_step(self) -> int:
        """The first step in which a machine that is started now can work."""
        soonest = min(each.boot_s for each in self.draft.seen.terms.cloud.classes)
        return min(ceil(soonest / self.step_s - 1e-9), self.steps - 1)

    def holds(self, step: int) -> bool:
        """Whether all keeps up in a step."""
        return self.limits(step).keeps_up(self.margin if step else 0.0)

    def crossover(self, begin: int = 0) -> int | None:
        """The first step from ``begin`` on that does not keep up; none if all do."""
        return next((step for step in range(begin, self.steps) if not self.holds(step)), None)

    def lack(self, step: int) -> Floats:
        """Reference cores that pools miss in a step."""
        limits = self.limits(step)
        return limits.demand * (1 + self.margin) - limits.usable

    def rest_h(self, step: int) -> float:
        return (self.steps - step) * self.step_s / 3_600

    def price(self, kind: int, step: int) -> float:
        """Of a machine until the end of the interval, whole paid periods, as value."""
        terms = self.draft.seen.terms
        period_h = terms.cloud.billing.period_s / 3_600
        count = max(ceil(self.rest_h(step) / period_h - 1e-9), 1)
        sigma = self.draft.worth.sigma or 1e-6
        return sigma * float(terms.cloud.classes[kind].price_per_h) * period_h * count

    def freed(self, step: int, task: int, way: int, pool: int) -> float:
        """What another alternate frees of a pool in a step, those behind it included."""
        graph, active = self.draft.graph, self.alternates[step].copy()
        active[task] = way
        after = graph.limits(active, self.external[step], self.speeds(step))
        return float(self.limits(step).demand[pool] - after.demand[pool])

    # Changes.

    def switch(self, step: int, task: int, way: int) -> None:
        self.alternates[step:, task] = way
        self._cached = {place: each for place, each in self._cached.items() if place < step}
        name = self.draft.seen.shape.alternates[task][way]
        self.planned.append(PlannedAction(step * self.step_s, self._tasks[task], f"to '{name}'"))

    def open(self, step: int, pool: int, kind: int) -> None:
        """One machine more, started early enough to work at a step."""
        each = self.draft.seen.terms.cloud.classes[kind]
        begun = max(0, step - ceil(each.boot_s / self.step_s - 1e-9))
        self.opened.append((begun, pool, kind))
        self._cached.clear()
        name = self.draft.graph.sharing.pools[pool].name
        self.planned.append(PlannedAction(begun * self.step_s, "", f"machine for pool '{name}'", f"new {each.name}"))

    def tried_switch(self, task: int, way: int) -> bool:
        """Switch from now on if all steps keep up with it; returns whether they do."""
        before = self.alternates.copy()
        self.switch(0, task, way)
        if self._all_hold():
            return True
        self.alternates = before
        self._cached.clear()
        self.planned.pop()
        return False

    def release_due(self) -> bool:
        """Release machines whose paid time ends now, those that give least for their price first."""
        draft, done = self.draft, False
        if not draft.may_release:
            return False
        machines, pools = draft.seen.machines, draft.pool_of
        worth = machines.speed * machines.cores.sum(axis=1) / draft.prices[machines.kind]
        for row in np.argsort(worth, kind="stable").tolist():
            if not draft.due[row] or draft.machines_of(int(pools[row])) <= 1:
                continue
            draft.kept[row] = False
            self._cached.clear()
            if self._all_hold():
                done = True
            else:
                draft.kept[row] = True
                self._cached.clear()
        return done

    def _all_hold(self) -> bool:
        return all(self.limits(step).keeps_up(self.margin) for step in range(self.steps))

    def enact(self) -> None:
        """Apply what is due now to the draft, machines that must start now included; the rest stays planned."""
        self.draft.active[:] = self.alternates[0]
        for begun, pool, kind in self.opened:
            if begun == 0:
                self.draft.new[pool, kind] += 1
