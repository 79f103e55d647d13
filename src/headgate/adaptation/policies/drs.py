"""The DRS policy's decision: whether to move, add or remove processors, and why.

A pure function of what was measured, what is allocated and what is asked for; the clock is an argument. What acts on
the answer is not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite
from types import MappingProxyType

from headgate.adaptation.sizers import FlowSizer, NetworkSizer, Sizer
from headgate.errors import BadValue, Infeasible
from headgate.queueing.fitting.correction import Correction
from headgate.queueing.network import Network
from headgate.queueing.spark_flow import SparkFlow
from headgate.queueing.station import StationModel

__all__ = ["DrsSettings", "Estimates", "Resize", "ResizeDecision", "decide"]

SHARES_TRIED = 10
"""Halvings in looking for the share of the rate that all processors together can keep up with."""


class Resize(StrEnum):
    """What a decision does."""

    KEEP = "keep"
    """Nothing: all is well, or a change is not worth its cost, or it is too early for one."""

    REALLOCATE = "reallocate"
    """As many processors, split in another way."""

    ADD = "add"
    REMOVE = "remove"
    INFEASIBLE = "infeasible"
    """The request cannot be met; nothing changes."""


@dataclass(frozen=True, slots=True)
class DrsSettings:
    """The goal: a number of processors or a latency."""

    processors_max: int | None = None
    """K_max: processors to split for the least latency. In latency mode, the limit."""

    latency_max_s: float | None = None
    """T_max: with it the policy looks for the fewest processors."""

    latency_min_s: float = 0.0
    """T_min: below it processors are taken away."""

    reallocation_interval_s: float = 60.0
    """T_ra: from one change to the next at least."""

    pause_s: float = 0.0
    """How long a change pauses processing."""

    horizon_s: float = 600.0
    """The gain of a change must exceed its cost within this time."""

    model: StationModel = StationModel.GGK
    """How tuples that are served one by one are modelled; micro-batches have a model of their own."""

    percentile: float | None = None

    def __post_init__(self) -> None:
        if self.processors_max is None and self.latency_max_s is None:
            raise BadValue("neither processors_max nor latency_max_s is given", "one of them, or both")
        if self.latency_max_s is not None and not 0 <= self.latency_min_s < self.latency_max_s:
            raise BadValue(f"latency_min_s is {self.latency_min_s:g}", f"below latency_max_s, {self.latency_max_s:g}")
        for name in ("reallocation_interval_s", "pause_s", "horizon_s"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise BadValue(f"{name} is {getattr(self, name)}", "a finite number, at least 0")


@dataclass(frozen=True, slots=True)
class Estimates:
    """Measurements and models of a running dataflow."""

    network: Network
    measured_s: float | None
    """Measured mean sojourn (or the percentile that is asked for); none if nothing was measured yet."""

    correction: Correction = field(default_factory=Correction)
    flow: SparkFlow | None = None
    """The same network as it runs in micro-batches: with it they are what is modelled."""

    def sizer(self, settings: DrsSettings) -> Sizer:
        """The model that decides."""
        if self.flow is not None:
            return FlowSizer(self.flow, settings.percentile, settings.processors_max)
        return NetworkSizer(self.network, settings.model, settings.percentile)


@dataclass(frozen=True, slots=True)
class ResizeDecision:
    """What to do, its predicted effect, and the reason in one sentence."""

    change: Resize
    allocation: tuple[int, ...]
    reason: str
    predicted_now_s: float
    predicted_then_s: float
    numbers: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


def decide(
    estimates: Estimates, allocation: tuple[int, ...], settings: DrsSettings, now_s: float, last_change_s: float | None
) -> ResizeDecision:
    r"""Decide about one dataflow, as the scheduler of DRS does about once a minute.

    With :math:`K_{max}` alone: reallocate when the optimal split differs. With :math:`T_{max}`: add processors when the
    measured sojourn exceeds it, remove some when it, or what is predicted, is below :math:`T_{min}`, reallocate when
    the total is right and the split is not. Never within :math:`T_{ra}` of the last change. Predictions are corrected
    by the factor that was learnt for the dataflow.

    A change pauses the dataflow for P seconds. The backlog that builds up, and is worked off with what the new
    allocation has to spare at its bottleneck, costs :math:`\lambda_0 P^2 / (2 (1 - \rho))` tuple-seconds of waiting; a
    change of the split must gain more than that, :math:`\lambda_0 (E[T] - E[T'])` a second, within the horizon.

    >>> from headgate.queueing.network import Operator, Route
    >>> flow = Network((Operator("a", 4.0, arrival_rate_per_s=6), Operator("b", 2.0)), (Route("a", "b"),))
    >>> decided = decide(Estimates(flow, 2.1), (4, 4), DrsSettings(processors_max=8), 100.0, None)
    >>> decided.change.value, decided.allocation
    ('reallocate', (3, 5))

    Reference: DRS (Fu et al. 2017), Sec. IV-B. The paper leaves weighing the cost of a reallocation to future work.
    """
    policy = _Policy(estimates, allocation, settings)
    try:
        wanted = policy.wanted()
    except Infeasible as error:
        return policy.keep(f"no change: {error.message}", Resize.INFEASIBLE)
    if isinstance(wanted, str):
        return policy.keep(wanted)
    change, wanted_allocation, reason = wanted
    since = None if last_change_s is None else now_s - last_change_s
    if since is not None and since < settings.reallocation_interval_s:
        wait = f"the last change was {since:.3g} s ago and {settings.reallocation_interval_s:g} s must lie between two"
        return policy.keep(f"{wait}; otherwise: {reason}")
    return policy.changed(change, wanted_allocation, reason)


class _Policy:
    """The computation of one decision."""

    def __init__(self, estimates: Estimates, allocation: tuple[int, ...], settings: DrsSettings) -> None:
        self.rate_per_s = estimates.network.external_rate_per_s
        self.settings, self.allocation = settings, allocation
        self.measured_s, self.factor = estimates.measured_s, estimates.correction.factor
        self.sizer = estimates.sizer(settings)
        self.now_s = self.latency_s(allocation)
        self.what = "mean latency" if settings.percentile is None else f"p{100 * settings.percentile:g} latency"

    def latency_s(self, allocation: tuple[int, ...]) -> float:
        return self.factor * self.sizer.latency_s(allocation)

    def wanted(self) -> tuple[Resize, tuple[int, ...], str] | str:
        """The change to make, or why there is none."""
        limit, used = self.settings.processors_max, sum(self.allocation)
        if self.settings.latency_max_s is None:
            assert limit is not None
            return self.better_split(limit)
        if self.measured_s is None:
            return f"no {self.what} was measured yet"
        if self.measured_s > self.settings.latency_max_s:
            return self.more(used, limit)
        # What was measured may be of before the rate fell; what is predicted is of the rate now.
        if min(self.measured_s, self.now_s) < self.settings.latency_min_s:
            fewer = self.fewer(used)
            if fewer is not None:
                return fewer
        try:
            return self.better_split(used)
        except Infeasible:  # what is measured is still well, and will not stay so
            return self.more(used, limit)

    def target_s(self) -> float:
        assert self.settings.latency_max_s is not None
        return self.settings.latency_max_s / self.factor

    def more(self, used: int, limit: int | None) -> tuple[Resize, tuple[int, ...], str] | str:
        asked = self.settings.latency_max_s
        message = f"{self.what} is {self.measured_s:.3g} s and may be {asked:g} s"
        if asked is not None and self.measured_s is not None and self.measured_s <= asked:
            message = f"{used} processors cannot keep up with {self.rate_per_s:.3g} tuples/s"
        wanted: int | None = None
        try:
            # The model may find the present number enough while the measurement does not: then one more at a time.
            wanted = max(sum(self.sizer.fewest(self.target_s())), used + 1)
        except Infeasible:
            if limit is None or limit <= used:
                raise
        given = limit if wanted is None else wanted if limit is None else min(wanted, limit)
        assert given is not None
        takes = "more" if wanted is None else str(wanted)
        if given <= used:
            try:
                split = self.better_split(used)
            except Infeasible as error:
                return self.overrun(given, message, error)
            missing = f"{message}: it needs {takes} processors and the limit is {given}"
            return f"{missing}; {split}" if isinstance(split, str) else (*split[:2], f"{missing}; {split[2]}")
        try:
            allocation = self.sizer.assign(given)
        except Infeasible as error:
            return self.overrun(given, message, error)
        short = f", though it needs {takes}" if wanted is None or given < wanted else ""
        then = f"is predicted to give {self.latency_s(allocation):.3g} s"
        return (
            Resize.ADD,
            allocation,
            f"{message}: {used} -> {sum(allocation)} processors ({_split(allocation)}) {then}{short}",
        )

    def overrun(self, given: int, reason: str, error: Infeasible) -> tuple[Resize, tuple[int, ...], str]:
        """The best split of all processors for the largest share of the rate that they can process.

        Raises the given error if that split is already in place.
        """
        low, high, allocation = 0.0, 1.0, self.allocation
        for _ in range(SHARES_TRIED):
            share = (low + high) / 2
            try:
                allocation, low = self.sizer.with_share(share).assign(given), share
            except Infeasible:
                high = share
        if allocation == self.allocation or low == 0.0:
            raise error
        change = Resize.ADD if sum(allocation) > sum(self.allocation) else Resize.REALLOCATE
        split = f"{sum(self.allocation)} -> {sum(allocation)} processors ({_split(allocation)})"
        return change, allocation, f"{reason}: {error.message}; {split} keep up with {low:.0%} of it"

    def fewer(self, used: int) -> tuple[Resize, tuple[int, ...], str] | None:
        try:
            allocation = self.sizer.fewest(self.target_s())
        except Infeasible:
            return None
        if sum(allocation) >= used:
            return None
        message = f"{self.what} is {self.measured_s:.3g} s"
        if self.measured_s is not None and self.measured_s >= self.settings.latency_min_s:
            message = f"{self.what} is predicted to be {self.now_s:.3g} s at {self.rate_per_s:.3g} tuples/s"
        message += f", below {self.settings.latency_min_s:g} s"
        then = f"is predicted to give {self.latency_s(allocation):.3g} s"
        then += f" of the {self.settings.latency_max_s:g} s allowed"
        return (
            Resize.REMOVE,
            allocation,
            f"{message}: {used} -> {sum(allocation)} processors ({_split(allocation)}) {then}",
        )

    def better_split(self, processors: int) -> tuple[Resize, tuple[int, ...], str] | str:
        allocation = self.sizer.assign(processors)
        then_s = self.latency_s(allocation)
        if allocation == self.allocation or then_s >= self.now_s:
            now = _split(self.allocation)
            return f"({now}) is the best split of {processors} processors, predicted {self.now_s:.3g} s"
        change = Resize.REALLOCATE
        if sum(self.allocation) != sum(allocation):
            change = Resize.ADD if sum(allocation) > sum(self.allocation) else Resize.REMOVE
        message = f"({_split(self.allocation)}) -> ({_split(allocation)}) takes the predicted {self.what} "
        message += f"from {self.now_s:.3g} s to {then_s:.3g} s"
        cost, gain = self.cost_s(allocation), self.gain_s(then_s)
        if change is Resize.REALLOCATE and gain <= cost:
            weighed = f"a pause of {self.settings.pause_s:g} s costs {cost:.3g} tuple-seconds and gains {gain:.3g}"
            return f"{message}, which is not worth it: {weighed} in {self.settings.horizon_s:g} s"
        return change, allocation, message

    def cost_s(self, allocation: tuple[int, ...]) -> float:
        """Tuple-seconds that the pause of a change costs."""
        spare = max(1 - self.sizer.busiest(allocation), 1e-9)
        return self.rate_per_s * self.settings.pause_s**2 / (2 * spare)

    def gain_s(self, then_s: float) -> float:
        """Tuple-seconds that a change gains within the horizon."""
        return self.rate_per_s * (self.now_s - then_s) * self.settings.horizon_s

    def keep(self, reason: str, change: Resize = Resize.KEEP) -> ResizeDecision:
        return ResizeDecision(change, self.allocation, reason, self.now_s, self.now_s, self.numbers(self.now_s))

    def changed(self, change: Resize, allocation: tuple[int, ...], reason: str) -> ResizeDecision:
        then_s = self.latency_s(allocation)
        return ResizeDecision(change, allocation, reason, self.now_s, then_s, self.numbers(then_s))

    def numbers(self, then_s: float) -> Mapping[str, float]:
        numbers = {"predicted_now_s": self.now_s, "predicted_then_s": then_s, "correction": self.factor}
        if self.measured_s is not None:
            numbers["measured_s"] = self.measured_s
        return MappingProxyType(numbers)


def _split(allocation: tuple[int, ...]) -> str:
    return ":".join(map(str, allocation))
