"""Exactly once: whatever kills the engine, no row is lost and none comes twice, in sinks and in what tasks remember."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.compared import compare
from tests.runtime.rig import rig_in

pytestmark = [pytest.mark.spark, pytest.mark.own_spark]

AIMS = (
    "before outbox 1",
    "half outbox-files 1",
    "after outbox 2",
    "before commit 3",
    "half commit 2",
    "after commit 2",
    "after commit 7",
    "after delivery 2",
    "after delivery 9",
    "before delivery 14",
    "before delivered 2",
    "half delivered 3",
    "after delivered 2",
    "after delivered 5",
    "before batch-files 3",
    "half batch-files 5",
    "before batch 2",
    "half batch 3",
    "after batch 4",
    "half head 2",
    "after head 3",
    "before head 6",
    "before position 2",
    "half position 3",
    "after position 5",
    "half commit 4",
    "before usage 2",
    "after hosts 1",
    "after dataflow 1",
    "before dataflow 2",
    "before snapshot 2",
    "half snapshot 2",
    "after snapshot 1",
    "after fragment 1",
    "half fragment-removed 1",
    "after fragment-removed 1",
    "after first 1",
)
"""The moments at which an engine is killed on purpose: what is being written, and the how manieth time."""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_kill_between_commit_and_delivery(tmp_path: Path) -> None:
    with rig_in(tmp_path, seed=1) as rig:
        assert rig.killed_at("after commit 3"), rig.log()
        (rig.folder / "out" / "late").unlink()
        rig.finish()
        found = compare(rig)
    print(found)
    assert found["kills"] == 1
    assert found["of them committed"] >= 1


@pytest.mark.slow
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
