"""The policies that a simulation can be asked for, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headgate.adaptation.threshold import Threshold
from headgate.errors import InputError, nearest
from headgate.model.deployment import Deployment
from headgate.planning.steady import steady_deployment
from headgate.simulation.dataflow.policies import Deployed, EachReplication
from headgate.simulation.dataflow.setting import Setting
from headgate.simulation.dataflow.simulator import VectorPolicy

__all__ = ["POLICIES", "make_policy", "sized_for"]


def sized_for(setting: Setting, rates: Mapping[str, float], headroom: float = 1.0) -> Deployment:
    """A deployment of the first alternates that keeps up with given rates on machines that perform as rated."""
    shape = setting.shape()
    load = shape.rates(rates) * shape.cost_s[:, 0]
    demand = {str(name): float(work) for name, work in zip(shape.names, load, strict=True)}
    return steady_deployment(setting.dataflow, setting.cloud, demand, headroom)


def _static(setting: Setting) -> VectorPolicy:
    return Deployed(sized_for(setting, setting.mean_rates()), "static")


def _static_peak(setting: Setting) -> VectorPolicy:
    return Deployed(sized_for(setting, setting.peak_rates(), 1.25), "static-peak")


def _threshold(setting: Setting) -> VectorPolicy:
    deployment = sized_for(setting, setting.mean_rates())
    return EachReplication(
        lambda: Threshold(setting.cloud, deployment, period_s=setting.interval_s), every=1, name="threshold"
    )


POLICIES: Mapping[str, tuple[Callable[[Setting], VectorPolicy], str]] = {
    "static": (_static, "deployed once, for the mean rates"),
    "static-peak": (_static_peak, "deployed once, for a quarter more than the peak rates"),
    "threshold": (_threshold, "cores follow the utilisation of each task"),
}


def make_policy(name: str, setting: Setting) -> VectorPolicy:
    """A policy by name, for a setting."""
    if name not in POLICIES:
        near = nearest(name, POLICIES)
        hint = f"did you mean '{near}'?" if near else f"there is {', '.join(POLICIES)}"
        raise InputError("UNKNOWN_POLICY", f"unknown policy {name[:60]!r}; {hint}")
    return POLICIES[name][0](setting)
