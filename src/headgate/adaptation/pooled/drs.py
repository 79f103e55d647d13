"""DRS where tasks share cores: the fewest cores of a pool that meet a latency, or the least latency of so many."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite

import numpy as np

from headgate.adaptation.policy import Rejected, Terms
from headgate.adaptation.pooled.deciding import Notes
from headgate.adaptation.pooled.draft import Draft
from headgate.adaptation.pooled.machine_moves import add_power, grow
from headgate.errors import InputError
from headgate.model.service_level import ServiceLevel
from headgate.queueing.fitting.correction import Correction
from headgate.queueing.fitting.smoothing import AlphaWeighted, Smoothing, weighted

__all__ = ["PooledDrs"]

KEPT = 20
"""Windows that smoothing may look at."""

TRUSTED_BELOW = 0.7
"""The utilisation up to which a measured latency teaches something about the model."""

NEAR = 0.95
"""The utilisation above which machines are added, whatever latencies are."""

SAFE = 0.85
"""The part of T_max up to which latency may be predicted to rise when a machine goes."""

MOST = 64


@dataclass(frozen=True, slots=True)
class PooledDrs:
    r"""Machines follow K, the cores that the model asks for; partitions follow K, too, where they can be changed.

    Stages of a fragment run one after the other and each may have all cores, so nothing is split among them:
    ``AssignProcessors`` becomes the partitions that are best for K cores, and ``MinProcessors`` the fewest machines
    with :math:`\chi E[T] \le T_{max}` for every dataflow, :math:`\chi` being learnt. All three problems:
    :math:`T_{max}` alone, :math:`K_{max}` alone, and both.

    ===========  =========================================================================================
    add          latency above T_max in two windows running, or demand above 95 % of what is usable
    remove       latency, measured or predicted, below T_min (half of T_max unless said otherwise), and
                 predicted to stay below 85 % of T_max without a machine whose paid time ends
    reallocate   other partitions give a stage more power
    never        within T_ra of the last change; where demand is above what is usable all the same
    ===========  =========================================================================================

    Reference: DRS (Fu et al. 2017), Sec. III and IV.
    """

    smoothing: Smoothing = field(default_factory=AlphaWeighted)
    interval_s: float = 60.0
    """T_ra."""

    def check(self, terms: Terms) -> None:
        """There must be a latency or a number of processors to aim at."""
        levels = [terms.level, *terms.levels.values()]
        if all(each.latency_max_s is None and each.processors_max is None for each in levels):
            message = f"policy 'drs' aims at a latency, and '{terms.dataflow.name}' asks for none"
            raise InputError("NO_LATENCY", f"{message}; give latency_max_s or processors_max in its service_level")

    def decide(self, draft: Draft, notes: Notes) -> str:
        self._smooth(draft, notes)
        asks = self._asks(draft, notes)
        overloaded = not draft.keeps_up()
        draft.figures.update(asks.figures)
        since = draft.seen.ended_s - float(notes.get("changed_s", -np.inf))
        if since < self.interval_s and not overloaded and len(draft.kept):
            notes["settled"] = int(notes.get("settled", 0)) + 1
            draft.rejected.append(Rejected("any change", f"the last one was {since:.3g} s ago"))
            return "none"
        fired = asks.change(overloaded)
        if fired == "none":
            notes["settled"] = int(notes.get("settled", 0)) + 1
        else:
            notes["changed_s"], notes["settled"] = draft.seen.ended_s, 0
        return fired

    def _smooth(self, draft: Draft, notes: Notes) -> None:
        """Rates as they are over the last windows; a backlog counts as it is."""
        late = draft.asked - draft.seen.external
        rates = [*notes.get("rates", []), draft.seen.external.tolist()][-KEPT:]
        weights = np.array(self.smoothing.weights(len(rates)))
        draft.asked = weights @ np.array(rates) + late
        latencies = {name: list(values) for name, values in notes.get("latencies", {}).items()}
        for name, value in draft.seen.latency_s.items():
            latencies[name] = [*latencies.get(name, []), float(value)][-KEPT:]
        notes["rates"], notes["latencies"] = rates, latencies

    def _asks(self, draft: Draft, notes: Notes) -> _Asks:
        """What is measured and predicted of every dataflow that has a target, with corrections learnt."""
        predicted = draft.latencies()
        measured = {
            name: weighted(self.smoothing, values)
            for name, values in notes["latencies"].items()
            if name in predicted and draft.seen.latency_s.get(name) is not None
        }
        corrections: dict[str, Correction] = dict(notes.get("corrections", {}))
        limits = draft.limits()
        usage = float((limits.demand / np.maximum(limits.usable, 1e-12)).max(initial=0.0))
        if int(notes.get("settled", 0)) >= 2 and usage < TRUSTED_BELOW and not draft.seen.waiting.any():
            for name, value in measured.items():
                corrections[name] = corrections.get(name, Correction()).learn(predicted[name], value)
        notes["corrections"] = corrections
        asks = _Asks(draft, {name: each.factor for name, each in corrections.items()}, measured, usage)
        above = asks.worst(measured) > 1.0
        notes["above"] = int(notes.get("above", 0)) + 1 if above else 0
        asks.windows_above = int(notes["above"])
        return asks


@dataclass(slots=True)
class _Asks:
    """One decision: what is asked of a pool, and what is measured."""

    draft: Draft
    factors: dict[str, float]
    measured: dict[str, float]
    usage: float
    windows_above: int = 0

    @property
    def figures(self) -> dict[str, float]:
        shown = {f"measured_s.{name}": value for name, value in self.measured.items()}
        shown |= {f"predicted_s.{name}": value for name, value in self.corrected(self.draft).items() if isfinite(value)}
        return {**shown, "utilisation": min(self.usage, 1e6), "cores": float(self.draft.cores)}

    def level(self, name: str) -> ServiceLevel:
        terms = self.draft.seen.terms
        return terms.levels.get(name, terms.level)

    def corrected(self, draft: Draft) -> dict[str, float]:
        return {name: self.factors.get(name, 1.0) * value for name, value in draft.latencies(waiting=True).items()}

    def worst(self, latencies: dict[str, float]) -> float:
        """The largest share of its T_max that a dataflow takes; 0 where none has one."""
        shares = [
            value / most for name, value in latencies.items() if (most := self.level(name).latency_max_s) is not None
        ]
        return max(shares, default=0.0)

    @property
    def has_target(self) -> bool:
        terms = self.draft.seen.terms
        return any(each.latency_max_s is not None for each in [terms.level, *terms.levels.values()])

    def change(self, overloaded: bool) -> str:
        draft = self.draft
        if not self.has_target:
            return self._all_cores()
        first = not len(draft.kept)
        if first or overloaded or self.windows_above >= 2 or self.usage > NEAR:
            return self._more(first)
        if self._below_least() and (fired := self._fewer()):
            return fired
        draft.fit_partitions()
        if draft.partitions:
            draft.sentences.append(f"other partitions for {draft.cores} cores give stages more power")
            return "reallocate"
        return "none"

    def _below_least(self) -> bool:
        """Whether every dataflow that has a target is below its T_min, as measured or as predicted."""
        predicted = self.corrected(self.draft)
        for name, value in predicted.items():
            level = self.level(name)
            if level.latency_max_s is not None:
                least = level.latency_max_s / 2 if level.latency_min_s is None else level.latency_min_s
                # What was measured may be of before the rate fell; what is predicted is of the rate now.
                if min(value, self.measured.get(name, np.inf)) >= least:
                    return False
        return True

    def _more(self, first: bool) -> str:
        draft, before = self.draft, self.draft.cores
        grow(draft, 1.0 / NEAR - 1.0)
        # The model may find the present number enough while the measurement does not: then one machine at a time.
        if self.windows_above >= 2 and draft.cores == before:
            self._one_more()
        met = self.worst(self.corrected(draft)) <= 1.0
        rounds = draft.tried()
        for _ in range(MOST):
            if met or not self._one_more():
                break
            met = self.worst(self.corrected(draft)) <= 1.0
        draft.fit_partitions()
        why = "first machines" if first else "T_max exceeded" if self.windows_above >= 2 else "demand near usable"
        if not met:
            draft.new, draft.kept = rounds.new, rounds.kept
            draft.rejected.append(Rejected("T_max", self._largest_part()))
            draft.sentences.append("no number of cores is predicted to meet the latency")
            if draft.cores == before:
                return "infeasible"
        draft.sentences.append(f"{why}: {before} -> {draft.cores} cores")
        return why

    def _one_more(self) -> bool:
        """One of the cheapest machines, in the pool that is used most, unless the limit of processors is reached."""
        draft = self.draft
        most = draft.seen.terms.level.processors_max
        if most is not None and draft.cores >= most:
            return False
        limits = draft.limits()
        pool = int(np.argmax(limits.demand / np.maximum(limits.usable, 1e-12)))
        return add_power(draft, pool, 1e-6)

    def _fewer(self) -> str:
        draft, before = self.draft, self.draft.cores
        machines, pools = draft.seen.machines, draft.pool_of
        weight = machines.left_s * machines.speed * machines.cores.sum(axis=1) / draft.prices[machines.kind]
        for row in np.argsort(weight, kind="stable").tolist():
            if not draft.may_release or not draft.due[row] or draft.machines_of(int(pools[row])) <= 1:
                continue
            draft.kept[row] = False
            if not draft.keeps_up(1.0 / NEAR - 1.0) or self.worst(self.corrected(draft)) > SAFE:
                draft.kept[row] = True
        if draft.cores == before:
            return ""
        draft.fit_partitions()
        draft.sentences.append(f"latency is below T_min, and will be below T_max: {before} -> {draft.cores} cores")
        return "below T_min"

    def _all_cores(self) -> str:
        """K_max alone: all the cores that it allows, for the least latency."""
        draft, before = self.draft, self.draft.cores
        most = draft.seen.terms.level.processors_max or 0
        classes = draft.seen.terms.cloud.classes
        while draft.may_acquire and len(draft.new) == 1:
            fits = [kind for kind, each in enumerate(classes) if draft.cores + each.cores <= most]
            if not fits:
                break
            draft.new[0, max(fits, key=lambda kind: (classes[kind].power, -float(classes[kind].price_per_h)))] += 1
        draft.fit_partitions()
        if draft.cores == before and not draft.partitions:
            return "none"
        draft.sentences.append(f"{before} -> {draft.cores} cores, of {most} that are allowed")
        return "reallocate" if draft.cores == before else "all processors"

    def _largest_part(self) -> str:
        draft = self.draft
        sojourns = draft.graph.sojourns(draft.active, draft.asked, draft.speeds())
        place = int(np.argmax(sojourns))
        load = draft.graph.loads[place]
        return (
            f"fragment '{load.id}' is the largest part, {sojourns[place]:.3g} s, of which its trigger is "
            f"{load.trigger_s:g} s and the fixed cost of an epoch {load.fixed_s:.3g} s"
        )
