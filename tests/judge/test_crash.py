"""Engines killed at durable steps and at random, judged from outside; ``headgate bench crash`` has more of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.store.durable_steps import MOMENTS, STEPS, VARIABLE
from tests.judge.campaign import ELSEWHERE, Limits, Result, kill_at_random, kill_at_steps, points
from tests.judge.joins import kill_while_joining
from tests.judge.processes import ROOT, WarmStarts
from tests.judge.verdict import FAULTS, Verdict

CHOSEN = {("after", "snapshot"), ("half", "commit")}

ONCE = 36
"""So many kills end each program of :mod:`tests.judge.pure` at each of its steps and moments once."""


@pytest.fixture
def warm() -> Iterator[WarmStarts]:
    starts = WarmStarts()
    yield starts
    starts.close()


@pytest.mark.spark
@pytest.mark.own_spark
@pytest.mark.timeout(600)
def test_killed_at_steps(tmp_path: Path, warm: WarmStarts) -> None:
    result = kill_at_steps(tmp_path, 11, "submit", CHOSEN, Limits(len(CHOSEN)), warm, print)
    assert result.stuck == []
    assert result.steps == CHOSEN
    assert _faults(result.verdict.counts) == set(), result.verdict


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(3600)
def test_killed_at_random(tmp_path: Path, warm: WarmStarts) -> None:
    result = kill_at_random(tmp_path, 12, Limits(21), warm, print)
    assert result.stuck == []
    assert result.made >= 18
    assert _faults(result.verdict.counts) == set(), result.verdict


def test_killed_without_spark(tmp_path: Path) -> None:
    environment = {**os.environ, VARIABLE: str(tmp_path / "aim")}
    command = [sys.executable, "-m", "tests.judge.pure", str(ONCE)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    outcome = json.loads(done.stdout)
    assert (outcome["kills"], outcome["wrong"]) == (ONCE, [])


def test_all_steps_and_moments_are_enumerated() -> None:
    assert len(points()) == len(set(points())) == len(MOMENTS) * (len(STEPS) - len(ELSEWHERE)) >= 72


def test_results_are_read_back_from_a_log() -> None:
    verdict = Verdict(Counter(lost=2), ["lost: row 1", "lost: row 2"], 10)
    result = Result(Counter(submit=3), {("half", "commit")}, {("after", "journal")}, verdict, [4.5], [9.0], ["why"])
    assert Result.from_dict(json.loads(json.dumps(result.as_dict()))) == result


def _faults(counts: dict[str, int]) -> set[str]:
    return {fault for fault in FAULTS if counts[fault]}


@pytest.mark.spark
@pytest.mark.own_spark
@pytest.mark.timeout(600)
def test_killed_while_dataflows_join(tmp_path: Path, warm: WarmStarts) -> None:
    wanted = {("before", "catch-up-bound"), ("after", "catch-up-bound"), ("half", "commit")}
    result = kill_while_joining(tmp_path, 13, wanted, Limits(len(wanted)), warm, print)
    assert result.stuck == []
    assert result.steps == wanted
    assert _faults(result.verdict.counts) == set(), result.verdict


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(7200)
def test_killed_at_any_step_while_dataflows_join(tmp_path: Path, warm: WarmStarts) -> None:
    kills, seed = int(os.environ.get("HEADGATE_JOIN_KILLS", "60")), int(os.environ.get("HEADGATE_JOIN_SEED", "14"))
    result = kill_while_joining(tmp_path, seed, points(), Limits(kills), warm, print)
    assert result.stuck == []
    assert result.made >= min(kills, 20)
    assert _faults(result.verdict.counts) == set(), result.verdict
