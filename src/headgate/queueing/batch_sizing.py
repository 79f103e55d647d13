"""AssignProcessors and MinProcessors for micro-batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from headgate.errors import BadValue, Infeasible
from headgate.queueing.frontier import Chosen, choose
from headgate.queueing.microbatch import (
    BatchPrediction,
    MicroBatches,
    Stage,
    batch_percentile,
    hops,
    passes_variance,
    predict_batches,
    stage_s,
)
from headgate.queueing.quantile_search import QuantileProblem, cheapest_within, least_quantile
from headgate.queueing.sizing import check_percentile

__all__ = ["BatchSizing", "assign_batches", "min_batches"]

Floats = npt.NDArray[np.float64]

MOST_PER_STAGE = 4_096


@dataclass(frozen=True, slots=True)
class BatchSizing:
    """Processors by stage, and the trigger they were chosen for."""

    allocation: tuple[int, ...]
    trigger_s: float
    prediction: BatchPrediction
    cost: float
    exact: bool = True

    @property
    def processors(self) -> int:
        return sum(self.allocation)


def assign_batches(batches: MicroBatches, processors: int, percentile: float | None = None) -> BatchSizing:
    """The allocation of at most ``processors`` with the least mean sojourn, or the least percentile of it.

    At a given trigger every batch must be done before the next is due; under that limit the allocation is optimal. The
    time of a stage is not convex in its processors, so the search is exact rather than one at a time. With a trigger of
    0 the best trigger is looked for as well, numerically: the shortest that these processors can keep up with, or a
    longer one on a grid if that lets them be split better.

    >>> from headgate.queueing.microbatch import BatchFragment
    >>> slow, quick = Stage("slow", 0.2), Stage("quick", 0.05)
    >>> assign_batches(MicroBatches(10.0, (BatchFragment("main", (slow, quick)),), 1.0), 12).allocation
    (8, 4)
    """
    check_percentile(percentile)
    if batches.trigger_s > 0:
        picks, exact = _assign(batches, processors, percentile)
        return _sized(batches, picks, exact)
    best: BatchSizing | None = None
    shortest = _shortest_trigger(batches, processors)
    for stretch in np.geomspace(1.0, 4.0, 25):
        at = replace(batches, trigger_s=float(shortest * stretch))
        sizing = _sized(at, *_assign(at, processors, percentile))
        if best is None or _latency(sizing.prediction, percentile) < _latency(best.prediction, percentile):
            best = sizing
    assert best is not None
    return best


def min_batches(batches: MicroBatches, latency_s: float, percentile: float | None = None) -> BatchSizing:
    """The fewest processors, or the cheapest if prices differ, whose sojourn is at most ``latency_s``.

    >>> from headgate.queueing.microbatch import BatchFragment
    >>> slow, quick = Stage("slow", 0.2), Stage("quick", 0.05)
    >>> min_batches(MicroBatches(10.0, (BatchFragment("main", (slow, quick)),), 1.0), 1.4).processors
    14
    """
    check_percentile(percentile)
    if batches.trigger_s > 0:
        picks, exact = _cheapest(batches, latency_s, percentile)
        return _sized(batches, picks, exact)
    # A free trigger: more processors never make the best latency longer, so bisect on their number.
    low, high = len(batches.stages), 2 * len(batches.stages)
    sizing: BatchSizing | None = None
    while sizing is None:
        try:
            tried = assign_batches(batches, high, percentile)
        except Infeasible:
            tried = None
        if tried is not None and _latency(tried.prediction, percentile) <= latency_s:
            sizing = tried
        elif high >= MOST_PER_STAGE:
            raise _unreachable(tried, latency_s, percentile, high)
        else:
            low, high = high + 1, min(2 * high, MOST_PER_STAGE)
    while low < high:
        middle = (low + high) // 2
        try:
            tried = assign_batches(batches, middle, percentile)
        except Infeasible:
            tried = None
        if tried is not None and _latency(tried.prediction, percentile) <= latency_s:
            sizing, high = tried, middle
        else:
            low = middle + 1
    return sizing


def _latency(prediction: BatchPrediction, percentile: float | None) -> float:
    return prediction.mean_s if percentile is None else prediction.percentile_s(percentile)


def _sized(batches: MicroBatches, allocation: tuple[int, ...], exact: bool) -> BatchSizing:
    cost = float(sum(stage.price * k for stage, k in zip(batches.stages, allocation, strict=True)))
    return BatchSizing(allocation, batches.trigger_s, predict_batches(batches, allocation), cost, exact)


def _assign(batches: MicroBatches, processors: int, percentile: float | None) -> tuple[tuple[int, ...], bool]:
    if processors < 1:
        raise BadValue(f"{processors} processors", "at least 1")
    _check_keeps_up(batches, processors)
    spare = processors - sum(stage.processors_min for stage in batches.stages)
    ranges = _ranges(batches, spare)
    units = [np.array(each, dtype=np.float64) for each in ranges]

    def by_sum(values: Sequence[Floats]) -> Chosen | None:
        return choose(values, units, processors)

    return _solved(batches, ranges, units, percentile, by_sum, lambda problem: least_quantile(problem, processors))


def _cheapest(batches: MicroBatches, latency_s: float, percentile: float | None) -> tuple[tuple[int, ...], bool]:
    _check_keeps_up(batches, None)
    steps = 16
    while True:
        ranges = _ranges(batches, steps)
        choice = _cheapest_in(batches, ranges, latency_s, percentile)
        if choice is not None:
            break
        if steps >= MOST_PER_STAGE or all(len(each) <= steps for each in ranges):
            best = _assign(batches, sum(each[-1] for each in ranges), percentile)[0]
            raise _unreachable(_sized(batches, best, True), latency_s, percentile, sum(best))
        steps *= 4
    picks, exact = choice
    prices = [stage.price for stage in batches.stages]
    spent = sum(price * (k - each[0]) for price, k, each in zip(prices, picks, ranges, strict=True))
    wider = [_range(stage, int(spent / stage.price + 1e-9)) for stage in batches.stages]
    return _cheapest_in(batches, wider, latency_s, percentile) or (picks, exact)


def _cheapest_in(
    batches: MicroBatches, ranges: Sequence[range], latency_s: float, percentile: float | None
) -> tuple[tuple[int, ...], bool] | None:
    costs = [s.price * np.array(each, dtype=np.float64) for s, each in zip(batches.stages, ranges, strict=True)]
    always = _fixed_mean_s(batches)

    def by_sum(values: Sequence[Floats]) -> Chosen | None:
        return choose(costs, values, latency_s - always)

    try:
        return _solved(batches, ranges, costs, percentile, by_sum, lambda problem: cheapest_within(problem, latency_s))
    except Infeasible:
        return None


def _solved(
    batches: MicroBatches,
    ranges: Sequence[range],
    costs: Sequence[Floats],
    percentile: float | None,
    by_sum: Callable[[Sequence[Floats]], Chosen | None],
    by_search: Callable[[QuantileProblem], Chosen | None],
) -> tuple[tuple[int, ...], bool]:
    """Solve without the limit that batches finish in time; if the result violates it, solve with it."""
    groups = [place for place, fragment in enumerate(batches.fragments) for _ in fragment.stages]
    passes = np.array([batches.fragments[group].passes for group in groups])
    durations = [
        stage_s(stage, np.array(each), batches.rate_per_s * p * batches.trigger_s)
        for stage, each, p in zip(batches.stages, ranges, passes, strict=True)
    ]
    caps = [batches.trigger_s - fragment.fixed_s for fragment in batches.fragments]
    chosen: Chosen | None = None
    if percentile is None:
        chosen = by_sum([p * duration for p, duration in zip(passes, durations, strict=True)])
        if chosen is None:
            raise Infeasible("LATENCY_NOT_REACHABLE", "no allocation is quick enough")
        sums = np.zeros(len(caps))
        for group, duration, j in zip(groups, durations, chosen.picks, strict=True):
            sums[group] += duration[j]
        if np.any(sums > np.array(caps)):
            chosen = None
    if chosen is None:
        choice = by_search(_problem(batches, costs, durations, percentile))
        if choice is not None:
            # Of each fragment's items the first two are its constants.
            starts = {2 * place + begin + extra for place, begin in enumerate(_begins(batches)) for extra in (0, 1)}
            picks = tuple(j for place, j in enumerate(choice.picks) if place not in starts)
            chosen = replace(choice, picks=picks)
    if chosen is None:
        raise Infeasible("LATENCY_NOT_REACHABLE", "no allocation is quick enough")
    return tuple(each[j] for each, j in zip(ranges, chosen.picks, strict=True)), chosen.gap == 0.0


def _begins(batches: MicroBatches) -> list[int]:
    """The place of each fragment's first stage among all stages."""
    return [
        sum(len(fragment.stages) for fragment in batches.fragments[:place]) for place in range(len(batches.fragments))
    ]


