"""What is wrong with what sinks hold: lost, doubled, out of order, under a stale plan, or half applied."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.judge.flows import Flow, expected_values, expected_windows, passes
from tests.judge.history import Change, History, Row
from tests.judge.sinks import sink_rows
from tests.judge.timeline import Timeline, timeline_of

__all__ = ["FAULTS", "Verdict", "judge", "judge_rows"]

FAULTS = ("lost", "doubled", "out_of_order", "stale_plan", "half_applied")
KEYED = {"counts": "k", "own": "text", "firsts": "text"}
"""Outputs of keyed tasks, and the key of each."""

LABELLED = ("rows", "counts", "own", "alternate")
"""Outputs that have a row for every row of their source."""

MOST_EVIDENCE = 3
"""Of each kind of fault in each output."""

Held = Mapping[tuple[str, str], Sequence[Row]]
"""The rows of each dataflow and output, in the order of the sink."""


@dataclass(slots=True)
class Verdict:
    """How many faults of each kind there are, and what shows them."""

    counts: Counter[str] = field(default_factory=Counter)
    evidence: list[str] = field(default_factory=list)
    rows: int = 0
    """Rows that were compared."""

    @property
    def is_right(self) -> bool:
        return not self.counts

    def add(self, fault: str, text: str, times: int = 1) -> None:
        self.counts[fault] += times
        kind = f"{fault}: {text.partition(':')[0]}:"
        if sum(known.startswith(kind) for known in self.evidence) < MOST_EVIDENCE:
            self.evidence.append(f"{fault}: {text}")

    def __str__(self) -> str:
        counts = ", ".join(f"{fault} {self.counts[fault]}" for fault in FAULTS)
        return "\n".join([f"{counts}, of {self.rows} rows", *self.evidence])


def judge(history: History, flows: Sequence[Flow], folder: Path) -> Verdict:
    """Judge the sinks of a folder after an engine has run dry. A dataflow's versions are one dataflow here."""
    named = {flow.name: flow for flow in flows}
    held = {
        (name, output): list(sink_rows(flow.sink(folder, output)))
        for name, flow in named.items()
        for output in flow.outputs
    }
    return judge_rows(history, held)


def judge_rows(history: History, held: Held) -> Verdict:
    """Judge what sinks hold."""
    return _Case(history, held).verdict()


