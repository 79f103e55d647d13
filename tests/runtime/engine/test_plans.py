"""A state directory holds each dataflow once; a submission is signed and merged once; older layouts open."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headgate.sharing.deduplicate as deduplicate_module
import headgate.sharing.running as running_module
from headgate.documents.document import to_document
from headgate.errors import HeadgateError, InputError
from headgate.model.dataflow import Dataflow
from headgate.runtime.engine.pending_change import PendingChange
from headgate.runtime.engine.plans import Plans
from headgate.runtime.engine.state import StateDirectory
from headgate.service.load import load
from headgate.service.submission import split_submission
from headgate.sharing.applied import Applied
from headgate.sharing.deduplicate import SignedDataflow
from headgate.sharing.shared_set import SharedSet
from headgate.sharing.signature import sign
from headgate.tasks.registry import default_registry
from tests.runtime.small import files, flow, memory

REGISTRY = default_registry()


class Directory:
    """A state directory without Spark: all that a change does before fragments take part."""

    def __init__(self, path: Path) -> None:
        self.state = StateDirectory(path)
        try:
            self.plans = Plans(self.state, REGISTRY)
        except BaseException:
            self.state.close()
            raise

    @property
    def shared(self) -> SharedSet:
        return self.plans.snapshot.shared

    def publish(self, change: PendingChange) -> None:
        snapshot, plan = change.compiled(self.plans.current)
        self.plans.prepare(plan)
        self.plans.publish(snapshot, plan, change.new)

    def submit(self, *dataflows: Dataflow | SignedDataflow, replace: bool = False, before: Any = None) -> Applied:
        change = PendingChange(self.plans.snapshot)
        change = change.making_room(dataflows) if replace else change
        for dataflow in dataflows:
            change = change.submitted(dataflow)
        del before
        self.publish(change)
        return Applied(self.plans.current.number, change.submissions, change.withdrawals, (), (), ())

    def about(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        self.state.close()


def small(name: str, least: int) -> Dataflow:
    keep = {"id": "keep", "type": "filter", "config": {"where": f"v > {least}"}}
    count = {"id": "n", "type": "count", "config": {"key": ["k"], "into": "n"}}
    return flow(name, {"id": "src", **files(Path("in"))}, keep, count, memory(name))


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a dataflow is signed and merged, wherever that is called from."""
    counts: Counter[str] = Counter()

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if name != "deduplicate" or not isinstance(arguments[0], SignedDataflow):
                counts[name] += 1
            return function(*arguments)

        return call

    monkeypatch.setattr(deduplicate_module, "sign", counting("sign", sign))
    original = deduplicate_module.deduplicate
    wrapped = counting("deduplicate", original)
    for module in [module for name, module in sys.modules.items() if name.startswith("headgate")]:
        if getattr(module, "deduplicate", None) is original:
            monkeypatch.setattr(module, "deduplicate", wrapped)
    merged = running_module.RunningSet.submit
    monkeypatch.setattr(running_module.RunningSet, "submit", counting("merge", merged))
    return counts


