"""What a policy would do now for what runs, or what the past would have been under it. Nothing is changed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.adaptation.controller.live_policies import live_policy
from headgate.adaptation.controller.records import decision_document
from headgate.errors import InputError
from headgate.model.table import Table, TableColumn
from headgate.service.recorded_engine import recorded_windows
from headgate.simulation.policies import make_policy
from headgate.simulation.recorded import AsItWas, Replayed, recorded_setting, replay_error
from headgate.simulation.run import Run
from headgate.simulation.simulator import simulate

__all__ = ["PolicyReplay", "recommend", "recommend_tables", "replay_policies", "replay_tables"]

WINDOW_S = 60.0
MOST_OLD_S = 600.0
"""How old observations may be for a recommendation."""

_ACTIONS = (TableColumn("action", "what"), TableColumn("on", "on"))
_FIGURES = (TableColumn("figure", "figure"), TableColumn("value", "value", form=",.4g"))
_REJECTED = (TableColumn("option", "not done"), TableColumn("reason", "because"))
_RUNS = (
    TableColumn("policy", "policy"),
    TableColumn("omega", "Ω", form=".4f"),
    TableColumn("gamma", "Γ", form=".4f"),
    TableColumn("cost", "cost", form=".4g"),
    TableColumn("theta", "Θ", form=".4g"),
    TableColumn("changes", "changes", form=",.4g"),
    TableColumn("backlog", "backlog", form=",.0f"),
)


def recommend(state: Path, policy: str, now: float | None = None) -> dict[str, Any]:
    """The decision of a policy on the last minute: actions by the names of tasks, reason, prediction."""
    moment = time.time() if now is None else now
    seen = recorded_windows(state, moment - MOST_OLD_S, WINDOW_S)[-1]
    chosen = live_policy(policy)
    decision, _ = chosen.decide(seen, chosen.begin(seen.terms, seen.capabilities))
    names = {str(signature): str(name) for name, signature in seen.terms.signatures.items()}
    document = decision_document(decision)
    actions = [{key: names.get(str(value), value) for key, value in each.items()} for each in document["actions"]]
    return {"policy": policy, "window_ended": seen.ended_s, **document, "actions": actions}


def recommend_tables(answer: dict[str, Any]) -> list[Table]:
    """A recommendation for people."""
    actions = [
        {"action": each["action"], "on": " ".join(str(v) for k, v in each.items() if k != "action" and v is not None)}
        for each in answer["actions"]
    ]
    title = f"{answer['policy']}: {answer['rule']}" if actions else f"{answer['policy']}: nothing to be done"
    expected = {f"predicted {k}": v for k, v in (answer["prediction"] or {}).items() if isinstance(v, float)}
    figures = {**answer["figures"], **{k: v for k, v in expected.items() if k != "predicted at_s"}}
    tables = [
        Table(title, _ACTIONS, tuple(actions), tuple(answer["sentences"])),
        Table("Figures", _FIGURES, tuple({"figure": k, "value": v} for k, v in figures.items())),
    ]
    if answer["rejected"]:
        tables.append(Table("Rejected", _REJECTED, tuple(answer["rejected"])))
    return tables


@dataclass(frozen=True, slots=True, eq=False)
class PolicyReplay:
    """The past as it was, as it is simulated, and under other policies."""

    was: Replayed
    simulated: Run
    runs: tuple[Run, ...]


def replay_policies(state: Path, policies: list[str], since_s: float, now: float | None = None) -> PolicyReplay:
    """Replay the last ``since_s`` seconds as they were, then under each of some policies."""
    moment = time.time() if now is None else now
    seen = recorded_windows(state, moment - since_s, WINDOW_S)
    if len(seen) < 2:
        raise InputError("BAD_OBSERVATIONS", f"{len(seen)} minutes were observed; a replay needs two at least")
    setting = recorded_setting(seen)
    simulated = simulate(setting, AsItWas(seen))
    runs = tuple(simulate(setting, make_policy(name, setting)) for name in policies)
    return PolicyReplay(Replayed.of(seen), simulated, runs)


def replay_tables(replay: PolicyReplay) -> list[Table]:
    """A row for what was measured, for its own simulation, and for each policy."""
    was = replay.was
    rows: list[dict[str, Any]] = [
        {"policy": "as measured", "omega": was.omega, "gamma": was.gamma, "cost": was.cost, "backlog": was.backlog}
    ]
    for name, run in [("as it was, simulated", replay.simulated), *((each.policy, each) for each in replay.runs)]:
        totals = run.totals()
        rows.append({"policy": name, **{column.key: totals.get(column.key) for column in _RUNS[1:]}})
    error = replay_error(was, replay.simulated)
    off = f"Ω {error.omega:+.3f}, cost {error.cost:+.1%}, backlog {error.backlog:+.1%} of what came"
    notes = (
        f"Error of the replay itself: {off}.",
        "A policy that differs from what was by less than that is no better and no worse.",
    )
    return [Table("Replay", _RUNS, tuple(rows), notes)]
