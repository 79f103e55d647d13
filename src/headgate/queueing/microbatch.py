"""A model of micro-batches as Spark runs them: waiting for triggers, barriers and hops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import ndtri

from headgate.errors import BadValue

__all__ = [
    "BatchFragment",
    "BatchPrediction",
    "MicroBatches",
    "Stage",
    "batch_percentile",
    "hops",
    "passes_variance",
    "predict_batches",
    "stage_s",
    "sustainable_rate_per_s",
]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Stage:
    """One operator of a fragment: its tuples are dealt out to k partitions, and the next stage waits for all."""

    name: str
    service_s: float
    """Mean time of one tuple on one processor."""

    service_scv: float = 1.0
    tuples_per_row: float = 1.0
    """Tuples that come by for each row that enters the fragment."""

    start_s: float = 0.0
    """What starting the stage costs, however little there is to do: the barrier."""

    task_s: float = 0.0
    """What each partition adds to that."""

    uneven: float = 0.0
    """0 if tuples are dealt out in turn; 1 if each takes a partition by chance, as by a hashed key."""

    processors_min: int = 1
    processors_max: int | None = None
    price: float = 1.0

    def __post_init__(self) -> None:
        for what, value in (
            ("service time", self.service_s),
            ("service scv", self.service_scv),
            ("tuples per row", self.tuples_per_row),
            ("start", self.start_s),
            ("cost per task", self.task_s),
            ("unevenness", self.uneven),
        ):
            if not (isfinite(value) and value >= 0):
                raise BadValue(f"{what} of stage '{self.name}' is {value:g}", "a finite number, at least 0")
        if not 1 <= self.processors_min <= (self.processors_max or self.processors_min):
            raise BadValue(f"processors of stage '{self.name}'", "1 <= least <= most")


@dataclass(frozen=True, slots=True)
class BatchFragment:
    """One streaming query: its stages run one after the other, once per micro-batch."""

    name: str
    stages: tuple[Stage, ...]
    fixed_s: float = 0.0
    """What a batch costs before and after its stages: offsets, plan, commit."""

    passes: float = 1.0
    """How often a row from outside goes through the fragment: more than once in a loop, less behind a filter."""

    hop_s: float = 0.0
    """From the end of a batch until its rows can be read by the next fragment: the exchange."""

    duration_scv: float = 0.01
    """How much the time of a batch varies about its mean."""


@dataclass(frozen=True, slots=True)
class MicroBatches:
    """Fragments that rows from outside pass through, and how often a batch is begun."""

    rate_per_s: float
    fragments: tuple[BatchFragment, ...]
    trigger_s: float = 0.0
    """Time from trigger to trigger; 0 begins a batch as soon as the last one has ended."""

    def __post_init__(self) -> None:
        if not (isfinite(self.rate_per_s) and self.rate_per_s > 0):
            raise BadValue(f"a rate of {self.rate_per_s:g} rows/s", "a finite number above 0")
        if not (isfinite(self.trigger_s) and self.trigger_s >= 0):
            raise BadValue(f"a trigger every {self.trigger_s:g} s", "a finite number, at least 0")

    @property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(stage for fragment in self.fragments for stage in fragment.stages)


@dataclass(frozen=True, slots=True)
class BatchPrediction:
    """Predicted intervals, durations and sojourns; times in seconds."""

    allocation: tuple[int, ...]
    intervals_s: tuple[float, ...]
    """Per fragment, from the beginning of a batch to the next."""

    durations_s: tuple[float, ...]
    """Per fragment, how long a batch takes."""

    mean_s: float
    variance_s2: float
    hops: int

    def percentile_s(self, p: float) -> float:
        return float(batch_percentile(np.array(self.mean_s), np.array(self.variance_s2), self.hops, p))


def stage_s(stage: Stage, k: npt.ArrayLike, rows: npt.ArrayLike, dealers: npt.ArrayLike = 1) -> Floats:
    r"""Mean time (s) of a stage with ``k`` partitions and ``rows`` rows in the batch.

    With :math:`n` tuples in the batch, the fullest partition has about :math:`c = \max(1 - e^{-n}, n/k + (1 - 1/k)/2)`
    of them (dealt out in turn, n from a Poisson distribution), and the barrier waits for the slowest of :math:`m =
    \min(k, n)` partitions, which takes longer than the mean one by :math:`z_m` standard deviations:

    .. math:: d(k) = s_0 + s_1 k + \bar s c + \bar s \sqrt{(c_s^2 + u)\, c}\; z_m, \qquad
              z_m = \Phi^{-1}\!\left(\frac{m - 0.375}{m + 0.25}\right)

    :math:`\bar s, c_s^2` are mean and squared coefficient of variation of the service time, u is the unevenness,
    :math:`s_0, s_1` are the costs of starting. Neither convex nor even falling in k throughout: more partitions mean a
    slower slowest.

    Tuples come from j = ``dealers`` partitions of the stage before. Each of them deals out its own in turn, from a
    place of its own, so with several a partition's share has a variance of about :math:`V = j x (1 - x)`, x = n/(jk),
    and the slowest takes :math:`\bar s\,(n/k + z_k \sqrt{c_s^2\, n/k + V})` if that is longer.

    >>> stage_s(Stage("match", 0.1, 0.0), [1, 2, 5], 20.0).round(3).tolist()
    [2.0, 1.025, 0.44]
    >>> stage_s(Stage("match", 0.1, 0.0), [1, 2, 5], 20.0, dealers=10).round(3).tolist()
    [2.0, 1.054, 0.563]

    Reference: the expected largest of m normal values is G. Blom 1958, *Statistical Estimates*; the rest is ours.
    """
    many = np.asarray(k, dtype=np.float64)
    tuples = np.asarray(rows, dtype=np.float64) * stage.tuples_per_row
    varying = stage.service_scv + stage.uneven
    fullest = np.maximum(1 - np.exp(-tuples), tuples / many + (1 - 1 / many) / 2)
    tuples_s = fullest + np.sqrt(varying * fullest) * _slowest(np.minimum(many, tuples))
    if not (np.isscalar(dealers) and dealers == 1):
        tuples_s = np.maximum(tuples_s, _dealt_by(np.asarray(dealers, dtype=np.float64), many, tuples, varying))
    return np.asarray(stage.start_s + stage.task_s * many + stage.service_s * tuples_s)


def _dealt_by(dealers: Floats, many: Floats, tuples: Floats, varying: float) -> Floats:
    """The slowest partition's work, in service times, where several deal out their tuples; 0 for a single one."""
    share = tuples / many
    each = np.minimum(share / np.maximum(dealers, 1.0), 1.0)
    # From half a round on, where in its round a dealer ends is about anywhere: a sixth, as of a uniform place.
    by_chance = np.where(each <= 0.5, each * (1 - each), np.maximum(each * (1 - each), 1 / 6)) * (1 - 1 / many)
    spread = np.sqrt(varying * share + dealers * by_chance)
    return np.where(dealers > 1, share + spread * _slowest(many), 0.0)


