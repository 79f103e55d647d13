"""Operators that an engine runs fused: one function over the same partitions, with no stream between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate.model.graph import topological_order
from headgate.planning.known_figures import Figure
from headgate.planning.placing.profiles import OperatorProfile

__all__ = ["FusedOperators", "fused_operators"]


@dataclass(frozen=True, slots=True)
class FusedOperators:
    """Groups of operators, each as one operator with the name of its root."""

    profiles: Mapping[str, OperatorProfile]
    streams: tuple[tuple[str, str], ...]
    """Between groups."""

    members: Mapping[str, tuple[str, ...]]


def fused_operators(
    streams: Sequence[tuple[str, str]],
    profiles: Mapping[str, OperatorProfile],
    groups: Mapping[str, Sequence[str]],
    core_power: float = 1.0,
) -> FusedOperators:
    r"""The profile of each group: what a row into its root costs in all of its members.

    With :math:`r_k` rows into member :math:`k` for each row into the root,

    .. math:: c_p = \sum_k r_k \left(c_{p,k} + w_k \cdot power\right)

    A core runs one instance at a time, also while a row waits for :math:`w_k` seconds, so waiting counts as CPU of a
    core of that power. Between members nothing is sent; a stream to another group's root is one of the group's.
    An operator that several groups run is in each of them, for the group's own rows.
    """
    parents: dict[str, list[str]] = {name: [] for name in profiles}
    for source, target in dict.fromkeys(streams):
        parents[target].append(source)
    order = topological_order(parents)
    fused, between = {}, []
    for root, listed in groups.items():
        members = [name for name in order if name in set(listed)]
        rows = {root: 1.0}
        for name in members:
            inside = [source for source in parents[name] if source in rows]
            if name != root:
                fed = (rows[source] * profiles[source].selectivity_to(name) for source in inside)
                rows[name] = sum(fed) if inside else 1.0
        out: dict[str, float] = {}
        for source, target in dict.fromkeys(streams):
            if source in rows and target in groups and target not in rows:
                out[target] = out.get(target, 0.0) + rows[source] * profiles[source].selectivity_to(target)
        fused[root] = _fused(profiles[root], [(profiles[name], rows[name]) for name in members], out, core_power)
        between += [(root, target) for target in out]
    return FusedOperators(fused, tuple(between), {root: tuple(each) for root, each in groups.items()})


def _fused(
    root: OperatorProfile, members: Sequence[tuple[OperatorProfile, float]], out: Mapping[str, float], power: float
) -> OperatorProfile:
    def held(one: OperatorProfile) -> float:
        return one.cpu_s.value + max(one.sojourn_s.value - one.cpu_s.value, 0.0) * power

    most = max(members, key=lambda each: held(each[0]) * each[1])[0]
    cost = Figure(sum(held(one) * rows for one, rows in members), most.cpu_s.origin)
    memory = Figure(sum(one.memory_bytes.value * rows for one, rows in members), most.memory_bytes.origin)
    bounds = [one.instances_max for one, _ in members if one.instances_max is not None]
    return OperatorProfile(
        root.task,
        root.alternate,
        cost,
        cost,
        root.transfer_s,
        memory,
        max((one.instance_bytes for one, _ in members), key=lambda each: each.value),
        root.row_bytes,
        max((one.batch_s for one, _ in members), key=lambda each: each.value),
        {target: Figure(rows, root.cpu_s.origin) for target, rows in out.items()},
        min(bounds, default=None),
    )
