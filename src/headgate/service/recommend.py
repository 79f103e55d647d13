"""What a policy would do now for what runs. Nothing is changed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from headgate.adaptation.controller.live_policies import live_policy
from headgate.adaptation.controller.records import decision_document
from headgate.model.table import Table, TableColumn
from headgate.service.recorded_engine import recorded_windows

__all__ = ["recommend", "recommend_tables"]

WINDOW_S = 60.0
MOST_OLD_S = 600.0
"""How old observations may be for a recommendation."""

_ACTIONS = (TableColumn("action", "what"), TableColumn("on", "on"))
_FIGURES = (TableColumn("figure", "figure"), TableColumn("value", "value", form=",.4g"))
_REJECTED = (TableColumn("option", "not done"), TableColumn("reason", "because"))


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