def _slowest(count: Floats) -> Floats:
    """By how many standard deviations the largest of so many values exceeds the mean."""
    at_least = np.maximum(count, 1.0)
    return np.asarray(ndtri((at_least - 0.375) / (at_least + 0.25)))


def _duration_s(fragment: BatchFragment, allocation: Sequence[int], rows: float) -> float:
    stages = zip(fragment.stages, allocation, strict=True)
    return fragment.fixed_s + sum(float(stage_s(stage, k, rows)) for stage, k in stages)


def _interval_s(fragment: BatchFragment, allocation: Sequence[int], rate: float, trigger_s: float) -> float:
    """The time T from batch to batch: the trigger if batches are done by then, else T = d(T); infinite if none is."""
    flow = rate * fragment.passes

    def late(interval: float) -> float:
        return _duration_s(fragment, allocation, flow * interval) - interval

    if trigger_s > 0 and late(trigger_s) <= 0:
        return trigger_s
    low = max(trigger_s, 1e-9)
    if late(low) <= 0:
        return low
    high = max(2 * low, 1e-3)
    while late(high) > 0:
        low, high = high, 2 * high
        if high > 1e7:
            return float("inf")
    return float(brentq(late, low, high, xtol=1e-12, rtol=1e-12))


def predict_batches(batches: MicroBatches, allocation: Sequence[int]) -> BatchPrediction:
    r"""Predict the sojourn of rows: waiting for the next batch, the batch, and the hop to the next fragment.

    A row arrives at any moment of an interval T and is done when its batch is, so in fragment f it takes

    .. math:: E[T_f] = \frac{T}{2} + d(T) + h, \qquad T = \max(\text{trigger}, d(T)), \qquad
              Var[T_f] = \frac{T^2}{12} + c_d^2\, d^2

    and all fragments together :math:`\sum_f p_f E[T_f]` with p passes. A batch that takes longer than the trigger
    delays the next one, so a fragment that falls behind settles at the T with d(T) = T, if there is one: each batch
    takes in what came during the one before. If there is none its backlog grows without end and the result is infinite.

    >>> flow = MicroBatches(10.0, (BatchFragment("main", (Stage("match", 0.1),), fixed_s=0.2),), trigger_s=1.0)
    >>> round(predict_batches(flow, [4]).mean_s, 2)
    1.17
    """
    split = _by_fragment(batches, allocation)
    intervals, durations, mean, variance = [], [], 0.0, 0.0
    for fragment, ks in zip(batches.fragments, split, strict=True):
        interval = _interval_s(fragment, ks, batches.rate_per_s, batches.trigger_s)
        if not isfinite(interval):
            return BatchPrediction(
                tuple(allocation), (float("inf"),) * len(split), (float("inf"),) * len(split), *(float("inf"),) * 2, 1
            )
        duration = _duration_s(fragment, ks, batches.rate_per_s * fragment.passes * interval)
        once = interval / 2 + duration + fragment.hop_s
        intervals.append(interval)
        durations.append(duration)
        mean += fragment.passes * once
        variance += fragment.passes * (interval**2 / 12 + fragment.duration_scv * duration**2)
        variance += passes_variance(fragment.passes) * once**2
    return BatchPrediction(tuple(allocation), tuple(intervals), tuple(durations), mean, variance, hops(batches))


