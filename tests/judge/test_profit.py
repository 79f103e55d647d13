"""The judge of profit judged: on files whose figures follow from how they were made."""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.judge import profit
from tests.judge.profit import Judged, judge_profit

T = 1_000_000.0
PROMISE = {
    "sinks": {"out": {"of": 1, "is": 0}},
    "tasks": 4,
    "values": {"score": {"best": 1.0, "quick": 0.6}},
    "throughput_min": 0.8,
    "throughput_tolerance": 0.05,
    "latency_max_s": 3.0,
    "break_even_at_best_per_h": "0.5",
    "break_even_at_worst_per_h": "0.3",
}


def write(folder: Path, name: str, lines: Iterable[Mapping[str, Any]]) -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = list(lines)
    random.Random(0).shuffle(lines)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def world(folder: Path, rows: Iterable[tuple[float, float | None, str]], **promise: Any) -> None:
    """Rows: when each came, when it was at the sink (or never), and by which alternate; two machines."""
    kept = list(rows)
    write(folder, "generated.jsonl", ({"id": n, "at": came} for n, (came, _, _) in enumerate(kept)))
    there = [(n, at, way) for n, (_, at, way) in enumerate(kept) if at is not None]
    write(folder, "sinks/out.jsonl", ({"id": n, "at": at, "label": {"score": way}} for n, at, way in there))
    (folder / "promises.json").write_text(json.dumps({"d": {**PROMISE, **promise}}))
    (folder / "billing.json").write_text(json.dumps({"period_s": 600, "least_s": 0}))
    (folder / "usage.jsonl").write_text(
        json.dumps({"at": T, "tasks": [["d"], ["d"], ["d"], ["d"]]})
        + "\n"
        + json.dumps({"at": T + 900, "tasks": [["d"], ["d"], ["d"], ["d", "e"], ["e"]]})
        + "\n"
    )
    acquired = {"event": "acquired", "vm_class": {"cores": 2, "price_per_h": "0.36"}}
    events = [
        {**acquired, "machine": "a", "at": T},
        {**acquired, "machine": "b", "at": T + 300},
        {"event": "ready", "machine": "b", "at": T + 360},
        {"event": "released", "machine": "b", "at": T + 1_000},
    ]
    (folder / "acquisitions.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))


def judged(folder: Path, ended: float = 1_200, window_s: float = 100) -> Judged:
    return judge_profit(folder, T, T + ended, window_s)


def steady(delay_s: float = 1.0, way: str = "best") -> list[tuple[float, float | None, str]]:
    return [(T + n + 0.5, T + n + 0.5 + delay_s, way) for n in range(1_200)]


def test_rows_that_all_come_through(tmp_path: Path) -> None:
    """One row a second, a second late: one of a hundred is under way at the end of the first window, and so on."""
    world(tmp_path, steady())
    own = judged(tmp_path).dataflows["d"]
    assert own.omega == pytest.approx((99 / 100 + 11 * 100 / 101) / 12)
    assert (own.gamma, own.violations) == (1.0, 0.0)
    assert own.latency_s == pytest.approx(1.0)


def test_rows_that_wait_and_rows_that_never_come(tmp_path: Path) -> None:
    """Every second row is never delivered: what is missing adds up, window by window."""
    world(tmp_path, [(came, at if n % 2 else None, way) for n, (came, at, way) in enumerate(steady(0.25))])
    own = judged(tmp_path).dataflows["d"]
    wanted = [50 / (50 + 50 * (window + 1)) for window in range(12)]
    assert own.omega == pytest.approx(sum(wanted) / 12)
    assert own.violations == 1.0


def test_late_rows_are_a_violation(tmp_path: Path) -> None:
    world(tmp_path, [(came, came + (4.0 if 300 <= came - T < 400 else 1.0), way) for came, _, way in steady()])
    own = judged(tmp_path).dataflows["d"]
    assert own.violations == pytest.approx(1 / 12), "those that came late in the fourth window, and few in the fifth"


def test_value_is_a_mean_over_time(tmp_path: Path) -> None:
    rows = [(came, at, "quick" if 600 <= came - T < 900 else "best") for came, at, _ in steady()]
    world(tmp_path, rows)
    own = judged(tmp_path).dataflows["d"]
    assert own.gamma == pytest.approx(1 - 0.25 * 0.4 / 4, abs=1e-9)


def test_money_is_exact(tmp_path: Path) -> None:
    """0.36 an hour is a hundredth of a cent a second: machine a runs on, b is held 700 s and paid 1,200."""
    world(tmp_path, steady())
    verdict = judged(tmp_path)
    cent = Fraction(1, 10_000)
    assert Fraction(verdict.bill) == (1_200 + 1_200) * cent
    # Alone until 900 s; then five tasks, of which three are d's and one is shared. What b has left is for these too.
    d_of = Fraction(7, 10)
    own = 900 * cent + 300 * cent * d_of + 600 * cent + (100 + 500) * cent * d_of
    assert Fraction(verdict.dataflows["d"].cost) == own
    used = (900 + 600 + (300 + 100) * d_of) * cent
    assert verdict.dataflows["d"].cost_per_h == pytest.approx(float(used * 3))
    lowest = 0.9
    theta = 0.0 - (1 - lowest) / 0.2 * (float(used * 3) - 0.5)
    assert verdict.theta == verdict.dataflows["d"].theta == pytest.approx(theta)
    assert verdict.core_hours == pytest.approx(2 * (1_200 + 700) / 3_600)


def test_a_machine_that_comes_later_costs_nothing_now(tmp_path: Path) -> None:
    world(tmp_path, steady())
    verdict = judged(tmp_path, ended=200)
    assert Fraction(verdict.bill) == Fraction(200, 10_000)
    assert verdict.core_hours == pytest.approx(2 * 200 / 3_600)


def test_a_row_at_the_wrong_sink_is_noticed(tmp_path: Path) -> None:
    world(tmp_path, steady(), sinks={"out": {"of": 2, "is": 0}})
    with pytest.raises(AssertionError, match="does not belong"):
        judged(tmp_path)


def test_the_judge_imports_nothing_of_headgate() -> None:
    tree = ast.parse(Path(profit.__file__).read_text(encoding="utf-8"))
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names += [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    assert not [name for name in names if "headgate" in name or name.startswith("tests")]