class _Case:
    def __init__(self, history: History, held: Held) -> None:
        self.history, self.held = history, held
        timed = [(row, at) for row, at in history.rows() if passes(row)]
        self.rows = [row for row, _ in timed]
        self.arrived = [at for _, at in timed]
        self.place = {row["id"]: number for number, row in enumerate(self.rows)}
        self.faults = Verdict()
        self.begins: defaultdict[int, list[tuple[int, int, str]]] = defaultdict(list)
        """By change, between which rows it took effect in each output."""

    def verdict(self) -> Verdict:
        for (name, output), held in self.held.items():
            self.faults.rows += len(held)
            if output == "windows":
                self._windows(name, held)
            else:
                self._output(name, output, held)
        self._whole_changes()
        for text in self.history.contradictions:
            self.faults.add("half_applied", text)
        return self.faults

    def _changes(self, name: str) -> list[Change]:
        return [change for change in self.history.changes if name in change.labels and change.made is not False]

    def _output(self, name: str, output: str, held: Sequence[Row]) -> None:
        where = f"{name}/{output}"
        held = [row for row in held if self._known(row, where)]
        once: dict[int, Row] = {}
        for row in held:
            if row["id"] in once:
                self.faults.add("doubled", f"{where}: row {row['id']} {self._near(row['id'])}")
            once.setdefault(row["id"], row)
        if output in LABELLED:
            observed = [once[row["id"]]["label"] if row["id"] in once else None for row in self.rows]
            timeline = timeline_of(name, self._changes(name), self.arrived, observed)
            self._labels(where, timeline, observed)
            self._note_begins(name, where, timeline)
        if output == "sifted":
            for number in expected_values(output, self.rows):
                if number not in once:
                    self.faults.add("lost", f"{where}: row {number} is not there {self._near(number)}")
        ordered = output not in KEYED or self._order(where, KEYED[output], held)
        if output in ("counts", "firsts"):
            self._values(where, output, self.rows, once, ordered)
        elif output == "own":
            for begin, end in _lives(timeline, self._changes(name)):
                # It counts from the first row that it got; whether it got those before is another question.
                first = next((at for at in range(begin, end) if self.rows[at]["id"] in once), end)
                self._values(where, output, self.rows[first:end], once, ordered)

    def _known(self, row: Row, where: str) -> bool:
        if row.get("id") in self.place:
            return True
        self.faults.add("doubled", f"{where}: a row that no source has: {dict(row)}")
        return False

    # which plan a row was processed under

    def _labels(self, where: str, timeline: Timeline, observed: Sequence[str | None]) -> None:
        since_begin = True
        for at, (part, label) in enumerate(zip(timeline.parts, observed, strict=True)):
            if at and part != timeline.parts[at - 1]:
                since_begin = True
            wanted = timeline.labels[part]
            if label == wanted:
                since_begin = False
                continue
            earlier = timeline.labels[:part]
            if label is None and not (since_begin and None in earlier):
                fault = "lost"
            elif label in earlier:
                fault = "stale_plan"
            else:
                fault = "half_applied"
            number = self.rows[at]["id"]
            text = f"{where}: row {number} is {label or 'not there'}, should be {wanted or 'not there'}"
            self.faults.add(fault, f"{text} {self._near(number)}")

    def _note_begins(self, name: str, where: str, timeline: Timeline) -> None:
        numbers = [n for n, change in enumerate(self.history.changes) if change in self._changes(name)]
        for part, number in enumerate(numbers, 1):
            if timeline.labels[part] != timeline.labels[part - 1]:
                self.begins[number].append((timeline.earliest[part], timeline.latest[part], where))

    def _whole_changes(self) -> None:
        """A change takes effect between the same two rows in all its outputs."""
        for number, begins in self.begins.items():
            first = max(begins, key=lambda begin: begin[0])
            last = min(begins, key=lambda begin: begin[1])
            if first[0] > last[1]:
                kind = self.history.changes[number].kind
                text = f"a {kind} takes effect in {last[2]} before row {last[1]}, in {first[2]} after row {first[0]}"
                self.faults.add("half_applied", text)

    # what tasks add

    def _values(self, where: str, output: str, rows: Sequence[Row], once: Mapping[int, Row], ordered: bool) -> None:
        """Compare what a keyed task has added. Where its rows came in another order, that explains other values."""
        expected = expected_values(output, rows)
        if output == "firsts":
            self._firsts(where, expected, once)
            return
        key, column = KEYED[output], "n" if output == "counts" else f"n_{where.partition('/')[0]}"
        by_key: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for row in rows:
            if row["id"] in once:
                wanted = expected[row["id"]]
                assert wanted is not None
                by_key[row[key]].append((row["id"], once[row["id"]][column], wanted))
        for values in by_key.values():
            wrong = [(number, has, wants) for number, has, wants in values if has != wants]
            if not wrong:
                continue
            permuted = not ordered or Counter(has for _, has, _ in values) == Counter(wants for *_, wants in values)
            for number, has, wants in wrong:
                fault = "out_of_order" if permuted else "lost" if has < wants else "doubled"
                self.faults.add(fault, f"{where}: row {number} counts {has}, should {wants} {self._near(number)}")

    def _firsts(self, where: str, expected: Mapping[int, Any], once: Mapping[int, Row]) -> None:
        by_text: defaultdict[str, list[int]] = defaultdict(list)
        for number, row in once.items():
            by_text[row["text"]].append(number)
        first = {self.rows[self.place[number]]["text"]: number for number in expected}
        for text, number in first.items():
            kept = by_text.get(text, [])
            if not kept:
                self.faults.add("lost", f"{where}: no row of {text}, should be row {number} {self._near(number)}")
            elif kept != [number]:
                fault = "doubled" if len(kept) > 1 else "out_of_order"
                self.faults.add(fault, f"{where}: rows {kept} of {text}, should be {number} {self._near(number)}")

    def _order(self, where: str, key: str, held: Sequence[Row]) -> bool:
        """Check that in a sink the rows of a key are in the order of the source; says whether they are."""
        last: dict[str, int] = {}
        ordered = True
        for row in held:
            place = self.place[row["id"]]
            if place < last.get(row[key], -1):
                ordered = False
                text = f"{where}: row {row['id']} of {row[key]} comes after a later one {self._near(row['id'])}"
                self.faults.add("out_of_order", text)
            last[row[key]] = max(place, last.get(row[key], -1))
        return ordered

    def _windows(self, name: str, held: Sequence[Row]) -> None:
        expected = expected_windows(self.rows)
        seen: Counter[tuple[str, int]] = Counter()
        for row in held:
            at = row["k"], int(datetime.fromisoformat(row["window_start"]).timestamp())
            seen[at] += 1
            count, total = expected.get(at, (0, 0.0))
            if row["n"] != count or abs(row["s"] - total) > 1e-6 * max(1.0, abs(total)):
                fault = "lost" if row["n"] < count else "doubled"
                self.faults.add(fault, f"{name}/windows: {at} has {row['n']} rows, should have {count}")
        last = max((at for _, at in expected), default=0)
        for at, times in seen.items():
            if times > 1:
                self.faults.add("doubled", f"{name}/windows: {at} is there {times} times", times - 1)
        for at in expected:
            # The last window is open: no later row has closed it.
            if at not in seen and at[1] != last:
                self.faults.add("lost", f"{name}/windows: {at} is not there")

    def _near(self, number: int) -> str:
        return f"({self.history.near(self.arrived[self.place[number]])})"


def _lives(timeline: Timeline, changes: Sequence[Change]) -> list[tuple[int, int]]:
    """The runs of rows over which a dataflow was there without a break; a submission begins a new one."""
    fresh = {part for part, change in enumerate(changes, 1) if change.kind == "submit"}
    lives: list[tuple[int, int]] = []
    last = 0
    for at, part in enumerate(timeline.parts):
        broken = any(timeline.labels[passed] is None or passed in fresh for passed in range(last + 1, part + 1))
        if timeline.labels[part] is None:
            last = part
            continue
        if not lives or broken or lives[-1][1] != at:
            lives.append((at, at))
        lives[-1] = (lives[-1][0], at + 1)
        last = part
    return lives
