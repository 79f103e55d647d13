"""What each operator of a dataflow has to do at given rates: the rates of all streams, from selectivities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from headgate.errors import BadValue, InputError, unknown
from headgate.model.arrays import Floats, Ints
from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph, topological_order
from headgate.planning.placing.profiles import OperatorProfile

__all__ = ["OperatorLoads"]


@dataclass(frozen=True, slots=True, eq=False)
class OperatorLoads:
    """Operators in topological order, with rows per second into each and along each stream between two of them."""

    profiles: tuple[OperatorProfile, ...]
    source: Ints
    target: Ints
    stream_per_s: Floats
    """S_k and S'_k of the paper: rows per second of each stream."""

    outside_per_s: Floats
    """Rows per second from outside, by operator."""

    in_per_s: Floats
    """The sum of S_k: rows per second into each operator."""

    out_per_s: Floats
    """The sum of S'_k."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.task for each in self.profiles)

    @property
    def inside_per_s(self) -> Floats:
        """Rows per second into each operator from others; what comes from outside is not sent by any."""
        return self.in_per_s - self.outside_per_s

    def values(self, name: str) -> Floats:
        """A figure of all profiles, by operator."""
        return np.array([getattr(each, name).value for each in self.profiles])

    def longest_path(self, seconds: Floats, hop_s: float = 0.0) -> tuple[float, list[int]]:
        """The path from a source to a sink on which rows spend most, with the seconds of each operator."""
        total = seconds.copy()
        before = np.full(len(seconds), -1, dtype=np.int64)
        for source, target in zip(self.source, self.target, strict=True):  # sources come in topological order
            through = total[source] + hop_s + seconds[target]
            if through > total[target] or before[target] < 0:
                total[target], before[target] = through, source
        end = int(np.argmax(total))
        path = [end]
        while before[path[0]] >= 0:
            path.insert(0, int(before[path[0]]))
        return float(total[end]), path

    @classmethod
    def of(
        cls,
        streams: Sequence[tuple[str, str]],
        profiles: Mapping[str, OperatorProfile],
        rates: Mapping[str, float],
    ) -> OperatorLoads:
        """From streams between operators and rates of the sources, each of which needs one.

        >>> from headgate.model.cluster.alternate_cost import Origin
        >>> from headgate.planning.known_figures import Figure
        >>> c = Figure(0.001, Origin.GIVEN)
        >>> two = {"a": OperatorProfile("a", "a", c, c, selectivity={"b": c}), "b": OperatorProfile("b", "b", c, c)}
        >>> OperatorLoads.of([("a", "b")], two, {"a": 500.0}).in_per_s.tolist()
        [500.0, 0.5]
        """
        parents: dict[str, list[str]] = {name: [] for name in profiles}
        for source, target in dict.fromkeys(streams):
            parents[target].append(source)
        order = topological_order(parents)
        _check_rates([name for name in order if not parents[name]], rates)
        index = {name: place for place, name in enumerate(order)}
        edges = sorted((index[source], index[target]) for target in order for source in parents[target])
        outside = np.array([float(rates.get(name, 0.0)) for name in order])
        rows, carried = outside.copy(), []
        for a, b in edges:
            carried.append(rows[a] * profiles[order[a]].selectivity_to(order[b]))
            rows[b] += carried[-1]
        ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
        stream, out = np.array(carried, dtype=np.float64), np.zeros(len(order))
        np.add.at(out, ends[:, 0], stream)
        return cls(tuple(profiles[name] for name in order), ends[:, 0], ends[:, 1], stream, outside, rows, out)

    @classmethod
    def of_dataflow(
        cls, dataflow: Dataflow, profiles: Mapping[str, OperatorProfile], rates: Mapping[str, float]
    ) -> OperatorLoads:
        """From a dataflow; raises :class:`InputError` where it has a loop."""
        if any(stream.feedback for stream in dataflow.streams):
            message = f"dataflow '{dataflow.name}' has a loop, which cannot be deployed to a target"
            raise InputError("LOOP", f"{message}; size its processors with 'headgate size'")
        order = [str(name) for name in Graph(dataflow).order()]
        streams = [(str(each.source), str(each.target)) for each in dataflow.streams]
        return cls.of(streams, {name: profiles[name] for name in order}, rates)


def _check_rates(sources: Sequence[str], rates: Mapping[str, float]) -> None:
    for name, rate in rates.items():
        if name not in sources:
            raise unknown("UNKNOWN_SOURCE", f"a rate is given for '{name[:60]}', which is no source", name, sources)
        if not (isfinite(rate) and rate >= 0):
            raise BadValue(f"the rate of '{name}' is {rate:g}", "rows per second, not below 0")
    missing = [name for name in sources if name not in rates]
    if missing:
        raise InputError("NO_RATE", f"no rate is given for source '{missing[0]}'; give one such as {missing[0]}=6000")
    if not any(rates.values()):
        raise InputError("NO_RATE", "all rates are 0; a deployment needs a source with rows")
