"""When a run ends, and how it went."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.errors import InputError
from headgate.model.status import DataflowStatus, FragmentStatus
from headgate.service.run import EngineSettings, RunLimits, follow, stop, submit_given
from headgate.sharing.shared_set import SharedSet
from headgate.tasks.registry import default_registry

FLOW = DataflowStatus("a", "ana", "running", "", 3, 0, 5)
GOOD = FragmentStatus("f1", "a.read", "source", 3, 1, 1, 5, 5, 0.1, 0, None, 10.0)
BAD = FragmentStatus("f2", "b.read", "source", 3, 1, 1, 5, 5, 0.1, 0, "raised", 0.0)


class FakeRun:
    """An engine as a run sees it."""

    def __init__(self, fragments: Sequence[FragmentStatus], mendable: bool = False) -> None:
        self.fragments, self.is_mendable = fragments, mendable
        self.dataflows: tuple[Any, ...] = ()
        self.shared = SharedSet(default_registry())
        self.state = SimpleNamespace(path=Path("state"))
        self.log = Path("state/spark.log")
        self.rows_out, self.housekept = 5, 0
        self.idle = threading.Event()

    def about(self) -> dict[str, Any]:
        return {"state": "state"}

    def status(self) -> tuple[list[DataflowStatus], Sequence[FragmentStatus]]:
        return [DataflowStatus("a", "ana", "running", "", 3, 0, self.rows_out)], self.fragments

    def housekeep(self) -> None:
        self.housekept += 1

    def mendable(self) -> bool:
        return self.is_mendable

    def wait_until_idle(self, despite_failures: bool) -> None:
        self.idle.wait(10)

    def stop(self) -> None:
        self.rows_out += 2


def followed(engine: FakeRun, limits: RunLimits, shown: list[object]) -> str | None:
    return follow(cast(Any, engine), limits, threading.Event(), lambda flows, _: shown.append(flows))


def test_it_ends_when_time_is_up_or_all_is_processed() -> None:
    shown: list[object] = []
    engine = FakeRun([GOOD])
    assert followed(engine, RunLimits(for_s=0.05), shown) is None
    assert (engine.housekept, len(shown)) == (1, 1)
    engine.idle.set()
    assert followed(engine, RunLimits(until_idle=True), shown) is None


@pytest.mark.parametrize(
    ("fragments", "mendable", "serve", "ends"),
    [
        ([BAD], False, False, True),
        ([BAD, GOOD], False, False, False),
        ([BAD], True, False, False),
        ([BAD], False, True, False),
        ([], False, False, False),
    ],
)
def test_it_ends_early_only_if_nothing_is_left_to_run(
    fragments: list[FragmentStatus], mendable: bool, serve: bool, ends: bool
) -> None:
    reason = followed(FakeRun(fragments, mendable), RunLimits(for_s=0.05, serve=serve), [])
    assert (reason is not None) == ends


def test_the_result_has_the_rows_that_came_out_while_it_stopped() -> None:
    result = stop(cast(Any, FakeRun([GOOD])), lambda *_: None)
    assert [flow.rows_out for flow in result.dataflows] == [7]
    assert not result.failed
    assert stop(cast(Any, FakeRun([BAD])), lambda *_: None).as_dict(1.0)["failed"]


def test_nothing_to_run() -> None:
    with pytest.raises(InputError) as caught:
        submit_given(cast(Any, FakeRun([])), [], replace=False, serve=False)
    assert caught.value.condition == "NOTHING_TO_RUN"
    submit_given(cast(Any, FakeRun([])), [], replace=False, serve=True)


def test_one_place_to_run(tmp_path: Path) -> None:
    registry = default_registry()
    assert EngineSettings(tmp_path, registry).provider() is None
    for settings, condition in [
        (EngineSettings(tmp_path, registry, "yarn", tmp_path), "TWO_MASTERS"),
        (EngineSettings(tmp_path, registry, None, tmp_path), "NO_CLUSTER"),
    ]:
        with pytest.raises(InputError) as caught:
            settings.provider()
        assert caught.value.condition == condition