def test_a_submission_is_signed_and_merged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the file to the published plan, as ``headgate run`` does it in one process."""
    directory = Directory(tmp_path / "state")
    for number in range(3):
        directory.submit(small(f"before{number}", number))
    file = tmp_path / "new.json"
    file.write_text(json.dumps(to_document(small("new", 2))))
    counts = counted(monkeypatch)
    todo = split_submission(directory.shared.running, [load(file, REGISTRY).signed], replace=False)
    directory.submit(*todo.new)
    assert counts == {"sign": 1, "deduplicate": 1, "merge": 1}
    directory.close()


def test_a_server_signs_and_merges_a_submission_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headgate.service.submit import submit

    directory = Directory(tmp_path / "state")
    directory.submit(small("before", 1))
    document = to_document(small("new", 2))
    counts = counted(monkeypatch)
    answer = submit(directory, [document], REGISTRY)  # type: ignore[arg-type]
    assert [one["dataflow"] for one in answer["submitted"]] == ["new"]
    assert counts == {"sign": 1, "deduplicate": 1, "merge": 1}
    directory.close()


def test_a_restart_signs_and_checks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = Directory(tmp_path)
    for number in range(3):
        directory.submit(small(f"flow{number}", number))
    before = directory.plans
    directory.close()
    counts = counted(monkeypatch)
    monkeypatch.setattr("headgate.documents.check.check", None)
    again = Directory(tmp_path)
    assert counts == {"merge": 3}
    assert again.plans.current.fragments == before.current.fragments
    assert again.plans.snapshot.dataflows == before.snapshot.dataflows
    again.close()


def test_a_change_writes_the_dataflows_that_are_new_in_it(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    directory.submit(small("one", 1), small("two", 2))
    (first, second) = sorted((tmp_path / "dataflows").iterdir())
    times = [first.stat().st_mtime_ns, second.stat().st_mtime_ns]
    directory.submit(small("three", 3))
    assert [first.stat().st_mtime_ns, second.stat().st_mtime_ns] == times
    assert len(list((tmp_path / "dataflows").iterdir())) == 3
    directory.publish(PendingChange(directory.plans.snapshot).withdrawn("one"))
    assert len(list((tmp_path / "dataflows").iterdir())) == 3, "snapshot 2 still refers to it"
    directory.plans.compact(3, set(), 0)
    assert len(list((tmp_path / "dataflows").iterdir())) == 2
    assert directory.plans(3).number == 3
    directory.close()


def test_a_plan_that_is_no_longer_current_is_still_there(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    directory.submit(small("one", 1))
    before = directory.plans.current
    tasks = dict(before.tasks.items())
    directory.submit(small("two", 2))
    directory.publish(PendingChange(directory.plans.snapshot).withdrawn("one"))
    assert directory.plans(1) is before
    assert dict(before.tasks.items()) == tasks
    assert set(directory.plans.current.tasks) != set(tasks)
    directory.close()


def test_a_dataflow_that_is_gone_is_named(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    directory.submit(small("one", 1))
    directory.close()
    (file,) = (tmp_path / "dataflows").iterdir()
    file.unlink()
    with pytest.raises(HeadgateError, match=file.stem) as caught:
        Directory(tmp_path)
    assert caught.value.condition == "DATAFLOW_GONE"


def test_a_directory_of_layout_3_opens(tmp_path: Path) -> None:
    """Its snapshots held whole dataflows, as written and as run."""
    directory = Directory(tmp_path / "new")
    directory.submit(small("one", 1))
    directory.submit(small("two", 2), small("three", 3))
    snapshot, plan = directory.plans.snapshot, directory.plans.current
    running = snapshot.shared.running
    old = StateDirectory(tmp_path / "old")
    (old.path / "version").write_text("3")
    kept = {key: value for key, value in snapshot.as_dict().items() if key != "units"}
    kept["dataflows"] = [to_document(dataflow) for dataflow in snapshot.dataflows]
    kept["merged"] = {name: to_document(running.find(name).dataflow) for name in snapshot.stored}
    kept["deployment"] = {"units": {}, "made": 0}
    (old.path / "snapshots" / "2.json").write_text(json.dumps(kept))
    old.close()
    opened = Directory(tmp_path / "old")
    assert opened.plans.snapshot.as_dict() == snapshot.as_dict()
    assert opened.plans.current.fragments == plan.fragments
    assert (tmp_path / "old" / "version").read_text() == "4"
    opened.close()
    directory.close()


def test_a_directory_of_another_layout_is_refused(tmp_path: Path) -> None:
    StateDirectory(tmp_path).close()
    (tmp_path / "version").write_text("2")
    with pytest.raises(InputError, match="has version '2'") as caught:
        StateDirectory(tmp_path)
    assert caught.value.condition == "STATE_VERSION"
