"""The same world and policy in the pooled simulator, beside what happened live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from headgate.adaptation.actions import AcquireMachine, ReleaseMachine, SetPartitions, SwitchAlternate
from headgate.adaptation.controller.guards import Change, GuardRails, History, guarded, is_cheaper
from headgate.adaptation.controller.live_policies import live_policy
from headgate.adaptation.controller.pressure import pressure_of
from headgate.adaptation.policy import Capabilities, Decision, Memory, Policy, Terms
from headgate.adaptation.window import Window
from headgate.capacity.sharing import Sharing
from headgate.errors import InputError
from headgate.service.recorded_engine import recorded_windows
from headgate.simulation.pooled import PooledSimulated
from headgate.simulation.recorded import AsItWas, recorded_setting
from headgate.simulation.run import Run
from headgate.simulation.setting import Setting
from headgate.simulation.simulator import simulate
from headgate.store.decision_entries import DecisionMade, PolicyChosen
from headgate.store.journal import read_journal
from headgate_benchmarks.adapt.judging import Verdict, series
from headgate_benchmarks.adapt.live import STATIC, Pace, Ran
from headgate_benchmarks.adapt.worlds import Scenario

__all__ = ["sim_live_gap"]

GAPS = ("throughput", "backlog", "cost")


@dataclass(slots=True)
class Railed:
    """A live policy within the guard rails that it had, in one simulated world."""

    inner: Policy
    rails: GuardRails
    every_s: float
    name: str = field(init=False)
    version: int = field(init=False)
    _history: History = field(init=False)

    def __post_init__(self) -> None:
        self.name, self.version = self.inner.name, self.inner.version
        self._history = History(decides_every_s=self.every_s)

    def begin(self, terms: Terms, capabilities: Capabilities) -> Memory:
        return self.inner.begin(terms, capabilities)

    def decide(self, seen: Window, memory: Memory) -> tuple[Decision, Memory]:
        now = seen.ended_s
        decision, after = self.inner.decide(seen, memory)
        demands = (*self._history.demands, (now, pressure_of(seen).demand))
        kept = guarded(decision, seen, self.rails, replace(self._history, demands=demands))
        self._history = replace(self._history, demands=demands).after(_changes(kept, seen), now)
        return kept, after


def _changes(decision: Decision, seen: Window) -> list[Change]:
    changes = []
    for action in decision.actions:
        match action:
            case AcquireMachine():
                changes.append(Change(seen.ended_s, 1))
            case ReleaseMachine():
                changes.append(Change(seen.ended_s, -1))
            case SwitchAlternate(task):
                changes.append(Change(seen.ended_s, 1 if is_cheaper(action, seen) else -1, task))
    return changes


def sim_live_gap(scenario: Scenario, policy: str, ran: Ran, pace: Pace) -> Verdict:
    """How far a simulation of what came is from what happened: as it was, and under the same policy.

    ``throughput`` is the relative difference of the rows that were done, ``backlog`` the mean difference of what waits
    beyond the epoch under way over what comes in a window (or what waits, if that is more), ``cost`` the relative
    difference of what machines cost by time. All are none where no decision was written down: then nobody knows on
    which terms it would have been made.
    """
    try:
        seen = [each for each in recorded_windows(ran.state, ran.began, pace.every_s) if each.ended_s <= ran.ended + 1]
    except InputError:
        seen = []
    if len(seen) < 2:
        return {f"{kind}_{name}": None for kind in ("replay_gap", "sim_live_gap") for name in GAPS}
    setting = recorded_setting(seen)
    runs = {"as_it_was": simulate(setting, AsItWas(seen))}
    if policy not in STATIC:
        runs["policy"] = _simulated(setting, policy, seen, ran, pace)
    live = series(scenario, ran, setting.interval_s)
    prices = float(scenario.machine.price_per_h) / 3_600
    cost = sum(live["machines"]) * setting.interval_s * prices
    fields: Verdict = {}
    for name, run in runs.items():
        gaps = _gaps(run, live, cost, pace.window_s)
        kind = "sim_live_gap" if name == "policy" else "replay_gap"
        fields |= {f"{kind}_{key}": value for key, value in gaps.items()}
    return fields


def _simulated(setting: Setting, policy: str, seen: Sequence[Window], ran: Ran, pace: Pace) -> Run:
    """Under the policy that ran, with its settings and guard rails, from the machines that there were."""
    chosen = [entry for _, entry in read_journal(ran.state / "journal", PolicyChosen)][-1]
    made = [entry for _, entry in read_journal(ran.state / "journal", DecisionMade)]
    settings = made[-1].settings if made else {}
    railed = Railed(live_policy(policy, settings), GuardRails.of(chosen.rails), pace.every_s)
    uncut = replace(setting, sharing=_uncut(setting, seen[-1]))
    return simulate(uncut, PooledSimulated((railed,), policy, begins=AsItWas(seen)))


def _uncut(setting: Setting, seen: Window) -> Sharing:
    """As many parts as there are cores, where policies may cut: a simulation does not set partitions."""
    assert setting.sharing is not None
    signatures = {str(task): signature for task, signature in seen.terms.signatures.items()}
    fragments = tuple(
        replace(
            load,
            stages=tuple(
                replace(stage, partitions=None)
                if seen.capabilities.accepts(SetPartitions(signatures[stage.tasks[0]], 1))
                else stage
                for stage in load.stages
            ),
        )
        for load in setting.sharing.fragments
    )
    return Sharing(fragments, setting.sharing.pools)


def _epoch_s(setting: Setting) -> float:
    """How long epochs are meant to be: a fluid has no rows under way, and what came in that time is some."""
    return 0.0 if setting.sharing is None else setting.sharing.pools[0].epoch_s


def _gaps(run: Run, live: dict[str, list[float]], cost: float, window_s: float) -> dict[str, float]:
    steps = min(len(run.queues), len(live["waiting"]))
    every_s = run.setting.interval_s
    waits = run.queues[:steps, 0].sum(axis=1)
    arriving = np.array(live["came_per_s"][:steps])
    lived = np.maximum(np.array(live["waiting"][:steps]) - arriving * _epoch_s(run.setting), 0.0)
    came = float(arriving.sum()) * every_s
    done = float(np.sum(live["done_per_s"][:steps])) * every_s
    simulated = float(run.input_per_s[:steps, 0].sum()) * every_s - float(waits[-1]) + float(lived[0])
    size = max(float(lived.mean()), came / (steps * every_s) * window_s)
    # Machines that are still there have been paid for to the end of their period: by time, as the live ones.
    held_s = sum(min(each.released_s, steps * every_s) - each.acquired_s for each in run.machines)
    price = float(run.setting.cloud.classes[-1].price_per_h) / 3_600
    return {
        "throughput": abs(simulated - done) / max(done, 1.0),
        "backlog": float(np.abs(waits - lived).mean()) / max(size, 1.0),
        "cost": abs(held_s * price - cost) / max(cost, 1e-9),
    }
