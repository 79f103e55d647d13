"""A state directory holds each dataflow once; a submission is signed and merged once."""

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
from headgate.runtime.compile.plan import Kind
from headgate.runtime.engine.compaction import compact_journal
from headgate.runtime.engine.pending_change import PendingChange
from headgate.runtime.engine.plans import Plans
from headgate.runtime.engine.state import StateDirectory
from headgate.service.load import load
from headgate.service.submit import split_submission
from headgate.sharing.applied import Applied
from headgate.sharing.deduplicate import SignedDataflow
from headgate.sharing.shared_set import SharedSet
from headgate.sharing.signature import sign
from headgate.store.entries import (
    DataflowStored,
)
from headgate.tasks.registry import default_registry
from tests.runtime.small import beside, files, flow, memory

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

    def submit(
        self,
        *dataflows: Dataflow | SignedDataflow,
        replace: bool = False,
        allow_partial: bool = False,
        acknowledge: Any = None,
    ) -> Applied:
        change = PendingChange(self.plans.snapshot)
        change = change.making_room(dataflows) if replace else change
        for dataflow in dataflows:
            change = change.submitted(dataflow)
        del acknowledge
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
    file.write_text(json.dumps(to_document(beside(small("new", 2), "before0"))))
    counts = counted(monkeypatch)
    todo = split_submission(directory.shared.running, [load(file, REGISTRY).signed], replace=False)
    directory.submit(*todo.new)
    assert counts == {"sign": 1, "deduplicate": 1, "merge": 1}
    directory.close()


def test_a_server_signs_and_merges_a_submission_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headgate.service.submit import submit

    directory = Directory(tmp_path / "state")
    directory.submit(small("before", 1))
    document = to_document(beside(small("new", 2), "before"))
    counts = counted(monkeypatch)
    answer = submit(directory, [document], REGISTRY)  # type: ignore[arg-type]
    assert [one["dataflow"] for one in answer["submitted"]] == ["new"]
    assert counts == {"sign": 1, "deduplicate": 1, "merge": 1}
    directory.close()


def test_a_restart_signs_and_checks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = Directory(tmp_path)
    directory.submit(small("flow0", 0))
    for number in (1, 2):
        directory.submit(beside(small(f"flow{number}", number), "flow0"))
    before = directory.plans
    directory.close()
    counts = counted(monkeypatch)
    monkeypatch.setattr("headgate.documents.check.check", None)
    again = Directory(tmp_path)
    assert counts == {"merge": 3}
    assert again.plans.current.fragments == before.current.fragments
    assert again.plans.snapshot.dataflows == before.snapshot.dataflows
    again.close()


def stored(directory: Directory) -> list[str]:
    return [str(entry.document["written"]["name"]) for _, entry in directory.state.journal.read(DataflowStored)]


def test_a_change_writes_the_dataflows_that_are_new_in_it(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    directory.submit(small("one", 1), small("two", 2))
    directory.submit(beside(small("three", 3), "two"))
    assert stored(directory) == ["one", "two", "three"]
    directory.publish(PendingChange(directory.plans.snapshot).withdrawn("one"))
    compact_journal(directory.state.journal, tmp_path / "hosts", 2, [])
    assert stored(directory) == ["one", "two", "three"], "snapshot 2 still refers to it"
    compact_journal(directory.state.journal, tmp_path / "hosts", 3, [])
    assert stored(directory) == ["two", "three"]
    assert [file.name for file in (tmp_path / "hosts").iterdir()] == ["3.json"]
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
    (name,) = directory.plans.snapshot.stored.values()
    directory.state.journal.compact(lambda entry: not isinstance(entry, DataflowStored))
    directory.close()
    with pytest.raises(HeadgateError, match=name) as caught:
        Directory(tmp_path)
    assert caught.value.condition == "DATAFLOW_GONE"


def windowed(name: str, least: int = 0) -> Dataflow:
    keep = {"id": "keep", "type": "filter", "config": {"where": f"v > {least}"}, "inputs": ["src"]}
    config = {"time": "at", "size": "10s", "key": ["k"], "columns": {"n": "count(*)"}}
    window = {"id": "w", "type": "window", "config": config, "inputs": ["src"]}
    source = {"id": "src", **files(Path("in"), columns="k string, v double, at timestamp")}
    return flow(name, source, keep, memory(f"{name}-kept"), window, memory(name))


def native(directory: Directory) -> set[str]:
    return {name for name, one in directory.plans.current.fragments.items() if one.kind is Kind.NATIVE}


def test_a_window_that_comes_back_is_another_fragment(tmp_path: Path) -> None:
    """Its former run may still be behind, with windows that it has put out already."""
    directory = Directory(tmp_path)
    directory.submit(windowed("one"))
    first = native(directory)
    directory.submit(windowed("one", 5), replace=True)
    directory.submit(small("other", 1))
    assert native(directory) == first, "it has run on"
    directory.close()
    directory = Directory(tmp_path)
    assert native(directory) == first, "also after a restart"
    directory.publish(PendingChange(directory.plans.snapshot).withdrawn("one"))
    assert native(directory) == set()
    directory.submit(windowed("one"))
    assert native(directory).isdisjoint(first)
    assert directory.plans.current.fragments[next(iter(native(directory)))].reads
    directory.close()


@pytest.mark.parametrize("version", ["2", "4", "6"])
def test_a_directory_of_another_layout_is_refused_and_left_as_it_is(tmp_path: Path, version: str) -> None:
    StateDirectory(tmp_path).close()
    (tmp_path / "version").write_text(version)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file() and file.name != "lock"}
    with pytest.raises(InputError, match=f"has version '{version}', and this Headgate reads version 5; give another"):
        StateDirectory(tmp_path)
    assert before == {file: file.read_bytes() for file in before}
