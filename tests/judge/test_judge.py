"""The judge judged: it finds what was done to sinks on purpose, and nothing where all is right."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.judge.flows import WINDOW_S, Flow, expected_values, expected_windows, passes
from tests.judge.history import Arrival, Change, History, Kill, Row
from tests.judge.verdict import FAULTS, judge, judge_rows

Held = dict[tuple[str, str], list[dict[str, Any]]]
BASE = Flow("base", "ann", ("rows", "counts", "firsts", "windows"), "base")
GUEST = Flow("guest", "bob", ("rows", "counts", "own"), "guest.1")
OTHER = Flow("other", "bob", ("rows",), "other.1")
FILES, ROWS = 40, 12


def _row(number: int) -> dict[str, Any]:
    value = -1.0 if number % 11 == 0 else float(number % 7 + 1)
    second, text = f"{number // 10 % 60:02d}", f"t{number // 50}-{number * 7 % 20}"
    at = f"2026-01-01T00:{number // 600:02d}:{second}.{number % 10}+00:00"
    return {"id": number, "k": f"k{number * 5 % 3}", "v": value, "at": at, "text": text}


def _history() -> History:
    """A file a second; guest and other come at 10, the guest is replaced at 20 and withdrawn at 30."""
    arrivals = [
        Arrival(f"{99 - n}.json", n * 10**9, [_row(n * ROWS + m) for m in range(ROWS)], float(n), n + 0.01)
        for n in range(FILES)
    ]
    changes = [
        Change("submit", {"base": "base"}, -1.0, -0.5, True),
        Change("submit", {"guest": "guest.1", "other": "other.1"}, 9.3, 9.6, True),
        Change("replace", {"guest": "guest.2"}, 19.3, 19.6, True),
        Change("withdraw", {"guest": None}, 29.3, 29.6, True),
    ]
    return History(arrivals, changes, [Kill(25.0, "engine")])


def _made(rows: Sequence[Row], label: str, output: str, among: Sequence[Row], name: str = "") -> list[dict[str, Any]]:
    values = expected_values(output, among)
    column = {"counts": "n", "own": f"n_{name}"}.get(output)
    kept = [row for row in rows if row["id"] in values]
    return [{**row, "label": label, **({column: values[row["id"]]} if column else {})} for row in kept]


def _right(history: History) -> Held:
    """What the sinks hold if all is right."""
    rows = [row for row, _ in history.rows() if passes(row)]
    late, gone = ([row for row in rows if row["id"] >= file * ROWS] for file in (10, 30))
    second = [row for row in late if row["id"] >= 20 * ROWS and row not in gone]
    first = [row for row in late if row not in second and row not in gone]
    held: Held = {("base", output): _made(rows, "base", output, rows) for output in ("rows", "counts", "firsts")}
    windows = expected_windows(rows)
    last = max(at for _, at in windows)
    held["base", "windows"] = [
        {"k": k, "window_start": _time(at), "window_end": _time(at + WINDOW_S), "n": n, "s": s}
        for (k, at), (n, s) in windows.items()
        if at != last
    ]
    for output, among in [("rows", rows), ("counts", rows), ("own", [*first, *second])]:
        made = _made(first, "guest.1", output, among, "guest") + _made(second, "guest.2", output, among, "guest")
        held["guest", output] = made
    held["other", "rows"] = _made(late, "other.1", "rows", rows)
    return held


def _time(second: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(second, UTC).isoformat()


def _faults(history: History, held: Mapping[tuple[str, str], Sequence[Row]]) -> dict[str, int]:
    verdict = judge_rows(history, held)
    print(verdict)
    return {fault: verdict.counts[fault] for fault in FAULTS if verdict.counts[fault]}


def test_right_is_right() -> None:
    history = _history()
    verdict = judge_rows(history, _right(history))
    assert verdict.is_right, verdict
    assert verdict.rows > 1_500


def test_rows_around_a_request_may_fall_on_either_side() -> None:
    """Rows that arrived before the answer may have been processed before the change, after it, or some of each."""
    history = _history()
    for file in (3, 8, 9):  # the guest began with rows that waited, as many as there were
        early = replace(history.changes[1], labels={"guest": "guest.1", "other": "other.1"})
        assert early.answered is not None
        held = _right(history)
        rows = [row for row, _ in history.rows() if passes(row)]
        before = [row for row in rows if file * ROWS <= row["id"] < 10 * ROWS]
        for name, label in (("guest", "guest.1"), ("other", "other.1")):
            held[name, "rows"] = _made(before, label, "rows", rows) + held[name, "rows"]
        held["guest", "counts"] = _made(before, "guest.1", "counts", rows) + held["guest", "counts"]
        life = [row for row in rows if file * ROWS <= row["id"] < 30 * ROWS]
        labels = {row["id"]: row["label"] for row in held["guest", "rows"]}
        held["guest", "own"] = [
            {**row, "label": labels[row["id"]], "n_guest": value}
            for row, value in zip(life, expected_values("own", life).values(), strict=True)
        ]
        assert _faults(history, held) == {}


def test_a_change_that_nobody_answered_is_wholly_there_or_not() -> None:
    history = _history()
    open_change = replace(history.changes[1], answered=None, made=None)
    history.changes[1:] = [open_change]
    held = {key: rows for key, rows in _right(_history()).items() if key[0] != "guest"}
    assert _faults(history, held) == {}, "made"
    assert _faults(history, {**held, ("other", "rows"): []}) == {}, "not made"
    holes = [row for row in held["other", "rows"] if not 250 < row["id"] < 260]
    assert _faults(history, {**held, ("other", "rows"): holes}) == {"lost": len(held["other", "rows"]) - len(holes)}
    history.changes[1] = replace(open_change, made=False)
    assert set(_faults(history, held)) == {"half_applied"}


# the engine broken on purpose, in what comes out of it


def _drop_a_row(history: History, held: Held) -> None:
    held["guest", "rows"].pop(50)


def _lose_a_log_write(history: History, held: Held) -> None:
    """A commit was not on the disk: an epoch's rows were counted by the keyed task, and written nowhere."""
    held["base", "counts"] = [row for row in held["base", "counts"] if not 60 <= row["id"] < 84]


