"""Read a dataflow from a file, ready to be submitted: checked, without duplicates, signed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from headgate.documents import read
from headgate.errors import Fault, InvalidDataflow, Notice
from headgate.model.dataflow import Dataflow
from headgate.model.names import Signature, TaskId
from headgate.sharing.deduplicate import SignedDataflow, deduplicate
from headgate.tasks.registry import Registry

__all__ = ["Loaded", "load", "load_all", "with_all_faults"]

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A dataflow as it would be submitted, the same as its author wrote it, and what the author should know."""

    signed: SignedDataflow
    written: Dataflow
    notices: tuple[Notice, ...]

    @property
    def dataflow(self) -> Dataflow:
        """The dataflow without equivalent tasks."""
        return self.signed.dataflow

    @property
    def signatures(self) -> Mapping[TaskId, Signature]:
        return self.signed.signatures


def load(path: Path | str, registry: Registry) -> Loaded:
    """Read a file; raises :class:`~headgate.errors.InvalidDataflow` with every fault.

    Equivalent tasks are left out but for the first, each with a notice at its line.
    """
    checked = read(path, registry)
    signed = deduplicate(checked.dataflow)
    places = checked.places(signed.stands_for)
    duplicates = tuple(replace(notice, place=places[notice.task or ""]) for notice in signed.notices)
    return Loaded(signed, checked.dataflow, (*checked.notices, *duplicates))


def load_all(paths: Iterable[Path], registry: Registry) -> list[Loaded]:
    """Read files; raises :class:`~headgate.errors.InvalidDataflow` with the faults of all of them."""
    return with_all_faults(lambda path: load(path, registry), paths)


def with_all_faults(read: Callable[[T], R], things: Iterable[T]) -> list[R]:
    """Read several things; raises :class:`~headgate.errors.InvalidDataflow` with the faults of all of them."""
    results, faults = list[R](), list[Fault]()
    for thing in things:
        try:
            results.append(read(thing))
        except InvalidDataflow as error:
            faults += error.faults
    if faults:
        raise InvalidDataflow(faults)
    return results
