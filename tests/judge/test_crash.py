"""Engines killed at durable steps and at random, judged from outside; ``headgate bench crash`` has more of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.store.durable_steps import VARIABLE
from tests.judge.campaign import StepKill, kill_at_random, kill_at_steps, step_kills
from tests.judge.processes import ROOT
from tests.judge.verdict import FAULTS

CHOSEN = (
    StepKill("after", "snapshot", "submit"),
    StepKill("half", "commit", "withdraw"),
)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_killed_at_steps(tmp_path: Path) -> None:
    result = kill_at_steps(tmp_path, 11, CHOSEN, print)
    assert result.stuck == []
    assert sum(result.kills.values()) == len(CHOSEN), result.unreached
    assert _faults(result.verdict.counts) == set(), result.verdict


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(3600)
def test_killed_at_random(tmp_path: Path) -> None:
    result = kill_at_random(tmp_path, 12, 21, print)
    assert result.stuck == []
    assert sum(result.kills.values()) >= 18
    assert _faults(result.verdict.counts) == set(), result.verdict


def test_killed_without_spark(tmp_path: Path) -> None:
    environment = {**os.environ, VARIABLE: str(tmp_path / "aim")}
    command = [sys.executable, "-m", "tests.judge.pure", "30"]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    outcome = json.loads(done.stdout)
    assert (outcome["kills"], outcome["wrong"]) == (30, [])


def test_all_steps_moments_and_kinds_are_enumerated() -> None:
    kills = step_kills(1)
    assert len({(kill.moment, kill.step, kill.kind) for kill in kills}) == len(kills) >= 400


def _faults(counts: dict[str, int]) -> set[str]:
    return {fault for fault in FAULTS if counts[fault]}
