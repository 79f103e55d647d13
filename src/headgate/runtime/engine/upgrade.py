"""Opening a state directory of layout 3 or 4: what was in many files becomes a journal.

The old files are removed once the journal is there. Until then nothing of them has changed, so it is done again from
the start if it was interrupted.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from headgate.documents.decode import from_document
from headgate.runtime.engine.state import VERSION, StateDirectory
from headgate.runtime.engine.stored import stored_dataflow
from headgate.runtime.spark_internals.checkpoint import Checkpoint
from headgate.sharing.deduplicate import deduplicate
from headgate.sharing.running import Submitted
from headgate.store.entries import (
    Acknowledged,
    CommittedOutput,
    DataflowStored,
    Delivered,
    Entry,
    EpochCommitted,
    FragmentBegun,
    OutputKind,
    SnapshotPublished,
    StagedRows,
    Target,
    UsageChanged,
)
from headgate.store.files import read_json
from headgate.store.journal import create_journal
from headgate.tasks.registry import Registry

__all__ = ["upgrade"]


def upgrade(state: StateDirectory, registry: Registry) -> None:
    """Write the journal of a directory that has none yet."""
    if state.version == VERSION:
        return
    path = state.path
    create_journal(path / "journal", [*_usage(path), *_snapshots(path, registry), *_fragments(path)])
    if (path / "usage" / "until").exists():
        shutil.copyfile(path / "usage" / "until", path / "used_until")
    state.is_current()
    for name in ("snapshots", "dataflows", "usage"):
        shutil.rmtree(path / name, ignore_errors=True)
    (path / "requests.jsonl").unlink(missing_ok=True)


def _usage(state: Path) -> Iterator[Entry]:
    for kept in _lines(state / "usage" / "usage.jsonl"):
        at_s = kept.pop("at_s")
        yield UsageChanged(at_s, kept or None)


def _snapshots(state: Path, registry: Registry) -> Iterator[Entry]:
    """Dataflows, snapshots, and the answers that describe them."""
    known = [DataflowStored(file.stem, read_json(file)) for file in (state / "dataflows").glob("*.json")]
    yield from known
    documents = {dataflow.id: dataflow.document for dataflow in known}
    snapshots = {int(file.stem): read_json(file) for file in (state / "snapshots").glob("[0-9]*.json")}
    for number, kept in sorted(snapshots.items()):
        if isinstance(kept["dataflows"], list):
            dataflows = [_of_layout_3(document, kept["merged"], registry) for document in kept["dataflows"]]
            yield from (stored for _, stored in dataflows)
            documents |= {stored.id: stored.document for _, stored in dataflows}
            kept = _without_dataflows(kept, {name: stored.id for name, stored in dataflows})
        # Since when windows and joins have run was not noted.
        signatures = [task for name in kept["dataflows"].values() for task in documents[name]["signatures"].values()]
        yield SnapshotPublished(number, {**kept, "since": {**dict.fromkeys(signatures, 0), **kept["since"]}})
    for answer in _lines(state / "requests.jsonl"):
        if answer.pop("snapshot") <= max(snapshots, default=0):
            yield Acknowledged(**answer)


def _of_layout_3(document: Any, merged: Mapping[str, Any], registry: Registry) -> tuple[str, DataflowStored]:
    """A dataflow of a layout in which snapshots held whole dataflows."""
    written = from_document(document, registry)
    as_run = merged.get(written.name)
    signed = deduplicate(written if as_run is None else from_document(as_run, registry))
    return written.name, stored_dataflow(Submitted(signed.dataflow, signed.signatures, written))


def _without_dataflows(kept: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    units = {"groups": kept["deployment"]["units"], "made": kept["deployment"]["made"]}
    unchanged = {key: value for key, value in kept.items() if key not in ("merged", "deployment")}
    return {**unchanged, "dataflows": names, "units": units}


def _fragments(state: Path) -> Iterator[Entry]:
    for folder in (state / "fragments").iterdir():
        kept = read_json(folder / "fragment.json")
        if kept is None:
            continue
        begun = FragmentBegun(folder.name, kept["snapshot"], kept["run"], kept["start"], kept["groups"])
        yield begun
        commit = read_json(folder / "commit.json") or {"epoch": -1}
        # Epochs that put out nothing had no commit.
        done = Checkpoint(folder / "checkpoint").last_committed()
        if done is not None and done > commit["epoch"]:
            yield EpochCommitted(begun.origin, done, ())
        elif commit["epoch"] >= 0:
            yield EpochCommitted(begun.origin, commit["epoch"], (), tuple(map(_output, commit["targets"])))
            if commit["done"]:
                yield Delivered(begun.origin, commit["epoch"])


def _output(target: Mapping[str, Any]) -> CommittedOutput:
    return CommittedOutput(
        Target(OutputKind(target["kind"]), target["name"], target["snapshot"]),
        tuple(StagedRows(path, rows) for path, rows in target["files"]),
        target.get("number", -1),
        target.get("ingested_us", 0),
        tuple(target.get("reasons", ())),
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file, without one that a crash has cut short."""
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            yield json.loads(line)
        except ValueError:
            continue
