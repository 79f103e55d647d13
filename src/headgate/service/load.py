"""Read a dataflow from a file, ready to be submitted: checked, without duplicates, signed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from headgate.documents import read
from headgate.errors import Notice
from headgate.model.dataflow import Dataflow
from headgate.model.names import Signature, TaskId
from headgate.sharing.deduplicate import deduplicate
from headgate.tasks.registry import Registry

__all__ = ["Loaded", "load"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A dataflow as it would be submitted, the same as its author wrote it, and what the author should know."""

    dataflow: Dataflow
    written: Dataflow
    signatures: Mapping[TaskId, Signature]
    notices: tuple[Notice, ...]


def load(path: Path | str, registry: Registry) -> Loaded:
    """Read a file; raises :class:`~headgate.errors.InvalidDataflow` with every fault.

    Equivalent tasks are left out but for the first, each with a notice at its line.
    """
    checked = read(path, registry)
    done = deduplicate(checked.dataflow)
    places = checked.places(done.stands_for)
    duplicates = tuple(replace(notice, place=places[notice.task or ""]) for notice in done.notices)
    return Loaded(done.dataflow, checked.dataflow, done.signatures, (*checked.notices, *duplicates))
