"""Policies on shared pools by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headgate.adaptation.catalogue import POLICIES, policy_named
from headgate.adaptation.look_ahead import PolicySettings
from headgate.adaptation.policy import Policy
from headgate.adaptation.pooled.averages import PooledAverage
from headgate.adaptation.pooled.deciding import PooledPolicy, PooledRule
from headgate.adaptation.pooled.drs import PooledDrs
from headgate.adaptation.pooled.fixed_size import FixedSize
from headgate.adaptation.pooled.heuristics import PooledHeuristic
from headgate.adaptation.pooled.look_ahead import PooledLookAhead
from headgate.adaptation.pooled.optimum import PooledOptimum
from headgate.adaptation.pooled.receding import PooledReceding
from headgate.adaptation.pooled.utilisation import PooledDs2, PoolThresholds, PoolUtilisation
from headgate.errors import InputError

__all__ = ["POOLED", "pooled_policy"]


def _heuristic(settings: PolicySettings, centralised: bool = True) -> PooledHeuristic:
    return PooledHeuristic(centralised, settings.alternates_every, settings.resources_every)


def _average(model: str) -> Callable[[PolicySettings], PooledRule]:
    return lambda settings: PooledAverage(model, settings, _heuristic(settings))


POOLED: Mapping[str, Callable[[PolicySettings], PooledRule]] = {
    "static": lambda settings: FixedSize(settings.usual),
    "static-peak": lambda settings: FixedSize(settings.peak, 1.25),
    "threshold": lambda _: PoolUtilisation(0.7, 0.5, 0.85),
    "ce": lambda settings: _heuristic(settings),
    "sh": lambda settings: _heuristic(settings, centralised=False),
    "exact": lambda _: PooledOptimum(),
    "ds2": lambda _: PooledDs2(),
    "flink": lambda _: PoolUtilisation(),
    "cpu": lambda _: PoolThresholds(),
    "drs": lambda settings: PooledDrs(settings.smoothing, settings.reallocation_interval_s),
    "lookahead": PooledLookAhead,
    "receding": lambda settings: PooledReceding(settings, _heuristic(settings)),
    "caf": _average("caf"),
    "waaf": _average("waaf"),
    "wpa": _average("wpa"),
    "wpo": _average("wpo"),
    "wpp": _average("wpp"),
}
"""The rule of each policy, made from settings."""


def pooled_policy(name: str, settings: PolicySettings | None = None) -> Policy:
    """A policy for platforms on which tasks share cores; raises :class:`InputError` for one that needs its own.

    >>> pooled_policy("exact").name
    'exact'
    """
    chosen = settings or PolicySettings()
    if name in POOLED:
        return PooledPolicy(name, POOLED[name](chosen), chosen.catch_up_s)
    entry = policy_named(name)
    if entry.pooled is None:
        can = ", ".join(POOLED)
        kind = "" if name in POLICIES else " of an installed package"
        raise InputError("EXCLUSIVE", f"policy '{name}'{kind} hands out cores that tasks own; on shared cores: {can}")
    return entry.pooled(chosen)
