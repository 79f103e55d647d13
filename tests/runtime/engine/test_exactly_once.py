"""Exactly once: whatever kills the engine, no row is lost and none comes twice, in sinks and in what tasks remember."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.compared import compare
from tests.runtime.rig import rig_in

AIMS = (
    "before delivery 1",
    "after delivery 2",
    "before commit 3",
    "after commit 2",
    "after commit 7",
    "after deliver 2",
    "after deliver 9",
    "before deliver 14",
    "before done 2",
    "after done 2",
    "after done 5",
    "during stage 2",
    "during stage 7",
    "after stage 4",
    "before publish 3",
    "before batch 2",
    "after batch 4",
    "after head 3",
    "before head 6",
    "before position 2",
    "after position 5",
    "after plan_log 1",
    "before plan_log 2",
    "after move 3",
    "after move 8",
    "after hosts 1",
    "after dataflow 1",
    "before dataflow 2",
    "before snapshot 2",
    "after snapshot 1",
    "after fragment 1",
    "before start 3",
    "after start 2",
    "during remove-fragments 1",
    "after remove-fragments 1",
    "after first 1",
)
"""The moments at which an engine is killed on purpose: what is being written, and the how manieth time."""


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_two_kills(tmp_path: Path) -> None:
    with rig_in(tmp_path, seed=1) as rig:
        rig.killed_at_random()
        (rig.folder / "out" / "late").unlink()
        assert rig.killed_at("after commit 3"), rig.log()
        rig.finish()
        found = compare(rig)
    print(found)
    assert found["kills"] == 2
    assert found["of them committed"] >= 1


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(7200)
def test_kills_at_random_moments(tmp_path: Path) -> None:
    with rig_in(tmp_path, seed=2) as rig:
        for number in range(25):
            rig.killed_at_random(only_driver=number % 4 == 3)
            if number == 8:
                (rig.folder / "out" / "late").unlink()
        rig.finish()
        found = compare(rig)
    print(found)
    assert found["kills"] == 25
    assert found["kills after work"] >= 18
    assert found["epochs interrupted"] >= 18


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(7200)
def test_kills_at_chosen_moments(tmp_path: Path) -> None:
    with rig_in(tmp_path, seed=3) as rig:
        missed = []
        for number, aim in enumerate(AIMS):
            if not rig.killed_at(aim):
                missed.append(aim)
            if number == len(AIMS) // 2:
                (rig.folder / "out" / "late").unlink()
        rig.finish()
        found = compare(rig)
    print(found, "missed:", missed)
    assert found["kills aimed"] >= 25
    assert len(missed) <= len(AIMS) // 4, f"never came: {missed}"
