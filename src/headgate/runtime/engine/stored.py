"""Submitted dataflows as a state directory keeps them: each once, with its signatures, under a name of its content.

Plan snapshots refer to them, so that a change writes what it changes. Reading one decodes what was checked and signed
when it was submitted; it is not checked again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headgate.documents.decode import from_document
from headgate.documents.document import to_document
from headgate.errors import HeadgateError
from headgate.sharing.running import Submitted
from headgate.store.entries import DataflowStored
from headgate.store.journal import Journal
from headgate.tasks.registry import Registry

__all__ = ["decoded", "read_dataflow", "stored_dataflow"]


def stored_dataflow(submitted: Submitted) -> DataflowStored:
    """A submitted dataflow as it is stored; equal ones have equal names."""
    kept: dict[str, Any] = {"written": to_document(submitted.written), "signatures": dict(submitted.signatures)}
    if submitted.dataflow is not submitted.written and submitted.dataflow != submitted.written:
        kept["as_run"] = to_document(submitted.dataflow)
        kept["scopes"] = {task.id: task.scope for task in submitted.dataflow.tasks if task.scope}
    return DataflowStored(hashlib.blake2b(json.dumps(kept).encode(), digest_size=16).hexdigest(), kept)


def decoded(kept: Mapping[str, Any], registry: Registry) -> Submitted:
    """The dataflow that was stored."""
    written = from_document(kept["written"], registry)
    as_run = from_document(kept["as_run"], registry) if "as_run" in kept else written
    scopes = kept.get("scopes", {})
    if scopes:
        tasks = (replace(task, scope=scopes.get(task.id, "")) for task in as_run.tasks)
        as_run = replace(as_run, tasks=tuple(tasks))
    return Submitted(as_run, kept["signatures"], written)


def read_dataflow(journal: Journal, name: str, registry: Registry) -> Submitted:
    """The dataflow that is stored under a name."""
    stored = journal.latest(DataflowStored, name)
    if stored is None:
        raise HeadgateError("DATAFLOW_GONE", f"dataflow {name} is not in {journal.path}, where a snapshot expects it")
    return decoded(stored.document, registry)