def _problem(
    batches: MicroBatches, costs: Sequence[Floats], durations: Sequence[Floats], percentile: float | None
) -> QuantileProblem:
    r"""Stages as the operators of a percentile problem.

    A batch's time d is a sum over its stages, so the variance :math:`c_d^2 p\, d^2 + Var[N] (T/2 + h + d)^2` is a
    covariance that all stages of a fragment share. A fragment's constants, its fixed cost and T/2 + h, take part in it
    as operators with only one choice.
    """
    one, nothing = np.ones(1), np.zeros(1)
    item_costs: list[Floats] = []
    means: list[Floats] = []
    groups: list[int] = []
    visits: list[float] = []
    caps: list[float] = []
    in_batch: list[bool] = []
    for place, (fragment, begin) in enumerate(zip(batches.fragments, _begins(batches), strict=True)):
        around = batches.trigger_s / 2 + fragment.hop_s
        end = begin + len(fragment.stages)
        item_costs += [nothing, nothing, *costs[begin:end]]
        means += [fragment.fixed_s * one, around * one, *durations[begin:end]]
        in_batch += [True, False, *(True for _ in fragment.stages)]
        groups += [place] * (2 + end - begin)
        visits += [fragment.passes] * (2 + end - begin)
        caps.append(batches.trigger_s + around)
    covariance = np.zeros((len(means), len(means)))
    for i, j in np.ndindex(*covariance.shape):
        if groups[i] == groups[j]:
            fragment = batches.fragments[groups[i]]
            both = in_batch[i] and in_batch[j]
            covariance[i, j] = passes_variance(fragment.passes) + both * fragment.passes * fragment.duration_scv
    waits = hops(batches)
    triggers = sum(fragment.passes * batches.trigger_s**2 / 12 for fragment in batches.fragments)

    def quantile(mean: Floats, variance: Floats) -> Floats:
        return mean if percentile is None else batch_percentile(mean, variance + triggers, waits, percentile)

    zeros = [np.zeros(len(mean)) for mean in means]
    return QuantileProblem(item_costs, means, zeros, np.array(visits), covariance, quantile, quantile, groups, caps)


