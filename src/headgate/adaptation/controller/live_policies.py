"""The policies that decide for a running engine, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from headgate.adaptation.look_ahead import PolicySettings
from headgate.adaptation.policies.pooled_target import PooledTarget
from headgate.adaptation.policy import Policy
from headgate.adaptation.pooled.catalogue import POOLED, pooled_policy
from headgate.errors import unknown

__all__ = ["DEFAULT_POLICY", "FALLBACK_POLICY", "LIVE_POLICIES", "live_policy"]

LIVE_POLICIES: Mapping[str, Callable[[PolicySettings], Policy]] = {
    **{name: partial(pooled_policy, name) for name in POOLED},
    "threshold": lambda settings: PooledTarget(catch_up_s=settings.catch_up_s),
}
DEFAULT_POLICY = "threshold"
CATCH_UP_S = 120.0
"""In which time engines work off what waits, unless their settings say otherwise."""

FALLBACK_POLICY = "ce"
"""What decides in place of a policy that predicts badly."""


def live_policy(name: str, settings: Mapping[str, Any] | None = None) -> Policy:
    """A policy by its name, with settings of :class:`PolicySettings`; raises :class:`InputError` with the nearest one.

    >>> live_policy("drs", {"reallocation_interval_s": 5.0}).name
    'drs'
    """
    if name not in LIVE_POLICIES:
        raise unknown("UNKNOWN_POLICY", f"no policy '{name[:60]}' decides for engines", name, LIVE_POLICIES)
    return LIVE_POLICIES[name](PolicySettings(**{"catch_up_s": CATCH_UP_S, **(settings or {})}))
