"""The policies that a simulation can be asked for, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from headgate.adaptation.policies.baselines import CpuThresholds, Ds2, UtilisationTarget
from headgate.adaptation.policies.exact import Optimal
from headgate.adaptation.policies.genetic import Evolved
from headgate.adaptation.policies.reactive import Core, Reactive
from headgate.adaptation.policies.threshold import Threshold
from headgate.errors import Infeasible, missing_package, unknown
from headgate.model.cluster.deployment import Deployment
from headgate.planning.deployment_for_rates import steady_deployment
from headgate.planning.plan import Plan
from headgate.planning.planners import make_planner
from headgate.planning.problem import Problem
from headgate.service.ahead import CORES, Ahead
from headgate.simulation.policies import Deployed, EachReplication
from headgate.simulation.reshaped import Reshaped
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import VectorPolicy

__all__ = ["LOOKING", "POLICIES", "make_policy", "names", "sized_for"]


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


def _planned(setting: Setting, planner: str) -> Deployment:
    """What a planner deploys for the mean rates; with the first alternates where it has no plan."""
    problem = Problem.of(
        setting.dataflow, setting.cloud, setting.mean_rates(), setting.message_bytes, setting.costs, setting.shares
    )
    plan = make_planner(planner, 10.0).plan(problem)
    if not isinstance(plan, Plan):
        raise Infeasible(plan.condition, f"policy '{planner}' has nothing to begin with: {plan.sentence}")
    return plan.deployment


def _reactive(centralised: bool) -> Callable[[Setting], VectorPolicy]:
    core = Reactive(centralised)
    return lambda setting: Reshaped(core, _planned(setting, core.name))


def _exact(setting: Setting) -> VectorPolicy:
    return Reshaped(Optimal(setting.dataflow), _planned(setting, "exact"))


def _evolved(setting: Setting) -> VectorPolicy:
    return Reshaped(Evolved(setting.dataflow), _planned(setting, "ga"))


def _baseline(core: Core) -> Callable[[Setting], VectorPolicy]:
    return lambda setting: Reshaped(core, sized_for(setting, setting.mean_rates()))


def _looking(name: str) -> Callable[[Setting, Ahead], VectorPolicy]:
    make = CORES[name][0]
    return lambda setting, ahead: Reshaped(partial(make, ahead), _planned(setting, "ce"), name)


POLICIES: Mapping[str, tuple[Callable[[Setting], VectorPolicy], str]] = {
    "static": (_static, "deployed once, for the mean rates"),
    "static-peak": (_static_peak, "deployed once, for a quarter more than the peak rates"),
    "threshold": (_threshold, "cores follow the utilisation of each task"),
    "ce": (_reactive(True), "DYN's centralised heuristic at runtime (Alg. 2)"),
    "sh": (_reactive(False), "DYN's sharded heuristic at runtime"),
    "ga": (_evolved, "DYN's genetic algorithm, evolved anew every half hour"),
    "exact": (_exact, "the optimum after every interval, with what changes cost"),
    "ds2": (_baseline(Ds2()), "DS2: the parallelism that the sources' rates ask for"),
    "flink": (_baseline(UtilisationTarget()), "a utilisation target for each task, as Flink's autoscaler"),
    "cpu": (_baseline(CpuThresholds()), "more of all above 70 % CPU, less below 30 %"),
}
"""Policies that need nothing but a setting, and what they are."""

LOOKING: Mapping[str, tuple[Callable[[Setting, Ahead], VectorPolicy], str]] = {
    name: (_looking(name), about) for name, (_, about) in CORES.items()
}
"""Policies that look ahead, with a forecaster and a horizon."""


def names() -> tuple[str, ...]:
    """All policies."""
    return (*POLICIES, *LOOKING)


def make_policy(name: str, setting: Setting, ahead: Ahead | None = None) -> VectorPolicy:
    """A policy by name, for a setting; ``ahead`` is for those that look ahead."""
    if name not in names():
        raise unknown("UNKNOWN_POLICY", f"unknown policy {name[:60]!r}", name, names())
    try:
        if name in LOOKING:
            return LOOKING[name][0](setting, ahead or Ahead())
        return POLICIES[name][0](setting)
    except ModuleNotFoundError as error:
        raise missing_package("NO_PLANNING", f"policy '{name}'", error, "planning") from None