def _fixed_mean_s(batches: MicroBatches) -> float:
    """The part of a row's sojourn that does not depend on processors: triggers, fixed costs, hops."""
    return sum(f.passes * (batches.trigger_s / 2 + f.fixed_s + f.hop_s) for f in batches.fragments)


def _ranges(batches: MicroBatches, spare: int) -> list[range]:
    return [_range(stage, spare) for stage in batches.stages]


def _range(stage: Stage, spare: int) -> range:
    top = stage.processors_min + spare
    return range(stage.processors_min, (top if stage.processors_max is None else min(top, stage.processors_max)) + 1)


def _check_keeps_up(batches: MicroBatches, processors: int | None) -> None:
    """Raise unless every fragment can finish a batch before the next one is due."""
    needed = _needed(batches)
    if processors is not None and sum(needed) > processors:
        most_at = max(range(len(needed)), key=lambda i: needed[i])
        message = f"needs {sum(needed)} processors to finish batches within {batches.trigger_s:g} s, {processors} given"
        if len(needed) > 1:
            message += f"; fragment '{batches.fragments[most_at].name}' alone needs {needed[most_at]}"
        raise Infeasible("TOO_FEW_PROCESSORS", message, {"needed": sum(needed), "given": processors})


def _needed(batches: MicroBatches) -> list[int]:
    """The fewest processors with which each fragment finishes a batch before the next one is due."""
    needed = []
    for fragment in batches.fragments:
        rows = batches.rate_per_s * fragment.passes * batches.trigger_s
        ranges = [_range(stage, MOST_PER_STAGE) for stage in fragment.stages]
        choice = choose(
            [np.array(each, dtype=np.float64) for each in ranges],
            [stage_s(stage, np.array(each), rows) for stage, each in zip(fragment.stages, ranges, strict=True)],
            batches.trigger_s - fragment.fixed_s,
        )
        if choice is None:
            message = f"fragment '{fragment.name}' cannot finish the {rows:.4g} rows of a batch within its trigger of "
            message += f"{batches.trigger_s:g} s with any number of processors; take a longer trigger"
            raise Infeasible("TOO_FEW_PROCESSORS", message, {"fragment": fragment.name, "trigger_s": batches.trigger_s})
        needed.append(round(choice.value))
    return needed


def _shortest_trigger(batches: MicroBatches, processors: int) -> float:
    def fits(trigger_s: float) -> bool:
        try:
            _check_keeps_up(replace(batches, trigger_s=trigger_s), processors)
        except Infeasible:
            return False
        return True

    high = 1e-2
    while not fits(high):
        high *= 4
        if high > 1e5:
            needed = sum(_needed(replace(batches, trigger_s=high)))
            message = f"needs {needed} processors to finish batches in time at any trigger, {processors} given"
            raise Infeasible("TOO_FEW_PROCESSORS", message, {"needed": needed, "given": processors})
    low = high / 4
    for _ in range(30):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _unreachable(best: BatchSizing | None, latency_s: float, percentile: float | None, processors: int) -> Infeasible:
    what = "mean latency" if percentile is None else f"latency at the {100 * percentile:g}th percentile"
    least = float("inf") if best is None else _latency(best.prediction, percentile)
    return Infeasible(
        "LATENCY_NOT_REACHABLE",
        f"a {what} of {latency_s:g} s cannot be reached: even {processors} processors give {least:.4g} s",
        {"latency_s": latency_s, "best_s": least, "processors": processors, "percentile": percentile},
    )
