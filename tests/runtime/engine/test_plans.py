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
from headgate.runtime.compile.plan import Kind
from headgate.runtime.engine.compaction import compact_journal
from headgate.runtime.engine.pending_change import PendingChange
from headgate.runtime.engine.plans import Plans
from headgate.runtime.engine.snapshot import Snapshot
from headgate.runtime.engine.state import StateDirectory
from headgate.runtime.epochs.fragment import begun_in
from headgate.service.load import load
from headgate.service.submit import split_submission
from headgate.sharing.applied import Applied
from headgate.sharing.deduplicate import SignedDataflow
from headgate.sharing.shared_set import SharedSet
from headgate.sharing.signature import sign
from headgate.store.entries import (
    Acknowledged,
    DataflowStored,
    Delivered,
    EpochCommitted,
    FragmentBegun,
    SnapshotPublished,
    UsageChanged,
)
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

    def submit(self, *dataflows: Dataflow | SignedDataflow, replace: bool = False, acknowledge: Any = None) -> Applied:
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


def stored(directory: Directory) -> list[str]:
    return [str(entry.document["written"]["name"]) for _, entry in directory.state.journal.read(DataflowStored)]


def test_a_change_writes_the_dataflows_that_are_new_in_it(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    directory.submit(small("one", 1), small("two", 2))
    directory.submit(small("three", 3))
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


def test_a_directory_of_layout_3_opens(tmp_path: Path) -> None:
    """Its snapshots held whole dataflows, as written and as run."""
    directory = Directory(tmp_path / "new")
    directory.submit(small("one", 1))
    directory.submit(small("two", 2), small("three", 3))
    snapshot, plan = directory.plans.snapshot, directory.plans.current
    running = snapshot.shared.running
    old = tmp_path / "old"
    for name in ("snapshots", "fragments"):
        (old / name).mkdir(parents=True)
    (old / "version").write_text("3")
    kept = {key: value for key, value in snapshot.as_dict().items() if key != "units"}
    kept["dataflows"] = [to_document(dataflow) for dataflow in snapshot.dataflows]
    kept["merged"] = {name: to_document(running.find(name).dataflow) for name in snapshot.stored}
    kept["deployment"] = {"units": {}, "made": 0}
    (old / "snapshots" / "2.json").write_text(json.dumps(kept))
    opened = Directory(old)
    assert without_since(opened.plans.snapshot) == without_since(snapshot)
    assert opened.plans.snapshot.since.items() >= snapshot.since.items()
    assert opened.plans.current.fragments == plan.fragments
    assert (old / "version").read_text() == "5"
    assert not (old / "snapshots").exists()
    opened.close()
    directory.close()


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


def without_since(snapshot: Snapshot) -> dict[str, Any]:
    return {key: value for key, value in snapshot.as_dict().items() if key != "since"}


LAYOUT_4: dict[str, str] = {
    "usage/usage.jsonl": '{"at_s": 5, "currency": "USD", "machines": [], "customers": []}\n{"at_s": 9}\n{"at_',
    "usage/until": "9\n",
    "fragments/source-1/fragment.json": '{"snapshot": 2, "start": {"t": 4}, "run": "r", "groups": 32}',
    "fragments/source-1/commit.json": json.dumps(
        {
            "epoch": 7,
            "done": False,
            "targets": [
                {"kind": "sink", "name": "s", "snapshot": 2, "files": [["/a", 3]]},
                {"kind": "topic", "name": "t", "snapshot": 2, "files": [["/b", 1]], "number": 5, "ingested_us": 6},
            ],
        }
    ),
    "fragments/source-1/plan_log.json": "[[0, 1], [7, 2]]",
    "fragments/source-1/checkpoint/commits/6": "v1",
    "fragments/keyed-1/fragment.json": '{"snapshot": 2, "start": {}, "run": "k", "groups": 32}',
    "fragments/keyed-1/checkpoint/commits/3": "v1",
    "fragments/half-1/checkpoint/commits/3": "v1",
}


def test_a_directory_of_layout_4_opens(tmp_path: Path) -> None:
    """Snapshots, dataflows, answers, fragments, commits and usage had files of their own."""
    directory = Directory(tmp_path / "new")
    directory.submit(small("one", 1))
    directory.submit(small("two", 2))
    snapshot, journal = directory.plans.snapshot, directory.state.journal
    old = tmp_path / "old"
    texts = {"version": "4", **LAYOUT_4}
    texts |= {f"dataflows/{one.id}.json": json.dumps(one.document) for _, one in journal.read(DataflowStored)}
    texts |= {f"snapshots/{one.number}.json": json.dumps(one.snapshot) for _, one in journal.read(SnapshotPublished)}
    answer = {"request": "a", "fingerprint": "f", "status": 200, "body": {"n": 1}, "snapshot": 2, "at": 1.5}
    texts["requests.jsonl"] = "".join(
        f"{json.dumps(one)}\n" for one in (answer, {**answer, "request": "unmade", "snapshot": 3})
    )
    for name, text in texts.items():
        (old / name).parent.mkdir(parents=True, exist_ok=True)
        (old / name).write_text(text)
    opened = Directory(old)
    journal = opened.state.journal
    assert without_since(opened.plans.snapshot) == without_since(snapshot)
    assert opened.plans.snapshot.since.items() >= snapshot.since.items()
    assert opened.plans(1).number == 1
    assert journal.latest(Acknowledged, "a") == Acknowledged("a", "f", 200, {"n": 1}, 1.5)
    assert journal.latest(Acknowledged, "unmade") is None, "its change was never made"
    assert begun_in(journal, "source-1") == FragmentBegun("source-1", 2, "r", {"t": 4}, 32)
    assert begun_in(journal, "half-1") is None
    commit = journal.latest(EpochCommitted, "source-1-r")
    assert commit is not None
    assert (commit.epoch, [(one.target, one.files, one.number) for one in commit.outputs]) == (
        7,
        [(("sink", "s", 2), (("/a", 3),), -1), (("topic", "t", 2), (("/b", 1),), 5)],
    )
    assert journal.latest(Delivered, "source-1-r") is None
    assert journal.latest(EpochCommitted, "keyed-1-k") == EpochCommitted("keyed-1-k", 3, ())
    assert [one.at_s for _, one in journal.read(UsageChanged)] == [5, 9]
    assert (old / "used_until").read_text() == "9\n"
    assert {file.name for file in old.iterdir()} >= {"journal", "journal.mark"}
    assert not {"dataflows", "snapshots", "usage", "requests.jsonl"} & {file.name for file in old.iterdir()}
    opened.close()
    directory.close()


def test_a_directory_of_another_layout_is_refused(tmp_path: Path) -> None:
    StateDirectory(tmp_path).close()
    (tmp_path / "version").write_text("2")
    with pytest.raises(InputError, match="has version '2'") as caught:
        StateDirectory(tmp_path)
    assert caught.value.condition == "STATE_VERSION"
