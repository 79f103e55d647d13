"""Every policy that decides for engines, through a rush: it is carried out, and decided again from its record."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.adaptation.controller.choice import PolicyChoice, PolicyMode
from headgate.adaptation.controller.guards import GuardRails
from headgate.adaptation.controller.live_policies import DEFAULT_POLICY, FALLBACK_POLICY, LIVE_POLICIES, live_policy
from headgate.adaptation.controller.records import decided_again, decision_document, recorded_decisions
from headgate.errors import InputError
from tests.adaptation.controller.world import World

RAILS = GuardRails(machines_max=6, floor_s=300.0)
NEED_MORE = ("receding", "drs")
"""Policies that need break-even costs or a latency to aim at, which this dataflow does not state."""


def rush(now: float) -> float:
    return 220.0 if 1_200 <= now < 1_800 else 50.0


@pytest.mark.parametrize("name", [name for name in LIVE_POLICIES if name not in NEED_MORE])
def test_a_policy_lives_through_a_rush(tmp_path: Path, name: str) -> None:
    world = World(tmp_path, live_policy, rate=rush, fallback=FALLBACK_POLICY, begins_with=2)
    world.controller.choose(world.now, PolicyChoice(name, PolicyMode.AUTO, RAILS))
    world.pass_time(600.0)
    world.restart()
    world.pass_time(900.0)
    records = [record for record in recorded_decisions(world.journal) if record.made.policy == name]
    for record in records:
        assert decision_document(decided_again(record, world.journal, live_policy(name))) == record.made.decision
    assert list(world.controller.under_way) == []
    assert 1 <= len(world.machines()) <= 6
    if not name.startswith("static"):
        assert records, "it never did anything"
        assert world.cluster.waiting < 2_000


@pytest.mark.parametrize("name", ["threshold", "ce", "ds2", "flink", "exact", "lookahead"])
def test_cores_that_come_are_used_though_the_source_reads_in_one_piece(tmp_path: Path, name: str) -> None:
    world = World(tmp_path, live_policy, rate=rush, rails=RAILS, fallback=FALLBACK_POLICY, in_one_piece=True)
    world.controller.choose(world.now, PolicyChoice(name, PolicyMode.AUTO, RAILS))
    world.pass_time(1_500.0)
    assert world.cluster.state()["partitions"] is not None
    assert world.cluster.waiting < 2_000


def test_policies_have_names_that_are_known() -> None:
    assert {DEFAULT_POLICY, FALLBACK_POLICY} <= set(LIVE_POLICIES)
    with pytest.raises(InputError, match="no policy 'thresold' decides for engines") as caught:
        live_policy("thresold")
    assert caught.value.parameters["nearest"] == "threshold"


def test_a_decision_is_made_again_with_the_settings_of_its_time(tmp_path: Path) -> None:
    settings = {"horizon_s": 300.0, "forecaster": "holt"}
    world = World(tmp_path, lambda name: live_policy(name, settings), rate=rush, rails=RAILS)
    world.controller.policy_settings = settings
    world.controller.choose(world.now, PolicyChoice("lookahead", PolicyMode.AUTO, RAILS))
    world.pass_time(1_500.0)
    records = [record for record in recorded_decisions(world.journal) if record.made.policy == "lookahead"]
    assert records
    for record in records:
        assert dict(record.made.settings) == settings
        again = decided_again(record, world.journal, live_policy("lookahead", record.made.settings))
        assert decision_document(again) == record.made.decision