def passes_variance(passes: float) -> float:
    """Of a loop's geometric number of passes, or of a filter's yes or no; 0 for just one pass."""
    return passes * (passes - 1) if passes >= 1 else passes * (1 - passes)


def hops(batches: MicroBatches) -> int:
    """How many batches a row waits for, rounded."""
    return max(1, round(sum(fragment.passes for fragment in batches.fragments)))


def batch_percentile(mean: Floats, variance: Floats, waits: int, p: float) -> Floats:
    r"""The p-quantile of a sojourn through micro-batches: :math:`M + z \sqrt{V}`.

    z is the quantile of a sum of so many uniform waits, standardised: exact for one (uniform) and two (triangular),
    from three on the normal quantile corrected for the sum's kurtosis :math:`-1.2/n` (Cornish and Fisher 1938).

    >>> batch_percentile(np.array(1.5), np.array(1 / 12), 1, 0.95).round(3).tolist()  # uniform from 1 to 2
    1.95
    """
    if waits == 1:
        z = sqrt(12) * (p - 0.5)
    elif waits == 2:
        z = sqrt(6) * (1 - sqrt(2 * (1 - p)) if p >= 0.5 else sqrt(2 * p) - 1)
    else:
        normal = float(ndtri(p))
        z = normal + (normal**3 - 3 * normal) * (-1.2 / waits) / 24
    return np.asarray(mean + z * np.sqrt(variance))


def sustainable_rate_per_s(batches: MicroBatches, allocation: Sequence[int], trigger_s: float | None = None) -> float:
    """The largest rate (rows/s) at which every fragment is done with a batch when the next one is due.

    With ``trigger_s`` of 0 batches may become as long as they like, which makes fixed costs vanish: the capacity.

    >>> flow = MicroBatches(10.0, (BatchFragment("main", (Stage("match", 0.1),), fixed_s=0.5),), trigger_s=1.0)
    >>> round(sustainable_rate_per_s(flow, [4]), 1), round(sustainable_rate_per_s(flow, [4], 0.0), 1)
    (11.1, 40.0)
    """
    trigger = batches.trigger_s if trigger_s is None else trigger_s
    interval = trigger if trigger > 0 else 1e6

    def keeps_up(rate: float) -> bool:
        return all(
            _duration_s(fragment, ks, rate * fragment.passes * interval) <= interval
            for fragment, ks in zip(batches.fragments, _by_fragment(batches, allocation), strict=True)
        )

    low, high = 0.0, batches.rate_per_s
    if not keeps_up(1e-12):
        return 0.0
    while keeps_up(high) and high < 1e15:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps_up(middle) else (low, middle)
    return low


def _by_fragment(batches: MicroBatches, allocation: Sequence[int]) -> list[tuple[int, ...]]:
    if len(allocation) != len(batches.stages):
        raise BadValue(f"{len(allocation)} numbers of processors", f"one for each of {len(batches.stages)} stages")
    split, begin = [], 0
    for fragment in batches.fragments:
        split.append(tuple(allocation[begin : begin + len(fragment.stages)]))
        begin += len(fragment.stages)
    return split
