"""Dataflows that come late, are replaced, switched and leave, while files arrive and the engine is killed.

Each puts out what it does alone.

The judge computes from the input files, in their order, what every sink must hold: all of it for a dataflow that is
there, and for one that was withdrawn a beginning of it, without a gap.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from headgate.api.client import EngineClient
from headgate.errors import HeadgateError
from tests.judge.campaign import EVERY_EPOCH, IN_VAIN, VAIN_S, Limits, Point, Progress, Result
from tests.judge.flows import ALTERNATES, Flow, expected_values, expected_windows, passes
from tests.judge.history import History, Row
from tests.judge.processes import Starts
from tests.judge.rig import Rig, rig_in
from tests.judge.sinks import sink_rows
from tests.judge.verdict import Verdict

__all__ = ["JoiningFlow", "judge_joins", "kill_while_joining"]

KEYS = {"rows": "k", "counts": "k", "own": "text", "firsts": "text", "alternate": "k"}
COLUMNS = {"counts": "n"}
OUTPUTS = (
    ("rows",),
    ("rows", "alternate"),
    ("rows", "counts"),
    ("alternate", "counts"),
    ("rows", "firsts"),
    ("own",),
    ("rows", "windows"),
    ("pairs",),
)
"""Of late dataflows; some join what runs, and some cannot."""

HIGH, WITHIN_S = 25.0, 1

MOST = 4
"""Late dataflows at once."""


@dataclass(frozen=True, slots=True)
class JoiningFlow(Flow):
    """A dataflow that begins at the earliest, with a source that takes few files at a time.

    It has one more output: ``pairs``, rows joined with those of their key above :data:`HIGH` within a second.
    """

    def _tasks(self, output: str) -> list[dict[str, Any]]:
        if output != "pairs":
            return Flow._tasks(self, output)
        config = {"on": ["k"], "time": ["at", "at"], "within": f"{WITHIN_S}s", "late_by": "1min"}
        return [
            {"id": "high", "type": "filter", "config": {"where": f"v > {HIGH}"}, "inputs": ["clean"]},
            {"id": "pairs", "type": "join", "config": config, "inputs": ["clean", "high"]},
        ]

    def document(self, folder: Path) -> dict[str, Any]:
        document = Flow.document(self, folder)
        document["tasks"][0]["config"]["files_per_batch"] = 8
        return document


def judge_joins(history: History, flows: Sequence[Flow], folder: Path) -> Verdict:
    """Judge the sinks of a folder: rows, their order for each key, and what tasks have added."""
    rows = [row for row, _ in history.rows() if passes(row)]
    gone = {name for change in history.changes if change.kind == "withdraw" for name in change.labels}
    verdict = Verdict()
    for flow in {flow.name: flow for flow in flows}.values():  # of several versions the last: they have one sink
        for output in flow.outputs:
            held = list(sink_rows(flow.sink(folder, output)))
            verdict.rows += len(held)
            where = f"{flow.name}/{output}"
            if output == "windows":
                _windows(where, rows, held, flow.name in gone, verdict)
            elif output == "pairs":
                _pairs(where, rows, held, flow.name in gone, verdict)
            else:
                _rows(where, output, rows, held, flow.name in gone, verdict)
    for text in history.contradictions:
        verdict.add("half_applied", text)
    return verdict


def _rows(where: str, output: str, rows: Sequence[Row], held: Sequence[Row], is_gone: bool, verdict: Verdict) -> None:
    values = expected_values(output, rows)
    wanted, found = _by_key(output, [row for row in rows if row["id"] in values]), _by_key(output, held)
    column = COLUMNS.get(output, f"n_{where.partition('/')[0]}")
    for key in wanted.keys() | found.keys():
        ids, seen = [row["id"] for row in wanted[key]], [row["id"] for row in found[key]]
        if is_gone:
            ids = ids[: len(seen)]
        if seen != ids:
            fault = _fault(ids, seen)
            at = next((n for n, (a, b) in enumerate(zip(ids, seen, strict=False)) if a != b), min(len(ids), len(seen)))
            text = f"{where}: of {key} there are {len(seen)} rows, should be {len(ids)}; from place {at} on"
            verdict.add(fault, f"{text} {seen[at : at + 5]}, should be {ids[at : at + 5]}")
        elif output in ("counts", "own"):
            wrong = [
                (row["id"], row[column], values[row["id"]]) for row in found[key] if row[column] != values[row["id"]]
            ]
            if wrong:
                verdict.add("lost", f"{where}: of {key} rows count wrong, such as {wrong[:3]}", len(wrong))


def _fault(ids: Sequence[int], seen: Sequence[int]) -> str:
    if len(seen) > len(set(seen)):
        return "doubled"
    return "out_of_order" if set(seen) == set(ids) else "lost"


def _by_key(output: str, rows: Sequence[Row]) -> defaultdict[str, list[Row]]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[KEYS[output]]].append(row)
    return found


def _windows(where: str, rows: Sequence[Row], held: Sequence[Row], is_gone: bool, verdict: Verdict) -> None:
    expected: Mapping[tuple[str, int], tuple[int, float]] = expected_windows(rows)
    last, seen = max((at for _, at in expected), default=0), set[tuple[str, int]]()
    for row in held:
        at = row["k"], int(datetime.fromisoformat(row["window_start"]).timestamp())
        if at in seen:
            verdict.add("doubled", f"{where}: {at} is there twice")
        seen.add(at)
        if row["n"] != expected.get(at, (0, 0.0))[0]:
            verdict.add("lost", f"{where}: {at} has {row['n']} rows, should have {expected.get(at)}")
    missing = [at for at in expected if at not in seen and at[1] != last]
    if missing and not is_gone:
        verdict.add("lost", f"{where}: {missing[:3]} are not there", len(missing))


def _pairs(where: str, rows: Sequence[Row], held: Sequence[Row], is_gone: bool, verdict: Verdict) -> None:
    wanted = _expected_pairs(rows)
    seen = Counter((row["id"], row["right_id"]) for row in held)
    for pair, count in seen.items():
        if pair not in wanted:
            verdict.add("lost", f"{where}: {pair} is no pair")
        elif count > 1:
            verdict.add("doubled", f"{where}: {pair} is there {count} times")
    missing = wanted - seen.keys()
    if missing and not is_gone:
        verdict.add("lost", f"{where}: {len(missing)} pairs are not there, such as {sorted(missing)[:3]}", len(missing))


def _expected_pairs(rows: Sequence[Row]) -> set[tuple[int, int]]:
    """The ids of rows of one key that are no more than a second apart, of which the right one is high."""
    keys = defaultdict(list)
    for row in rows:
        keys[row["k"]].append((datetime.fromisoformat(row["at"]), row["id"], row["v"]))
    pairs: set[tuple[int, int]] = set()
    for some in keys.values():
        some.sort()
        first = 0
        for at, left, _ in some:
            while (at - some[first][0]).total_seconds() > WITHIN_S:
                first += 1
            for other, right, v in some[first:]:
                if (other - at).total_seconds() > WITHIN_S:
                    break
                if v > HIGH:
                    pairs.add((left, right))
    return pairs


@dataclass(slots=True)
class _Joins:
    """Makes dataflows come and go, and change."""

    rig: Rig
    there: dict[str, JoiningFlow] = field(default_factory=dict)
    made: int = 0
    changes: Counter[str] = field(default_factory=Counter)

    def begin(self) -> None:
        self.rig.judge = judge_joins
        for _ in range(30):
            self.rig.feed()
        self.rig.start()
        base = JoiningFlow("base", "ann", ("rows", "counts", "firsts", "windows"), "base")
        assert self.rig.submit(base)
        self.rig.wait_for(lambda: self.rig.has(base, "rows", 0), "the first rows")

    def change(self) -> bool:
        """Let dataflows come, or one leave, be replaced or be switched; says whether any came."""
        rnd = self.rig.rnd
        kind = rnd.choice(["submit", "submit", "submit", "withdraw", "replace", "switch", "switch"])
        switchable = [one for one in self.there.values() if "alternate" in one.outputs]
        settled = [self.there[name] for name in self._caught_up()] if kind == "replace" else []
        if (kind == "replace" and not settled) or (kind == "switch" and not switchable):
            kind = "submit"
        if kind == "submit" and len(self.there) >= MOST:
            kind = "withdraw"
        elif kind == "withdraw" and not self.there:
            kind = "submit"
        self.changes[kind] += 1
        if kind == "withdraw":
            name = rnd.choice(list(self.there))
            del self.there[name]
            self.rig.withdraw(name)
        elif kind == "replace":
            flow = rnd.choice(settled)
            self.there[flow.name] = replace(flow, label=f"{flow.label}+")
            self.rig.submit(self.there[flow.name], update=True)
        elif kind == "switch":
            self.rig.switch(rnd.choice(switchable).name, "alternate", rnd.choice(ALTERNATES))
        else:
            flows = [self._flow() for _ in range(rnd.choice([1, 1, 2]))]
            self.there |= {flow.name: flow for flow in flows}
            self.rig.submit(*flows)
        return kind == "submit"

    def _caught_up(self) -> list[str]:
        """The late dataflows that have caught up; one that has not cannot be replaced."""
        with suppress(HeadgateError), EngineClient(self.rig.state) as client:  # it may have been killed meanwhile
            flows = client.status()["dataflows"]
            return [flow["name"] for flow in flows if flow["name"] in self.there and flow["catch_up"] is None]
        return []

    def have_joined(self) -> bool:
        """Whether an engine answers, and nothing catches up any more."""
        with suppress(HeadgateError), EngineClient(self.rig.state, patience_s=0.0) as client:
            return all(flow["catch_up"] is None for flow in client.dataflows()["dataflows"])
        return False

    def _flow(self) -> JoiningFlow:
        self.made += 1
        name = f"late{self.made}"
        return JoiningFlow(name, self.rig.rnd.choice(["dan", "eve"]), self.rig.rnd.choice(OUTPUTS), name)


def kill_while_joining(
    folder: Path, seed: int, wanted: Collection[Point], limits: Limits, starts: Starts, progress: Progress
) -> Result:
    """Kill one engine at steps, one after the other, while dataflows join it and leave, and judge it at the end."""
    result = Result()
    with rig_in(folder, seed, starts=starts) as rig:
        joins = _Joins(rig)
        try:
            joins.begin()
            with rig.fed():
                _kill(rig, joins, set(wanted), limits, result)
            result.verdict = rig.finish()
        except AssertionError as error:  # judged all the same would be judged too early
            result.stuck.append(str(error)[-1500:])
        result.restart_s = rig.restart_s
    made = ", ".join(f"{count} of {kind}" for kind, count in sorted(joins.changes.items()))
    progress(f"{result.made} kills, {joins.made} joins ({made}), {len(result.unreached)} not reached: {result.verdict}")
    return result


def _kill(rig: Rig, joins: _Joins, left: set[Point], limits: Limits, result: Result) -> None:
    in_vain = 0
    while left and in_vain < IN_VAIN and limits.allow(result.made):
        aims = [
            f"{m} {s} {rig.rnd.choice([1, 2, 5]) if s in EVERY_EPOCH and not in_vain else 1}" for m, s in sorted(left)
        ]
        with rig.aimed(*aims) as ended:
            have_come = joins.change()
            rig.wait_for_epoch(lambda: ended() is not None, VAIN_S * (1 + 2 * in_vain))
            if have_come:
                rig.wait_for(lambda: ended() is not None or joins.have_joined(), "dataflows that have joined")
            at = ended()
        rig.recover()
        rig.settle()
        in_vain = 0 if at is not None else in_vain + have_come
        if at is not None:
            left.discard(at)
            result.steps.add(at)
            result.kills["join"] += 1
    if in_vain == IN_VAIN:
        result.unreached |= left
