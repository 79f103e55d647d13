"""``headgate recommend`` and ``headgate replay`` on what a controller has recorded beside a fake engine."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headgate.adaptation.controller.choice import PolicyMode
from headgate.adaptation.controller.live_policies import live_policy
from headgate.model.cluster.observation import Observation
from headgate.service.recommend import recommend
from headgate.service.what_if import last_span, replay_past, what_if_facts, what_if_tables
from headgate.store.observations import ObservationHistory
from tests.adaptation.controller.world import World
from tests.cli.terminal import headgate


def _rate(now: float) -> float:
    return 150.0 if 1_300 < now < 1_900 else 40.0


def _recorded(folder: Path, monkeypatch: pytest.MonkeyPatch, mode: PolicyMode = PolicyMode.AUTO) -> World:
    """Twenty minutes of an engine: a quiet time, a rush, a quiet time."""
    world = World(folder, lambda _: live_policy("ce"), rate=_rate, mode=mode, begins_with=2)
    (folder / "version").write_text("1")
    history, observe = ObservationHistory(folder / "observations"), world.cluster.observations

    def noted() -> Sequence[Observation]:
        new = observe()
        for each in new:
            history.append(each)
        return new

    monkeypatch.setattr(world.cluster, "observations", noted)
    world.pass_time(1_200)
    world.journal.close()
    return world


def _content(folder: Path) -> str:
    """All that is on the disk."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return hashlib.sha256(b"".join(str(f).encode() + f.read_bytes() for f in files)).hexdigest()


def test_a_recommendation_is_a_decision_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = _recorded(tmp_path, monkeypatch)
    before = _content(tmp_path)
    for policy in ("exact", "ce", "ds2", "static"):
        answer = recommend(tmp_path, policy, world.now)
        assert answer["policy"] == policy
        assert answer["prediction"]["demand"] > 0
        assert answer["figures"]["usable_cores"] > 0
    assert _content(tmp_path) == before


def test_the_past_is_replayed_as_it_was_and_under_other_policies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = _recorded(tmp_path, monkeypatch)
    before = _content(tmp_path)
    asked = last_span(["static-peak", "ds2"], 3_600.0, now=world.now)
    result = replay_past(tmp_path, asked)
    (table,) = what_if_tables(what_if_facts(result))
    rows: dict[str, Any] = {str(row["policy"]): row for row in table.rows}
    measured, simulated = rows["as measured"], rows["as it was, simulated"]
    assert simulated["omega"] == pytest.approx(measured["omega"], abs=0.1)
    assert simulated["gamma"] == pytest.approx(measured["gamma"], abs=0.02)
    assert rows["static-peak"]["omega"] >= rows["ds2"]["omega"] - 1e-9
    assert rows["static-peak"]["cost"] > rows["ds2"]["cost"]
    assert "Error of the replay itself" in table.notes[0]
    came = result.simulated.input_per_s.sum() * result.simulated.setting.interval_s
    rush, whole = 600 * 150.0, result.simulated.hours[-1] * 3_600
    assert came == pytest.approx(rush + (whole - 600) * 40.0, rel=0.1)
    assert _content(tmp_path) == before


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = headgate("recommend", "--state", tmp_path / "nowhere")
    assert (ran.status, "no engine has run" in ran.err) == (2, True)
    _recorded(tmp_path, monkeypatch, PolicyMode.OFF)
    ran = headgate("replay", "--state", tmp_path)
    assert (ran.status, "no policy has ever decided" in ran.err) == (2, True)
