"""Answers of a running engine as tables, for people and for CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from headgate.errors import counted
from headgate.model.status import DataflowStatus, FragmentStatus
from headgate.model.table import Table, TableColumn
from headgate.service.live_figures import figures_table, levels_table

__all__ = ["listing_table", "run_tables", "status_tables", "submission_tables", "withdrawal_tables"]

Answer = Mapping[str, Any]

DATAFLOW = (
    TableColumn("name", "dataflow"),
    TableColumn("owner", "owner"),
    TableColumn("state", "state"),
    TableColumn("rows_out", "rows out", form=",d"),
    TableColumn("tasks", "tasks"),
    TableColumn("shared", "shared"),
)
FRAGMENT = (
    TableColumn("name", "fragment"),
    TableColumn("kind", "kind"),
    TableColumn("epoch", "epoch"),
    TableColumn("rate_per_s", "rate", "rows/s", ",.0f"),
    TableColumn("batch_s", "batch", "s", ".2f"),
    TableColumn("behind", "rows waiting", form=",d"),
)
SHARING = (TableColumn("task", "task"), TableColumn("type", "type"), TableColumn("shared_with", "shared with"))
ALTERNATES = (
    TableColumn("task", "task"),
    TableColumn("alternate", "active"),
    TableColumn("value", "value", form=".2f"),
    TableColumn("since", "since"),
    TableColumn("by", "by"),
    TableColumn("why", "why"),
)
CHANGE = (TableColumn("task", "task"), TableColumn("change", "change"), TableColumn("detail", "detail"))
LEFT = (TableColumn("task", "keeps running"), TableColumn("for", "for"))


def listing_table(answer: Answer) -> Table:
    """The dataflows, in the order of submission."""
    return _dataflows(answer["dataflows"], f"Strategy {answer['strategy']}.")


def status_tables(answer: Answer) -> tuple[Table, ...]:
    """Dataflows and fragments; of a single dataflow its tasks in place of the fragments."""
    engine = f"Process {answer['process']}, snapshot {answer['snapshot']}, strategy {answer['strategy']}."
    flows = _dataflows(answer["dataflows"], *answer.get("over_quota", ())), *_figures(answer["dataflows"])
    if "tasks" not in answer:
        return *flows, _fragment_table(answer["fragments"], engine)
    flows = _with_note(flows[0], *map(_complete, answer["dataflows"])), *flows[1:]
    tasks = tuple({**task, "shared_with": task["shared_with"] or None} for task in answer["tasks"])
    chosen = [{"task": task["task"], **task["active"]} for task in answer["tasks"] if task.get("active")]
    choices = tuple(_choice(way) for way in chosen if len(way["alternates"]) > 1)
    of = (Table("Alternates", ALTERNATES, choices),) if choices else ()
    named = [f"Others may read {task['task']} as stream {task['publish']}." for task in tasks if task.get("publish")]
    return *flows, *of, Table("Tasks", SHARING, tasks, (*named, engine))


def _complete(flow: Answer) -> str:
    """From when on the output of a dataflow is complete."""
    lacks = f", but for what was gone when it came ({flow['lacks']})" if flow["lacks"] else ""
    return f"Its output is complete from {flow['start']}{lacks}."


def _choice(way: Answer) -> dict[str, Any]:
    since = None if way["since"] is None else datetime.fromtimestamp(way["since"], UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    by = f"{way['by']} (held)" if way["held"] else way["by"]
    return {**way, "since": since, "by": by, "why": way["reason"] or None}


def run_tables(dataflows: Sequence[DataflowStatus], fragments: Sequence[FragmentStatus]) -> tuple[Table, ...]:
    """What a run shows of itself."""
    rows = [asdict(fragment) for fragment in fragments]
    return _dataflows([asdict(flow) for flow in dataflows]), _fragment_table(rows)


def submission_tables(answer: Answer, written: Mapping[str, Sequence[str]]) -> tuple[Table, ...]:
    """What becomes of each task of the submitted dataflows; ``written`` has the tasks as their authors wrote them."""
    tables = [_submitted(facts, written[facts["dataflow"]]) for facts in answer["submitted"]]
    return (*tables[:-1], _with_note(tables[-1], _fragments(answer))) if tables else ()


def withdrawal_tables(answer: Answer) -> tuple[Table, ...]:
    """What keeps running of the withdrawn dataflows, and for whom."""
    tables = []
    for facts in answer["withdrawn"]:
        removed = counted(len(facts["removed"]), "task")
        title = f"{facts['dataflow']}: {removed} removed, {len(facts['left'])} kept for others"
        tables.append(Table(title, LEFT, tuple(facts["left"])))
    return (*tables[:-1], _with_note(tables[-1], _fragments(answer)))


def _dataflows(rows: Sequence[Answer], *notes: str) -> Table:
    reasons = [f"{row['name']} is {row['state']}: {row['reason']}" for row in rows if row["reason"]]
    return Table("Dataflows", DATAFLOW, tuple(rows), (*reasons, *notes))


def _fragment_table(rows: Sequence[Answer], *notes: str) -> Table:
    """Fragments; of one that has not had an epoch yet there is nothing to say but what waits."""
    nothing = {"epoch": None, "rate_per_s": None, "batch_s": None}
    shown = tuple(row if row["epoch"] >= 0 else {**row, **nothing} for row in rows)
    return Table("Fragments", FRAGMENT, shown, (*_failures(rows), *notes))


def _figures(rows: Sequence[Answer]) -> tuple[Table, ...]:
    """The figures of the last minute, once there are some, and for how long dataflows were as agreed."""
    known = {row["name"]: row.get("figures") for row in rows}
    return (figures_table(known), levels_table(rows)) if any(known.values()) else ()


def _failures(rows: Iterable[Answer]) -> tuple[str, ...]:
    return tuple(f"{row['name']} has failed: {row['failure']}" for row in rows if row["failure"])


def _submitted(facts: Answer, tasks: Sequence[str]) -> Table:
    reused = {one["task"]: one["for"] for one in facts["reused"]}
    wider = {one["task"]: one["residual"] for one in facts["wider"]}
    residual = {task for names in wider.values() for task in names}
    new = [task for task in facts["added"] if task not in residual]

    def row(task: str) -> dict[str, str | None]:
        if task in reused:
            return {"task": task, "change": "shared", "detail": f"with {reused[task]}"}
        if task in wider:
            by = f"by {', then '.join(wider[task])}" if wider[task] else "as it is"
            return {"task": task, "change": "from a wider stream", "detail": by}
        return {"task": task, "change": "new" if task in new else "not needed", "detail": None}

    counts = f"{len(reused)} shared" + (f", {len(wider)} from wider streams" if wider else "") + f", {len(new)} new"
    notes = (text,) if (text := facts.get("start", {}).get("text")) else ()
    return Table(f"{facts['dataflow']}: {counted(len(tasks), 'task')}; {counts}", CHANGE, tuple(map(row, tasks)), notes)


def _fragments(answer: Answer) -> str:
    fragments = answer["fragments"]
    counts = ", ".join(f"{len(fragments[how])} {how}" for how in ("touched", "started", "restarted"))
    return f"Snapshot {answer['snapshot']}; fragments: {counts}."


def _with_note(table: Table, *notes: str) -> Table:
    return Table(table.title, table.columns, table.rows, (*table.notes, *notes))