def _double_a_delivery(history: History, held: Held) -> None:
    held["base", "rows"] += [row for row in held["base", "rows"] if 60 <= row["id"] < 84]


def _reorder_a_file(history: History, held: Held) -> None:
    """Two files change places before a keyed task."""
    rows = [row for row, _ in history.rows() if passes(row)]
    swapped = [*(r for r in rows if r["id"] < 60), *(r for r in rows if 72 <= r["id"] < 84)]
    swapped += [*(r for r in rows if 60 <= r["id"] < 72), *(r for r in rows if r["id"] >= 84)]
    held["base", "counts"] = _made(swapped, "base", "counts", swapped)
    held["base", "firsts"] = _made(swapped, "base", "firsts", swapped)


def _replay_a_submission_under_the_old_plan(history: History, held: Held) -> None:
    """The first epoch after an answered submission ran the snapshot before it."""
    for output in ("rows", "counts"):
        held["guest", output] = [row for row in held["guest", output] if row["id"] >= 12 * ROWS]
    held["other", "rows"] = [row for row in held["other", "rows"] if row["id"] >= 12 * ROWS]
    life = [row for row, _ in history.rows() if passes(row) and 12 * ROWS <= row["id"] < 30 * ROWS]
    values = expected_values("own", life)
    labels = {row["id"]: row["label"] for row in held["guest", "rows"]}
    held["guest", "own"] = [{**row, "label": labels[row["id"]], "n_guest": values[row["id"]]} for row in life]


