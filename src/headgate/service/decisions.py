"""What was decided, and why: decisions of a journal as plain values and as tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from headgate.adaptation.controller.live_policies import live_policy
from headgate.adaptation.controller.records import (
    RecordedDecision,
    decided_again,
    decision_document,
    recorded_decision,
    recorded_decisions,
)
from headgate.adaptation.controller.steps import Acquire, AwaitReady, Publish, Release, Step
from headgate.adaptation.window import Window
from headgate.errors import InputError
from headgate.model.table import Table, TableColumn
from headgate.store.journal import Journal

__all__ = ["decision_tables", "decisions", "decisions_table", "policy_tables", "why", "why_tables"]

Names = Callable[[str], str]

DECISIONS = (
    TableColumn("number", "decision"),
    TableColumn("when", "when"),
    TableColumn("policy", "policy"),
    TableColumn("rule", "rule"),
    TableColumn("actions_text", "what"),
    TableColumn("outcome", "outcome"),
    TableColumn("error", "prediction off", form=".0%"),
)
STEPS = (
    TableColumn("step", "step"),
    TableColumn("what", "what"),
    TableColumn("state", "state"),
    TableColumn("result", "result"),
)
FIGURES = (TableColumn("figure", "figure"), TableColumn("value", "value", form=",.3f"))
COMPARED = (
    TableColumn("figure", "figure"),
    TableColumn("predicted", "predicted", form=",.3f"),
    TableColumn("measured", "measured", form=",.3f"),
)
REJECTED = (TableColumn("option", "not done"), TableColumn("reason", "because"))


def decisions(journal: Journal, since: float = 0.0, most: int = 100) -> list[dict[str, Any]]:
    """The newest decisions after a moment, oldest first."""
    made = (record for record in recorded_decisions(journal) if record.made.at > since)
    return [_facts(record, _seen(record, journal)) for record in deque(made, maxlen=most)]


def why(journal: Journal, number: int, again: bool = False) -> dict[str, Any]:
    """A decision with all that is known of it; made again from its record if so asked."""
    record = recorded_decision(journal, number)
    seen = _seen(record, journal)
    facts = {
        **_facts(record, seen),
        "decided": record.made.decision,
        "figures": record.made.guarded["figures"],
        "rejected": record.made.guarded["rejected"],
        "prediction": record.made.guarded["prediction"],
        "steps": list(_steps(record, _names(seen))),
        "verified": None
        if record.verified is None
        else {"predicted": dict(record.verified.predicted), "measured": dict(record.verified.measured)},
        "again": None,
    }
    if again:
        document = decision_document(
            decided_again(record, journal, live_policy(record.made.policy, record.made.settings))
        )
        facts["again"] = {"same": document == record.made.decision, "decided": document}
    return facts


def _seen(record: RecordedDecision, journal: Journal) -> Window | None:
    """What a decision saw, if it is kept."""
    try:
        return record.window(journal)
    except InputError:
        return None


def _names(seen: Window | None) -> Names:
    """What tasks were called when a decision was made."""
    names = {} if seen is None else {str(each): str(name) for name, each in seen.terms.signatures.items()}
    return lambda signature: names.get(signature, signature[:12])


def _undo(action: Mapping[str, Any], seen: Window | None, names: Names) -> dict[str, Any] | None:
    """The request that brings back what was before an action, if one does: to choose, and to hold that."""
    match action:
        case {"action": "switch_alternate", "task": task}:
            flow, _, name = names(task).partition(".")
            before = None if seen is None or not name else _active(seen, names(task))
            if before is None or before == action["alternate"]:
                return None
            path = f"/dataflows/{quote(flow, safe='')}/tasks/{quote(name, safe='')}/alternate"
            return {"text": f"{names(task)} by {before}", "method": "PUT", "path": path, "body": {"alternate": before}}
        case {"action": "pause" | "resume" as kind, "dataflow": flow}:
            back = "resume" if kind == "pause" else "pause"
            path = f"/dataflows/{quote(str(flow), safe='')}/{back}"
            return {"text": f"{back} {flow}", "method": "POST", "path": path, "body": None}
    return None


def _active(seen: Window, task: str) -> str | None:
    """The alternate of a task that was active when a decision was made."""
    if task not in {str(name) for name in seen.shape.names}:
        return None
    place = seen.shape.place(task)
    return str(seen.shape.alternates[place][int(seen.active[place])])


def _facts(record: RecordedDecision, seen: Window | None) -> dict[str, Any]:
    made, names = record.made, _names(seen)
    outcome = "under way" if record.ended is None else record.ended.outcome.value
    return {
        "number": made.number,
        "at": made.at,
        "policy": made.policy,
        "mode": made.mode,
        "rule": made.guarded["rule"],
        "sentences": list(made.guarded["sentences"]),
        "actions": [
            {**action, "text": _action_text(action, names), "undo": _undo(action, seen, names)}
            for action in made.guarded["actions"]
        ],
        "outcome": outcome,
        "outcome_reason": "" if record.ended is None else record.ended.reason,
        "ended_at": None if record.ended is None else record.ended.at,
        "error": None if record.verified is None else record.verified.error,
    }


def _action_text(action: Mapping[str, Any], names: Names) -> str:
    match action:
        case {"action": "switch_alternate", "task": task, "alternate": alternate}:
            return f"{names(task)} by {alternate}"
        case {"action": "set_partitions", "task": task, "partitions": count}:
            return f"{names(task)} on {'as many partitions as its input' if count is None else f'{count} partitions'}"
        case {"action": "acquire_machine", "vm_class": vm_class}:
            return f"acquire a {vm_class}"
        case {"action": "release_machine", "machine": machine}:
            return f"release {machine}"
        case {"action": "set_rate_limit", "source": source, "rows_per_s": rows}:
            return f"{names(source)} without a limit" if rows is None else f"{names(source)} at most {rows:,.0f} rows/s"
        case {"action": kind, "dataflow": dataflow}:
            return f"{kind} {dataflow}"
    return str(action["action"]).replace("_", " ")


def _steps(record: RecordedDecision, names: Names) -> Iterator[dict[str, Any]]:
    for place, step in enumerate(record.steps):
        change = record.progress.get(place)
        yield {
            "step": place,
            "what": _step_text(step, record.made.steps[place], names),
            "state": "to do" if change is None else change.state.value,
            "result": "" if change is None else change.result,
            "at": None if change is None else change.at,
        }


def _step_text(step: Step, document: Mapping[str, Any], names: Names) -> str:
    match step:
        case Publish():
            return "; ".join(_action_text(action, names) for action in document["actions"])
        case Acquire(vm_class):
            return f"acquire a {vm_class}"
        case AwaitReady(steps):
            return f"wait for {'it' if len(steps) == 1 else 'them'} to be ready"
        case Release(machine):
            return f"release {machine}"


def decisions_table(answer: Mapping[str, Any]) -> Table:
    """Decisions, a row each."""
    rows = tuple(
        {
            **each,
            "when": _when(each["at"]),
            "actions_text": "; ".join(action["text"] for action in each["actions"]) or "nothing",
        }
        for each in answer["decisions"]
    )
    return Table("Decisions", DECISIONS, rows, () if rows else ("Nothing was decided yet.",))


def why_tables(facts: Mapping[str, Any]) -> tuple[Table, ...]:
    """One decision: what was seen, what was done in which steps, what was not, and how it went."""
    head = [f"{_when(facts['at'])}, policy {facts['policy']}, mode {facts['mode']}: {facts['rule']}."]
    head += [f"{_sentence(text)}" for text in facts["sentences"]]
    head.append(
        _sentence(f"{facts['outcome']}: {facts['outcome_reason']}" if facts["outcome_reason"] else facts["outcome"])
    )
    if facts["again"] is not None:
        same = "comes to the same" if facts["again"]["same"] else f"comes to {facts['again']['decided']['actions']}"
        head.append(f"Made again from its record, it {same}.")
    figures = tuple({"figure": name, "value": value} for name, value in facts["figures"].items())
    tables = [Table(f"Decision {facts['number']}", FIGURES, figures, tuple(head))]
    if facts["steps"]:
        tables.append(Table("Steps", STEPS, tuple(facts["steps"])))
    if facts["rejected"]:
        tables.append(Table("Not done", REJECTED, tuple(facts["rejected"])))
    if facts["verified"] is not None:
        seen, expected = facts["verified"]["measured"], facts["verified"]["predicted"]
        rows = tuple({"figure": name, "predicted": expected[name], "measured": seen.get(name)} for name in expected)
        tables.append(Table("What came of it", COMPARED, rows))
    return tuple(tables)


POLICY = (
    TableColumn("policy", "policy"),
    TableColumn("mode", "mode"),
    TableColumn("budget_per_h", "budget", "USD/h"),
    TableColumn("machines_max", "machines at most"),
    TableColumn("by", "chosen by"),
)


def policy_tables(facts: Mapping[str, Any]) -> tuple[Table, ...]:
    """What decides, and what it thought last."""
    notes = [_sentence(facts["reason"])] if facts["reason"] else []
    last = facts["last"]
    if last is not None:
        notes += [f"{_when(last['at'])}: {_sentence(text)}" for text in last["sentences"]]
        notes += [f"Not done: {each['option']}, because {each['reason']}." for each in last["rejected"]]
    notes += [
        f"Decision {each['number']} is under way; 'headgate why {each['number']}' shows it."
        for each in facts["under_way"]
    ]
    if facts["failure"]:
        notes.append(f"The controller fails: {facts['failure']}.")
    return (Table("Policy", POLICY, (dict(facts),), tuple(notes)),)


def decision_tables(answer: Mapping[str, Any]) -> tuple[Table, ...]:
    """All decisions of an answer."""
    return (decisions_table(answer),)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith(".") else ".")


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
