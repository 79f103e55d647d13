"""The judge against real engines: broken on purpose, or right and judged by a record that lies."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.judge.history import History
from tests.judge.rig import Rig, rig_in
from tests.judge.scenario import Scenario
from tests.judge.verdict import FAULTS, Verdict, judge

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]


def _ran(rig: Rig) -> Verdict:
    """An engine's run without kills: some changes, a few files at a time."""
    scenario = Scenario(rig)
    scenario.begin()
    with rig.fed():
        for kind in ("submit", "switch", "replace"):
            assert scenario.change(kind)
            time.sleep(4.0)
            rig.recover()
    return rig.finish()


def _faults(verdict: Verdict) -> set[str]:
    return {fault for fault in FAULTS if verdict.counts[fault]}


@pytest.mark.parametrize(
    ("sabotage", "fault"),
    [
        ("skip a write", "stale_plan"),
        ("drop a row", "lost"),
        ("double a delivery", "doubled"),
        ("reorder a file", "out_of_order"),
        ("run the old plan", "stale_plan"),
    ],
)
def test_an_engine_that_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sabotage: str, fault: str) -> None:
    monkeypatch.setenv("HEADGATE_JUDGE_SABOTAGE", sabotage)
    with rig_in(tmp_path, 21) as rig:
        verdict = _ran(rig)
    assert fault in _faults(verdict), verdict


def test_a_record_that_lies(tmp_path: Path) -> None:
    """An engine is right, and the record says that two files came in another order, or an answer an age before."""
    with rig_in(tmp_path, 22) as rig:
        assert _faults(_ran(rig)) == set()
        history, flows = rig.history, rig.flows
    first, second, *_ = [n for n, one in enumerate(history.arrivals) if len(one.rows) > 10]
    swapped = list(history.arrivals)
    for at, other in ((first, second), (second, first)):
        swapped[at] = replace(swapped[at], modified_ns=history.arrivals[other].modified_ns)
    reordered = History(swapped, history.changes)
    assert "out_of_order" in _faults(judge(reordered, flows, tmp_path))

    last = history.changes[-1]
    assert last.answered is not None
    early = replace(last, answered=history.arrivals[3].began)
    assert "stale_plan" in _faults(judge(History(history.arrivals, [*history.changes[:-1], early]), flows, tmp_path))
