"""Random windows and joins come, go and are resized while an engine is killed; what they put out is computed again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.api.client import EngineClient
from headgate.errors import HeadgateError
from tests.judge.flows import Flow
from tests.judge.history import History, Row
from tests.judge.rig import Rig
from tests.judge.sinks import sink_rows
from tests.judge.stateful_flows import (
    KINDS,
    Part,
    StatefulFlow,
    expected,
    is_of_old,
    is_old,
    known_by,
    random_flow,
    row_of,
    values,
)
from tests.judge.verdict import Verdict

__all__ = ["STEPS", "Statefuls", "judge_stateful"]

STEPS = ("state-file", "state-collected", "topics", "commit", "staged-file", "snapshot", "head", "position", "fragment")
"""Those that windows and joins come to."""

MOST = 4
"""Dataflows at once, beside the first ones."""


def judge_stateful(history: History, flows: Sequence[Flow], folder: Path) -> Verdict:
    """Judge the sinks of a folder after an engine has run dry."""
    rows = [row for row, _ in history.rows()]
    gone = {name for change in history.changes if change.kind == "withdraw" for name in change.labels}
    verdict = Verdict()
    for flow in flows:
        assert isinstance(flow, StatefulFlow)
        got = _got(flow, rows, list(sink_rows(flow.sink(folder, "rows"))), flow.name in gone, verdict)
        for number, part in enumerate(flow.parts):
            held = list(sink_rows(flow.sink(folder, f"p{number}")))
            verdict.rows += len(held)
            where = f"{flow.name}/p{number} ({part.kind} {part.size_ms}ms by {part.key})"
            _part(where, part, got, held, flow, flow.name in gone, verdict)
    for text in history.contradictions:
        verdict.add("half_applied", text)
    return verdict


def _got(flow: StatefulFlow, rows: Sequence[Row], held: Sequence[Row], is_gone: bool, verdict: Verdict) -> list[Row]:
    """The rows that a dataflow has got: all, or, for one that began later or left, some that follow each other."""
    place = {row["id"]: at for at, row in enumerate(rows)}
    seen = sorted(place[row["id"]] for row in held)
    first = seen[0] if flow.start and seen else 0
    last = (seen[-1] + 1 if seen else first) if is_gone or (flow.start and not seen) else len(rows)
    if seen != list(range(first, last)):
        fault = "doubled" if len(seen) > len(set(seen)) else "lost"
        missing = sorted(set(range(first, last)) - set(seen))
        verdict.add(fault, f"{flow.name}/rows: of {last - first} there are {len(seen)}; missing {missing[:5]}")
    verdict.rows += len(seen)
    return list(rows[first:last])


def _part(
    where: str, part: Part, got: Sequence[Row], held: Sequence[Row], flow: StatefulFlow, is_gone: bool, verdict: Verdict
) -> None:
    old = {row["id"] for row in got if is_old(row)}
    made = expected(part, [row for row in got if row["id"] not in old])
    times = Counter(known_by(part, row) for row in held)
    for known, count in times.items():
        if count > 1:
            verdict.add("doubled", f"{where}: {known} is there {count} times")
    of_old = [row for row in held if is_of_old(part, known_by(part, row), old)]
    # Whoever had put out something before old rows came cannot have counted them, others may have counted some.
    if of_old and (flow.label == FIRST or _counted(part, of_old) > 2 * max(len(old), _pairs(part, got, old))):
        verdict.add("lost", f"{where}: counts rows that came too late, such as {of_old[0]}", len(of_old))
    for row in held:
        known = known_by(part, row)
        if is_of_old(part, known, old):
            continue
        if known not in made:
            verdict.add("lost", f"{where}: {known} is there and should not be")
        elif made[known] != values(part, row):
            verdict.add("lost", f"{where}: {known} has {values(part, row)}, should have {made[known]}")
    missing = [known for known in made if known not in times]
    if missing and not is_gone:
        verdict.add("lost", f"{where}: of {len(made)} are not there: {missing[:3]}", len(missing))


def _counted(part: Part, of_old: Sequence[Row]) -> int:
    return len(of_old) if part.kind in ("inner", "left") else sum(row["c"] for row in of_old)


def _pairs(part: Part, got: Sequence[Row], old: set[Any]) -> int:
    """How many pairs old rows can make."""
    if part.kind not in ("inner", "left", "joined"):
        return 0
    return len(expected(Part("inner", part.size_ms, part.key), [row for row in got if row["id"] in old]))


FIRST = "first"
"""The label of dataflows that have put out something before old rows come."""


@dataclass(slots=True)
class Statefuls:
    """Makes dataflows of windows and joins come, go and be resized."""

    rig: Rig
    there: list[StatefulFlow] = field(default_factory=list)
    made: int = 0
    changes: Counter[str] = field(default_factory=Counter)
    has_old: bool = False

    def begin(self) -> None:
        rig = self.rig
        rig.judge, rig.make_row, rig.closing_rows = judge_stateful, self._row, 2
        for _ in range(60):
            rig.feed(20)
        rig.start()
        first = [random_flow(rig.rnd, f"first{n}", kinds=KINDS[n::2]) for n in range(2)]
        first = [StatefulFlow(f.name, f.owner, f.outputs, FIRST, f.start, f.parts) for f in first]
        assert rig.submit(*first)
        self.there += first
        rig.wait_for(lambda: all(self._has_put_out(flow) for flow in first), "the first rows of all windows and joins")
        self.has_old = True

    def change(self) -> bool:
        """Let dataflows come, or one leave or be resized; says whether any came."""
        rnd = self.rig.rnd
        if rnd.random() < 0.25:
            flow = rnd.choice(self.there)
            number = rnd.randrange(len(flow.parts))
            task = flow.parts[number].tasks(f"p{number}")[0]["id"]
            self.rig.partitions(flow.name, task, rnd.choice([1, 2, 3, 5]))
            self.changes["partitions"] += 1
            return False
        late = [flow for flow in self.there if flow.label != FIRST]
        if len(late) >= MOST or (late and rnd.random() < 0.25):
            flow = rnd.choice(late)
            self.there.remove(flow)
            self.rig.withdraw(flow.name)
            self.changes["withdraw"] += 1
            return False
        self.made += 1
        self.changes["submit"] += 1
        start = rnd.choice(["", "with first0", "with first1", "with first0"])
        # What begins where another stands would share the state of what it has in common with it.
        flow = random_flow(rnd, f"late{self.made}", start, more=2 * self.made if start else 0)
        self.there.append(flow)
        self.rig.submit(flow)
        return True

    def have_joined(self) -> bool:
        with suppress(HeadgateError), EngineClient(self.rig.state, patience_s=0.0) as client:
            return all(flow["catch_up"] is None for flow in client.dataflows()["dataflows"])
        return False

    def _row(self, number: int, seconds_later: float) -> dict[str, Any]:
        is_old_row = self.has_old and not seconds_later and self.rig.rnd.random() < 0.02
        return row_of(self.rig.rnd, number, seconds_later, is_old_row)

    def _has_put_out(self, flow: StatefulFlow) -> bool:
        return all(any(flow.sink(self.rig.folder, output).glob("part-*")) for output in flow.outputs)
