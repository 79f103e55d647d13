"""Opening a state directory of layout 3, whose snapshots held whole dataflows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.documents.decode import from_document
from headgate.runtime.engine.state import StateDirectory
from headgate.runtime.engine.stored import DataflowStore, stored_dataflow
from headgate.sharing.deduplicate import deduplicate
from headgate.sharing.running import Submitted
from headgate.store.files import read_json, write_json
from headgate.tasks.registry import Registry

__all__ = ["upgrade"]


def upgrade(state: StateDirectory, dataflows: DataflowStore, registry: Registry) -> None:
    """Store each dataflow once and let snapshots refer to them; done again from the start if it was interrupted."""
    if state.version != "3":
        return
    for file in (state.path / "snapshots").glob("[0-9]*.json"):
        kept = read_json(file)
        if isinstance(kept["dataflows"], list):
            write_json(file, _upgraded(kept, dataflows, registry), "snapshot")
    state.is_current()


def _upgraded(kept: Mapping[str, Any], dataflows: DataflowStore, registry: Registry) -> dict[str, Any]:
    names = {}
    for document in kept["dataflows"]:
        written = from_document(document, registry)
        merged = kept["merged"].get(written.name)
        signed = deduplicate(written if merged is None else from_document(merged, registry))
        text = stored_dataflow(Submitted(signed.dataflow, signed.signatures, written))
        dataflows.write(text)
        names[written.name] = text.id
    units = {"groups": kept["deployment"]["units"], "made": kept["deployment"]["made"]}
    unchanged = {key: value for key, value in kept.items() if key not in ("merged", "deployment")}
    return {**unchanged, "dataflows": names, "units": units}
