"""Long work runs beside the engine: its answer is what the command computes; it shows progress and can be ended."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import InputError
from headgate.service.operations import Operations
from headgate.service.what_if import WhatIf, replay_past, what_if_facts
from tests.cli.test_replay_policies import _recorded

PATIENCE_S = 240.0
"""Operations have less priority than all else on a busy machine."""


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patched:
        _recorded(folder, patched)
    return folder


@pytest.fixture
def notes() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def operations(state: Path, tmp_path: Path, notes: list[dict[str, Any]]) -> Iterator[Operations]:
    shutil.copytree(state, tmp_path / "state")
    made = Operations(tmp_path / "state", lambda facts: notes.append(dict(facts)))
    yield made
    made.close()


def question(**more: Any) -> dict[str, Any]:
    return {"policies": ["static-peak", "ds2"], "since": 0.0, "until": 1e11, **more}


def ended(operations: Operations, name: str) -> dict[str, Any]:
    until = time.monotonic() + PATIENCE_S
    while (seen := operations.get(name))["state"] == "running":
        assert time.monotonic() < until, seen
        time.sleep(0.02)
    return seen


def test_the_answer_is_what_the_command_computes(operations: Operations, notes: list[dict[str, Any]]) -> None:
    asked = question(rate_factor=2.0, price_factor=3.0)
    first = operations.what_if("ana", asked, "key")
    assert operations.what_if("ana", asked, "key")["id"] == first["id"], "asked for twice, it is done once"
    with pytest.raises(InputError, match="another request"):
        operations.what_if("ana", question(), "key")
    seen = ended(operations, first["id"])
    assert seen["state"] == "done", seen
    computed = what_if_facts(replay_past(operations.state, WhatIf(("static-peak", "ds2"), 0.0, 1e11, 2.0, 3.0)))
    assert seen["result"] == json.loads(json.dumps(computed))
    assert notes[-1]["state"] == "done"
    progress = [one["progress"] for one in notes]
    assert progress == sorted(progress)
    assert len(set(progress)) > 2
    again = Operations(operations.state, lambda _: None)
    assert again.get(first["id"])["result"] == seen["result"], "it is kept"
    plain = what_if_facts(replay_past(operations.state, WhatIf(("static-peak",), 0.0, 1e11)))
    dearer = what_if_facts(replay_past(operations.state, WhatIf(("static-peak",), 0.0, 1e11, 1.0, 3.0)))
    assert dearer["runs"][1]["cost"] == pytest.approx(3 * plain["runs"][1]["cost"])
    came = [sum(one["runs"][1]["series"]["input_per_s"]) for one in (plain, computed)]
    assert came[1] == pytest.approx(2 * came[0], rel=0.05)


def test_it_can_be_ended_and_what_is_wrong_is_said(operations: Operations) -> None:
    endless = operations.what_if("ana", question(policies=["exact"] * 8))
    seen = operations.cancel(endless["id"])
    assert (seen["state"], seen["result"]) == ("cancelled", None)
    assert operations.cancel(endless["id"])["state"] == "cancelled"
    wrong = operations.what_if("ana", question(policies=["exakt"]))
    assert "did you mean" in ended(operations, wrong["id"])["problem"]["message"]
    early = operations.what_if("ana", question(until=5.0))
    assert ended(operations, early["id"])["problem"]["condition"] == "BAD_OBSERVATIONS"
    assert [one["id"] for one in operations.listing()] == [early["id"], wrong["id"], endless["id"]]
    with pytest.raises(InputError, match="no operation"):
        operations.get("../journal")


def test_not_more_than_some_at_a_time_and_none_outlives_the_engine(operations: Operations) -> None:
    running = [operations.what_if("ana", question(policies=["exact"] * 8))["id"] for _ in range(2)]
    with pytest.raises(InputError, match="run already"):
        operations.what_if("ana", question())
    killed = Operations(operations.state, lambda _: None)
    assert killed.get(running[0])["state"] == "interrupted", "what another engine has begun and not ended"
    operations.close()
    assert [operations.get(name)["state"] for name in running] == ["cancelled", "cancelled"]