def _replay_a_withdrawal_under_the_old_plan(history: History, held: Held) -> None:
    rows = [row for row, _ in history.rows() if passes(row)]
    more = [row for row in rows if 30 * ROWS <= row["id"] < 33 * ROWS]
    life = [row for row in rows if 10 * ROWS <= row["id"] < 33 * ROWS]
    held["guest", "rows"] += _made(more, "guest.2", "rows", rows)
    held["guest", "counts"] += _made(more, "guest.2", "counts", rows)
    held["guest", "own"] += _made(more, "guest.2", "own", life, "guest")


def _replay_a_replacement_under_the_old_plan(history: History, held: Held) -> None:
    for output in ("rows", "counts", "own"):
        for row in held["guest", output]:
            if 20 * ROWS <= row["id"] < 22 * ROWS:
                row["label"] = "guest.1"


def _apply_half_of_a_submission(history: History, held: Held) -> None:
    """One of two dataflows of a request came an epoch before the other, with rows that had arrived before."""
    rows = [row for row, _ in history.rows() if passes(row)]
    early = [row for row in rows if 7 * ROWS <= row["id"] < 10 * ROWS]
    held["other", "rows"] = _made(early, "other.1", "rows", rows) + held["other", "rows"]


def _forget_state(history: History, held: Held) -> None:
    """A keyed task began anew after a kill."""
    rows = [row for row, _ in history.rows() if passes(row)]
    after = [row for row in rows if row["id"] >= 25 * ROWS]
    before = [row for row in held["base", "counts"] if row["id"] < 25 * ROWS]
    held["base", "counts"] = before + _made(after, "base", "counts", after)


def _lose_a_window(history: History, held: Held) -> None:
    held["base", "windows"].pop(5)


def _double_the_rows_of_a_window(history: History, held: Held) -> None:
    held["base", "windows"][5]["n"] += 1


@pytest.mark.parametrize(
    ("broken", "faults"),
    [
        (_drop_a_row, {"lost"}),
        (_lose_a_log_write, {"lost"}),
        (_double_a_delivery, {"doubled"}),
        (_reorder_a_file, {"out_of_order"}),
        (_replay_a_submission_under_the_old_plan, {"stale_plan"}),
        (_replay_a_withdrawal_under_the_old_plan, {"stale_plan"}),
        (_replay_a_replacement_under_the_old_plan, {"stale_plan"}),
        (_apply_half_of_a_submission, {"half_applied"}),
        (_forget_state, {"lost"}),
        (_lose_a_window, {"lost"}),
        (_double_the_rows_of_a_window, {"doubled"}),
    ],
)
def test_catches(broken: Callable[[History, Held], None], faults: set[str]) -> None:
    history = _history()
    held = _right(history)
    broken(history, held)
    assert set(_faults(history, held)) == faults


def test_names_the_rows_and_the_kill() -> None:
    history = _history()
    held = _right(history)
    gone = held["base", "rows"].pop(230)
    (evidence,) = judge_rows(history, held).evidence
    assert evidence.startswith(f"lost: base/rows: row {gone['id']} is not there, should be base")
    assert "engine at" in evidence


def test_reads_sinks_as_a_user_does(tmp_path: Path) -> None:
    history = _history()
    for (name, output), rows in _right(history).items():
        folder = tmp_path / "out" / name / output
        folder.mkdir(parents=True)
        for number in range(0, len(rows), 100):
            lines = "".join(json.dumps(row) + "\n" for row in rows[number : number + 100])
            (folder / f"part-{number:08d}-source-0a1b-77ff-{number + 2}-0.json").write_text(lines)
    verdict = judge(history, [BASE, GUEST, OTHER], tmp_path)
    assert verdict.is_right, verdict


def test_imports_nothing_of_what_it_judges() -> None:
    code = "import sys, tests.judge.verdict, tests.judge.rig, tests.judge.scenario; print('\\n'.join(sys.modules))"
    root = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    rooms = ("headgate.runtime", "headgate.sharing", "headgate.tasks", "pyspark")
    assert [name for name in run.stdout.split() if name.startswith(rooms)] == []
