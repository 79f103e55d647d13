"""What a policy needs of a model: the latency of an allocation, the best allocation, the smallest one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from headgate.queueing.batch_sizing import assign_flow, min_flow
from headgate.queueing.network import Network
from headgate.queueing.predict import NetworkPrediction, predict
from headgate.queueing.sizing import assign_processors, min_processors
from headgate.queueing.spark_flow import SparkFlow, predict_flow
from headgate.queueing.station import StationModel

__all__ = ["FlowSizer", "NetworkSizer", "Sizer"]

MOST_ON_SPARK = 64
"""Processors up to which the fewest are looked for where no limit is given: tasks of one Spark batch."""


class Sizer(Protocol):
    """A model of a dataflow; latencies are means, or the requested percentile."""

    def latency_s(self, allocation: tuple[int, ...]) -> float:
        """What an allocation is predicted to give; infinite if it cannot keep up."""

    def busiest(self, allocation: tuple[int, ...]) -> float:
        """The utilisation of the bottleneck."""

    def assign(self, processors: int) -> tuple[int, ...]:
        """The best split of at most so many processors."""

    def fewest(self, latency_s: float) -> tuple[int, ...]:
        """The fewest processors for a latency."""

    def with_share(self, share: float) -> Sizer:
        """The same, with only a share of what comes from outside."""


@dataclass(frozen=True, slots=True)
class NetworkSizer:
    """Tuples served one by one: M/M/k and GI/G/k."""

    network: Network
    model: StationModel
    percentile: float | None = None

    def _predict(self, allocation: tuple[int, ...]) -> NetworkPrediction:
        return predict(self.network, allocation, self.model)

    def latency_s(self, allocation: tuple[int, ...]) -> float:
        prediction = self._predict(allocation)
        return prediction.mean_s if self.percentile is None else prediction.percentile_s(self.percentile)

    def busiest(self, allocation: tuple[int, ...]) -> float:
        return max(operator.utilisation for operator in self._predict(allocation).operators)

    def assign(self, processors: int) -> tuple[int, ...]:
        return assign_processors(self.network, processors, self.model, self.percentile).allocation

    def fewest(self, latency_s: float) -> tuple[int, ...]:
        return min_processors(self.network, latency_s, self.model, self.percentile).allocation

    def with_share(self, share: float) -> Sizer:
        return replace(self, network=self.network.with_share(share))


@dataclass(frozen=True, slots=True)
class FlowSizer:
    """Micro-batches, as Spark runs them."""

    flow: SparkFlow
    percentile: float | None = None
    most: int | None = None

    def latency_s(self, allocation: tuple[int, ...]) -> float:
        return float(predict_flow(self.flow, allocation).latency_s(self.percentile)[0])

    def busiest(self, allocation: tuple[int, ...]) -> float:
        return float(predict_flow(self.flow, allocation).busy[0])

    def assign(self, processors: int) -> tuple[int, ...]:
        return assign_flow(self.flow, processors, self.percentile)

    def fewest(self, latency_s: float) -> tuple[int, ...]:
        return min_flow(self.flow, latency_s, self.percentile, self.most or MOST_ON_SPARK)

    def with_share(self, share: float) -> Sizer:
        return replace(self, flow=replace(self.flow, network=self.flow.network.with_share(share)))
