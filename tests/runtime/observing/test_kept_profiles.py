"""Profiles outlive the engine, and are found by whatever does the same on the same columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from headgate.adaptation.costs import CostedTask, alternate_costs
from headgate.model.cluster.alternate_cost import Origin
from headgate.model.cluster.observation import TaskProfile
from headgate.model.names import Signature, TaskId
from headgate.runtime.compile.plan import CompiledPlan, CompiledTask
from headgate.runtime.observing.kept_profiles import KeptProfiles
from headgate.store.profiles import MOST, ProfileStore
from headgate.tasks.registry import default_registry
from tests.compiled import plan_of
from tests.runtime.small import files, flow, memory

PROFILE = TaskProfile(1_000, 0.002, 0.012, 0.0005, 7, 0.1)
WAYS = [
    {"name": name, "type": "derive", "config": {"columns": {"w": f"v {sign} 1"}}, "value": value}
    for name, sign, value in (("more", "+", 1), ("less", "-", 0.5))
]


class FakeSchemas:
    """The columns of a source are told by its path."""

    def of(self, plan: CompiledPlan, task: CompiledTask) -> StructType:
        del plan
        wide = [StructField("w", StringType())] if "wide" in task.alternate.config.text else []
        return StructType([StructField("id", LongType()), *wide])


def kept(state: Path) -> KeptProfiles:
    return KeptProfiles(state, cast(Any, FakeSchemas()))


def plan(name: str, source: str) -> tuple[CompiledPlan, Signature]:
    made = flow(name, {"id": "src", **files(Path(source))}, {"id": "score", "alternates": WAYS}, memory(name))
    compiled = plan_of(made)
    (score,) = [task.signature for task in compiled.tasks.values() if task.running.task.id == TaskId("score")]
    return compiled, score


def test_who_does_the_same_on_the_same_columns_knows_it(tmp_path: Path) -> None:
    today, score = plan("today", "in")
    first = kept(tmp_path)
    first.keep(today, {(score, "more"): PROFILE}, speed=None)
    assert first.of(today) == {}, "without a speed it is not known what it is on the reference core"
    first.keep(today, {(score, "more"): PROFILE, (Signature("gone"), "x"): PROFILE}, speed=0.5)
    tomorrow, other = plan("tomorrow", "elsewhere")
    assert other != score
    known = kept(tmp_path).of(tomorrow)
    assert known.keys() == {(other, "more")}, "of the alternate that was measured"
    assert known[other, "more"].cpu_s_per_row == pytest.approx(0.001), "half as long on a core twice as fast"
    assert known[other, "more"].sojourn_s_per_row == pytest.approx(0.011), "waiting takes as long"
    wide, _ = plan("wide", "wide")
    assert kept(tmp_path).of(wide) == {}, "other columns, another cost"
    task = tomorrow.tasks[other].running.task
    costs = alternate_costs([CostedTask(other, task, "more")], default_registry(), {}, known)
    assert {cost.alternate: cost.origin for cost in costs} == {"more": Origin.STORED, "less": Origin.DEFAULT}


def test_the_file_stays_small_and_the_newest_stay(tmp_path: Path) -> None:
    store = ProfileStore(tmp_path / "profiles.json")
    store.keep({str(number): PROFILE for number in range(MOST)})
    store.keep({"0": replace(PROFILE, rows=5)})
    store.keep({"new": PROFILE})
    again = ProfileStore(tmp_path / "profiles.json")
    assert again.of("0") == replace(PROFILE, rows=5), "renewed, so it is not the oldest"
    assert again.of("new") == PROFILE
    assert again.of("1") is None
    written = (tmp_path / "profiles.json").stat().st_mtime_ns
    store.keep({"new": PROFILE})
    assert (tmp_path / "profiles.json").stat().st_mtime_ns == written, "nothing new, nothing written"
