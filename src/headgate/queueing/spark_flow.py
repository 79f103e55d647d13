"""A network of operators as Headgate runs it on Spark, with processors for each operator.

All operators that rows from outside reach are stages of one fragment. A feedback stream is a fragment of its own: rows
that come back run through the operator that they come back to, and all behind it, again, in batches of their own, on as
many partitions each. So processors are given to operators, and an operator may be a stage of several fragments.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

import numpy as np
import numpy.typing as npt

from headgate.errors import BadValue, Infeasible
from headgate.queueing.microbatch import batch_percentile, passes_variance, slowest_s
from headgate.queueing.network import Network

__all__ = ["BatchCosts", "FlowFragment", "FlowPrediction", "SparkFlow", "batch_s", "predict_flow", "stages_s"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DURATION_SCV = 0.02
"""How much the time of a batch varies about its mean."""

GENERATIONS = 60
"""Rounds of a loop that are looked at; later ones have next to no rows."""


@dataclass(frozen=True, slots=True)
class BatchCosts:
    """The overhead of micro-batches (s); fitted, see
    :func:`headgate.queueing.fitting.batch_costs.fit_costs`."""

    fixed_s: float
    """A batch: offsets, plan, reading, commit."""

    stage_s: float = 0.0
    """Every stage: its barrier."""

    task_s: float = 0.0
    """Every partition of a stage."""

    hop_s: float = 0.0
    """From a fragment's commit until the reader of its topic begins."""

    def __post_init__(self) -> None:
        for name in ("fixed_s", "stage_s", "task_s", "hop_s"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise BadValue(f"{name} is {getattr(self, name)}", "a finite number, at least 0")


@dataclass(frozen=True, slots=True)
class FlowFragment:
    """A fragment: the operators that its rows pass, in order."""

    name: str
    entering: float
    """Rows that enter it for each row from outside."""

    again: float
    """Of those, the share that it has sent to itself."""

    stages: tuple[tuple[int, float], ...]
    """Operators by their place in the network, and tuples at each for a row that enters."""

    is_fed: bool
    """Whether it reads a topic, and so begins a batch when another has ended, rather than by the trigger."""


@dataclass(frozen=True)
class SparkFlow:
    """A network, its routes through the exchange, and the overhead of batches."""

    network: Network
    costs: BatchCosts
    trigger_s: float = 0.0
    feedback: tuple[tuple[str, str], ...] = ()
    """Source and target of the routes that close loops."""

    @classmethod
    def of(cls, network: Network, costs: BatchCosts, trigger_s: float = 0.0) -> SparkFlow:
        """With a feedback stream for every route that closes a circle, seen from where tuples come in.

        >>> from headgate.queueing.network import Operator, Route
        >>> there_and_back = (Route("a", "b"), Route("b", "a", 0.2))
        >>> loop = Network((Operator("b", 5.0), Operator("a", 10.0, 0.5, 8.0)), there_and_back)
        >>> SparkFlow.of(loop, BatchCosts(0.5)).feedback
        (('b', 'a'),)
        """
        after: dict[str, list[str]] = {name: [] for name in network.names}
        for route in network.routes:
            after[route.source].append(route.target)
        closing: list[tuple[str, str]] = []
        done: set[str] = set()
        for first in sorted(network.operators, key=lambda each: each.arrival_rate_per_s <= 0):
            path = {first.name: iter(after[first.name])} if first.name not in done else {}
            while path:
                name = next(reversed(path))
                target = next(path[name], None)
                if target is None:
                    done.add(name)
                    del path[name]
                elif target in path:
                    closing.append((name, target))
                elif target not in done:
                    path[target] = iter(after[target])
        return cls(network, costs, trigger_s, tuple(closing))

    @property
    def rate_per_s(self) -> float:
        return self.network.external_rate_per_s

    @cached_property
    def fragments(self) -> tuple[FlowFragment, ...]:
        """The source's fragment and one for each feedback stream."""
        network, names = self.network, self.network.names
        order = _order(network, self.feedback)
        outside = np.array([operator.arrival_rate_per_s for operator in network.operators])
        if outside.sum() <= 0:
            raise BadValue("no tuples come from outside", "an arrival rate above 0")
        entries = [outside / outside.sum()]
        for _, target in self.feedback:
            entries.append(np.array([float(name == target) for name in names]))
        ahead = {(r.source, r.target): r.mean for r in network.routes if (r.source, r.target) not in self.feedback}
        back = {(r.source, r.target): r.mean for r in network.routes if (r.source, r.target) in self.feedback}
        visits = []
        for entry in entries:
            seen = entry.copy()
            for place in order:
                for (source, target), mean in ahead.items():
                    if source == names[place]:
                        seen[network.index[target]] += seen[place] * mean
            visits.append(seen)
        # Rows that one fragment sends to another's topic, for each row that enters it.
        sent = np.zeros((len(entries), len(entries)))
        for to, edge in enumerate(self.feedback, start=1):
            for place, seen in enumerate(visits):
                sent[to, place] = seen[network.index[edge[0]]] * back.get(edge, 0.0)
        if max(abs(np.linalg.eigvals(sent))) >= 1:
            raise Infeasible("UNSTABLE_LOOP", "more tuples come back than went out: the loop never empties")
        into = np.linalg.solve(np.eye(len(entries)) - sent, np.eye(len(entries))[:, 0])
        return tuple(
            FlowFragment(
                "source" if place == 0 else "feedback " + " -> ".join(self.feedback[place - 1]),
                float(into[place]),
                float(sent[place, place]),
                tuple((at, float(seen[at])) for at in order if seen[at] > 0),
                place > 0,
            )
            for place, seen in enumerate(visits)
            if into[place] > 0
        )


def _order(network: Network, feedback: Collection[tuple[str, str]]) -> list[int]:
    """Operators, each after those that feed it; feedback does not count."""
    left = dict.fromkeys(network.names)
    ahead = [(r.source, r.target) for r in network.routes if (r.source, r.target) not in feedback]
    order = []
    while left:
        free = [name for name in left if not any(target == name and source in left for source, target in ahead)]
        if not free:
            raise BadValue(f"operators {', '.join(left)} form a circle", "a feedback stream in every circle")
        order.append(network.index[free[0]])
        del left[free[0]]
    return order


@dataclass(frozen=True, slots=True)
class FlowPrediction:
    """Predictions for some allocations, each a row of the arrays; times in seconds."""

    allocations: Ints
    mean_s: Floats
    variance_s2: Floats
    intervals_s: Floats
    """From a batch of the source to the next."""

    busy: Floats
    """The share of the capacity of the busiest fragment that is used; from 1 on batches grow for ever."""

    waits: int

    def percentile_s(self, p: float) -> Floats:
        return batch_percentile(self.mean_s, self.variance_s2, self.waits, p)

    def latency_s(self, percentile: float | None) -> Floats:
        return self.mean_s if percentile is None else self.percentile_s(percentile)


def predict_flow(flow: SparkFlow, allocations: npt.ArrayLike) -> FlowPrediction:
    r"""Predict the sojourn of rows from outside for one allocation or many.

    In the source's fragment a row waits for half an interval and takes the time of a batch,
    :math:`T/2 + d(T), T = \max(\text{trigger}, d(T))`.

    Rows that are sent back come to their fragment all at once, when a batch of the source is committed: :math:`n_1` of
    them, of which :math:`n_1 q^g` are there in the g-th round, in a batch of its own that begins when the last one has
    ended. There is such a batch with probability :math:`1 - e^{-n_1 q^g}`; if together they take less than T, the
    fragment is free when the next rows come but for that share of the time, u, and these wait :math:`u d/2`. Otherwise
    the rounds run together, batches follow each other at :math:`T_f = d(T_f)` and rows from outside the loop wait
    :math:`T_f/2`.

    >>> from headgate.queueing.network import Operator, Route
    >>> chain = Network((Operator("a", 10.0, 0.5, 8.0), Operator("b", 5.0, 0.5)), (Route("a", "b"),))
    >>> found = predict_flow(SparkFlow(chain, BatchCosts(0.5, 0.05, 0.005)), [[4, 6], [6, 8]])
    >>> found.mean_s.round(2).tolist()
    [3.61, 2.89]
    """
    many = np.atleast_2d(np.asarray(allocations, dtype=np.int64))
    if many.shape[1] != len(flow.network.operators):
        raise BadValue(f"{many.shape[1]} numbers of processors", f"one for each of {len(flow.network.operators)}")
    if many.size and many.min() < 1:
        raise BadValue("an operator without processors", "at least 1 for each")
    mean, variance = np.zeros(len(many)), np.zeros(len(many))
    busiest, interval = np.zeros(len(many)), np.zeros(len(many))
    for fragment in flow.fragments:
        rate = flow.rate_per_s * fragment.entering
        work = sum(seen / flow.network.operators[at].service_rate_per_s / many[:, at] for at, seen in fragment.stages)
        busy = np.asarray(rate * work)
        busiest = np.maximum(busiest, busy)
        if not fragment.is_fed:
            interval, took = _by_trigger(flow, fragment, many, rate, busy)
            waited = interval / 2
        else:
            waited, took = _fed(flow, fragment, many, rate, busy, interval)
        once = waited + took + (flow.costs.hop_s if fragment.is_fed else 0.0)
        mean += fragment.entering * once
        variance += fragment.entering * (waited**2 / 3 + DURATION_SCV * took**2)
        if fragment.entering != 1:
            variance += passes_variance(fragment.entering) * once**2
    waits = max(1, round(sum(fragment.entering for fragment in flow.fragments)))
    return FlowPrediction(many, mean, variance, interval, busiest, waits)


def batch_s(flow: SparkFlow, fragment: FlowFragment, many: Ints, rows: Floats) -> Floats:
    """How long a batch of so many rows takes."""
    return np.asarray(flow.costs.fixed_s + stages_s(flow, fragment, many, rows).sum(axis=0))


def stages_s(flow: SparkFlow, fragment: FlowFragment, many: Ints, rows: Floats) -> Floats:
    """How long each stage of such a batch takes, stages × allocations: its start, and its slowest partition."""
    # Rows come from a source in one partition, from a topic in as many as the last stage of the batch before had.
    dealers = np.maximum(rows, 1.0) if fragment.is_fed else np.ones(len(many))
    times = np.empty((len(fragment.stages), len(many)))
    for time, (place, seen) in zip(times, fragment.stages, strict=True):
        operator, k = flow.network.operators[place], many[:, place]
        time[:] = slowest_s(1 / operator.service_rate_per_s, operator.service_scv, k, rows * seen, dealers)
        time += flow.costs.stage_s + flow.costs.task_s * k
        dealers = np.maximum(np.minimum(k, rows * seen), 1.0)
    return times


def _settled(flow: SparkFlow, fragment: FlowFragment, many: Ints, rate: float, busy: Floats) -> Floats:
    """The interval T with d(T) = T, by bisection; infinite where there is none."""
    low, high = np.full(len(many), 1e-3), np.full(len(many), 1e6)
    for _ in range(40):
        middle = np.sqrt(low * high)
        late = batch_s(flow, fragment, many, rate * middle) > middle
        low, high = np.where(late, middle, low), np.where(late, high, middle)
    return np.where(busy < 1, high, np.inf)


def _by_trigger(
    flow: SparkFlow, fragment: FlowFragment, many: Ints, rate: float, busy: Floats
) -> tuple[Floats, Floats]:
    settled = _settled(flow, fragment, many, rate, busy)
    interval = np.maximum(settled, flow.trigger_s)
    rows = rate * np.where(np.isfinite(interval), interval, 0.0)
    return interval, np.where(np.isfinite(interval), batch_s(flow, fragment, many, rows), np.inf)


def _fed(
    flow: SparkFlow, fragment: FlowFragment, many: Ints, rate: float, busy: Floats, interval: Floats
) -> tuple[Floats, Floats]:
    """How long rows wait for a batch of a fragment that is fed every ``interval``, and how long the batch takes."""
    share = fragment.again
    every = np.where(np.isfinite(interval), interval, 1.0)
    entering = rate * (1 - share) * every
    at_work, by_row, rows = np.zeros(len(many)), np.zeros(len(many)), np.zeros(len(many))
    for generation in range(GENERATIONS):
        if share**generation < 1e-6:
            break
        size = entering * share**generation
        chance = -np.expm1(-size)
        at_work += chance * batch_s(flow, fragment, many, size / np.maximum(chance, 1e-12))
        # A row sees its own batch, which is larger than the mean one by the row itself.
        by_row += size * batch_s(flow, fragment, many, size + 1)
        rows += size
    apart = by_row / rows
    used = at_work / every
    together = _settled(flow, fragment, many, rate, busy)
    waited = np.where(used < 1, used * apart / 2, together / 2) * (1 - share)
    took = np.where(used < 1, apart, np.maximum(together, apart))
    lost = ~np.isfinite(interval)
    return np.where(lost, np.inf, waited), np.where(lost, np.inf, took)
