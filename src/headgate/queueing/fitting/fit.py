"""A network from the windows in which it was observed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from headgate.errors import HeadgateError
from headgate.queueing.fitting.estimate import SampleEstimate, count_rate, mean_of, ratio_of, scv_of, without_outliers
from headgate.queueing.fitting.observation import ObservationWindow, OperatorWindow
from headgate.queueing.fitting.smoothing import AlphaWeighted, Smoothing
from headgate.queueing.network import Network, Operator, Route

__all__ = ["FittedNetwork", "FittedOperator", "NotMeasured", "fit_network"]


class NotMeasured(HeadgateError):
    """Not enough was measured yet; try again after the next window."""


@dataclass(frozen=True, slots=True)
class FittedOperator:
    """What was estimated of one operator."""

    name: str
    external_rate_per_s: SampleEstimate
    arrival_scv: SampleEstimate
    bulk_mean: SampleEstimate
    service_s: SampleEstimate
    service_scv: SampleEstimate
    routes: tuple[tuple[str, SampleEstimate], ...]
    outliers: int
    """Service times that were left out as absurd."""


@dataclass(frozen=True, slots=True)
class FittedNetwork:
    """A network as it was measured, with the estimates behind it and the sojourns that were seen."""

    network: Network
    operators: tuple[FittedOperator, ...]
    sojourn_s: SampleEstimate | None

    @property
    def spread(self) -> float:
        """The least certain of the numbers that count: rates and mean service times."""
        parts = [part for each in self.operators for part in (each.external_rate_per_s, each.service_s)]
        return max((part.spread for part in parts if part.value > 0), default=inf)


def fit_network(
    windows: Sequence[ObservationWindow],
    smoothing: Smoothing | None = None,
    limits: Mapping[str, Operator] | None = None,
) -> FittedNetwork:
    """Estimate rates, service times and routes from windows, oldest first.

    Counts are weighted window by window (``smoothing``, alpha-weighted by default), and so are samples of times, once
    outliers are out. Processors' limits and prices are taken from ``limits`` by name. Raises :class:`NotMeasured` where
    an operator has served tuples and no service time was sampled.

    >>> busy = OperatorWindow("read", 200, external=200, service_s=(0.01, 0.03) * 20, sent=(("keep", 100),))
    >>> kept = OperatorWindow("keep", 100, service_s=(0.02,) * 20)
    >>> fitted = fit_network([ObservationWindow(10.0, (busy, kept))])
    >>> [(o.name, o.arrival_rate_per_s, round(o.service_rate_per_s)) for o in fitted.network.operators]
    [('read', 20.0, 50), ('keep', 0.0, 50)]
    >>> fitted.network.routes[0].mean
    0.5
    """
    if not windows:
        raise NotMeasured("NOT_MEASURED", "no window has been measured yet")
    weights = (smoothing or AlphaWeighted()).weights(len(windows))
    names = list(dict.fromkeys(operator.name for window in windows for operator in window.operators))
    fitted, operators, routes = [], [], []
    for name in names:
        parts = [
            (weight, window.seconds, operator)
            for weight, window in zip(weights, windows, strict=True)
            for operator in window.operators
            if operator.name == name and weight > 0
        ]
        each = _fit_operator(name, parts)
        fitted.append(each)
        limit = (limits or {}).get(name)
        described = Operator(
            name,
            1 / each.service_s.value,
            each.service_scv.value,
            each.external_rate_per_s.value,
            each.arrival_scv.value,
            max(each.bulk_mean.value, 1.0),
        )
        if limit is not None:
            described = replace(
                described,
                processors_min=limit.processors_min,
                processors_max=limit.processors_max,
                price=limit.price,
                speeds=limit.speeds,
            )
        operators.append(described)
        routes += [Route(name, target, ratio.value) for target, ratio in each.routes if target in names]
    sojourns = without_outliers(
        _resampled([(w, window.sojourns_s) for w, window in zip(weights, windows, strict=True)])
    )
    measured = mean_of(sojourns) if sojourns else None
    return FittedNetwork(Network(tuple(operators), tuple(routes)), tuple(fitted), measured)


def _fit_operator(name: str, parts: Sequence[tuple[float, float, OperatorWindow]]) -> FittedOperator:
    times = _resampled([(weight, operator.service_s) for weight, _, operator in parts])
    served = sum(operator.served for _, _, operator in parts)
    if not times:
        message = (
            f"'{name}' served {served} tuples and no service time was sampled" if served else f"'{name}' served nothing"
        )
        raise NotMeasured("NOT_MEASURED", f"{message}; wait for the next window", {"operator": name})
    kept = without_outliers(times)
    gaps = without_outliers(_resampled([(weight, operator.interarrival_s) for weight, _, operator in parts]))
    bulks = _resampled([(weight, tuple(map(float, operator.bulk_sizes))) for weight, _, operator in parts])
    arrival_scv = scv_of(gaps) if len(gaps) >= 2 else SampleEstimate(1.0, 0.0, inf, 0)
    total = sum(weight for weight, _, _ in parts)
    scale = len(parts) / total if total > 0 else 0.0  # weights as if each window counted once
    seconds = sum(weight * length for weight, length, _ in parts) * scale
    external = sum(weight * operator.external for weight, _, operator in parts) * scale
    handled = sum(weight * operator.served for weight, _, operator in parts) * scale
    targets = dict.fromkeys(target for _, _, operator in parts for target, _ in operator.sent)
    routes = []
    for target in targets:
        sent = sum(weight * dict(operator.sent).get(target, 0) for weight, _, operator in parts) * scale
        routes.append((target, ratio_of(sent, handled)))
    return FittedOperator(
        name,
        count_rate(external, seconds, arrival_scv.value) if external else SampleEstimate(0.0, 0.0, 0.0, 0),
        arrival_scv,
        mean_of(bulks) if bulks else SampleEstimate(1.0, 1.0, 1.0, 0),
        mean_of(kept),
        scv_of(kept),
        tuple(routes),
        len(times) - len(kept),
    )


def _resampled(parts: Sequence[tuple[float, Sequence[float]]]) -> list[float]:
    """Samples of several windows as one, each window in proportion to its weight.

    A window keeps the share of its sample that its weight is of the largest one, evenly spread over it.
    """
    heaviest = max((weight for weight, values in parts if values), default=0.0)
    samples: list[float] = []
    for weight, values in parts:
        keep = round(len(values) * weight / heaviest) if heaviest > 0 else 0
        samples += [values[place * len(values) // keep] for place in range(keep)]
    return samples
