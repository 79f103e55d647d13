"""Submitted dataflows as a state directory keeps them: each once, with its signatures, under a name of its content.

Plan snapshots refer to them, so that a change writes what it changes. Reading one decodes what was checked and signed
when it was submitted; it is not checked again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.documents.decode import from_document
from headgate.documents.document import to_document
from headgate.errors import HeadgateError
from headgate.model.dataflow import Dataflow
from headgate.sharing.deduplicate import SignedDataflow
from headgate.sharing.running import Submitted
from headgate.store.files import read_json, write_text
from headgate.tasks.registry import Registry

__all__ = ["DataflowStore", "StoredDataflow", "StoredText", "decoded", "stored_dataflow"]


@dataclass(frozen=True, slots=True)
class StoredText:
    """A dataflow as it is written to the state directory."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class StoredDataflow:
    """A dataflow as it is run, and as its author wrote it."""

    signed: SignedDataflow
    written: Dataflow


def stored_dataflow(submitted: Submitted) -> StoredText:
    """A submitted dataflow as text; equal ones have equal names."""
    kept: dict[str, Any] = {"written": to_document(submitted.written), "signatures": dict(submitted.signatures)}
    if submitted.dataflow is not submitted.written and submitted.dataflow != submitted.written:
        kept["as_run"] = to_document(submitted.dataflow)
    text = json.dumps(kept)
    return StoredText(hashlib.blake2b(text.encode(), digest_size=16).hexdigest(), text)


def decoded(kept: Mapping[str, Any], registry: Registry) -> StoredDataflow:
    """The dataflow that was stored."""
    written = from_document(kept["written"], registry)
    as_run = from_document(kept["as_run"], registry) if "as_run" in kept else written
    return StoredDataflow(SignedDataflow(as_run, kept["signatures"]), written)


class DataflowStore:
    """The dataflows of a state directory."""

    def __init__(self, folder: Path, registry: Registry) -> None:
        self._folder = folder
        self._registry = registry

    def write(self, dataflow: StoredText) -> None:
        """Store a dataflow durably, unless it is there."""
        path = self._path(dataflow.id)
        if not path.exists():
            write_text(path, dataflow.text, "dataflow")

    def read(self, name: str) -> StoredDataflow:
        kept = read_json(self._path(name))
        if kept is None:
            message = f"dataflow {name} is not in {self._folder}, where a plan snapshot expects it"
            raise HeadgateError("DATAFLOW_GONE", message)
        return decoded(kept, self._registry)

    def remove_all_but(self, needed: set[str]) -> None:
        """Remove the dataflows that no snapshot refers to."""
        for path in self._folder.glob("*.json"):
            if path.stem not in needed:
                path.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"
