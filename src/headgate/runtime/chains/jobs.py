"""The work of an epoch of chains, range by range, and of merges: what workers do, each for itself.

A range needs nothing but the files in which the rows are and what the last commit says, so it does not matter where it
is folded. :class:`ChainJobs` does all of it in this process, one range after the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate.model.chain_work import Chain, ChainWork
from headgate.runtime.chains.files import mapped
from headgate.runtime.chains.fold import FoldedPart, Folding, fold_part
from headgate.runtime.chains.merging import Merge, Merged, merged
from headgate.store.chain_entries import ChainKept

__all__ = ["ChainEpoch", "ChainJobs", "ChainOf", "ChainTask", "FoldPlan", "fold_range", "merge_one", "registered_chain"]


@dataclass(frozen=True, slots=True)
class ChainTask:
    """A stateful task, as workers know it."""

    type: str
    config: str
    """Its options, as JSON."""

    sides: tuple[bytes, ...]
    """The Arrow schema of each side of its kernel's rows."""


@dataclass(frozen=True, slots=True)
class FoldPlan:
    """What an epoch does to the chain of a task."""

    task: ChainTask
    kept: ChainKept
    inputs: tuple[tuple[str, ...], ...]
    """The files of each side, in order of arrival."""


@dataclass(frozen=True, slots=True)
class ChainEpoch:
    """An epoch of some chains."""

    number: int
    clock: int
    """When it began, in microseconds since 1970."""

    folder: str
    """Where the files of state are."""

    outputs: str
    """Where rows that come out wait for the rest of the epoch."""

    plans: tuple[FoldPlan, ...]

    @property
    def ranges(self) -> int:
        """The most ranges that one of the chains has."""
        return max(len(plan.kept.parts) for plan in self.plans)


Started = tuple[ChainWork, Any, Chain]
"""The work of a task, its options and its chain."""

ChainOf = Callable[[ChainTask], Started]


@lru_cache(maxsize=256)
def registered_chain(task: ChainTask) -> Started:
    """The chain of a task, by the registered type that it names."""
    from headgate.tasks.registry import default_registry

    kind = default_registry()[task.type]
    assert isinstance(kind.work, ChainWork)
    options = kind.config.model_validate(json.loads(task.config))
    return kind.work, options, kind.work.start(options, [pa.ipc.read_schema(pa.py_buffer(one)) for one in task.sides])


def fold_range(epoch: ChainEpoch, at: int, attempt: int, chain_of: ChainOf) -> list[tuple[int, int, FoldedPart]]:
    """Fold one range of every chain that has so many: the number of the chain, the range, and what became of it."""
    made = []
    for number, plan in enumerate(epoch.plans):
        if at < len(plan.kept.parts):
            work, options, chain = chain_of(plan.task)
            folding = Folding(chain, work, options, plan.kept, epoch.number, epoch.clock)
            sides = [_rows(files, schema) for files, schema in zip(plan.inputs, plan.task.sides, strict=True)]
            places = plan.kept.parts[at], Path(epoch.folder), Path(epoch.outputs)
            made.append((number, at, fold_part(folding, sides, *places, f"{epoch.number}-{number}-{at}-{attempt}")))
    return made


def merge_one(folder: Path, task: ChainTask, merge: Merge, chain_of: ChainOf) -> Merged:
    """Merge files of a chain."""
    _, _, chain = chain_of(task)
    return merged(merge, chain, folder)


def _rows(files: Sequence[str], schema: bytes) -> pa.Table:
    """All rows of a side, with the columns that the kernel knows and in its types."""
    wanted = pa.ipc.read_schema(pa.py_buffer(schema))
    return pa.concat_tables([wanted.empty_table(), *(_with(mapped(Path(file)), wanted) for file in files)])


def _with(rows: pa.Table, wanted: pa.Schema) -> pa.Table:
    return pa.table([rows.column(field.name).cast(field.type) for field in wanted], schema=wanted)


class ChainJobs:
    """Folds and merges chains in this process."""

    def __init__(self, folder: Path, chain_of: ChainOf = registered_chain) -> None:
        self.folder = folder
        """Where the files of state are."""

        self.chain_of = chain_of

        self._attempts = 0

    def fold(self, epoch: ChainEpoch) -> list[list[FoldedPart]]:
        """Fold an epoch; returns what it makes of each range of each of its chains."""
        self._attempts += 1
        made = [[FoldedPart() for _ in plan.kept.parts] for plan in epoch.plans]
        for place in range(epoch.ranges):
            for number, at, result in fold_range(epoch, place, self._attempts, self.chain_of):
                made[number][at] = result
        return made

    def merge(self, merges: Sequence[tuple[ChainTask, Merge]]) -> list[Merged]:
        """Merge files of some chains."""
        return [merge_one(self.folder, task, merge, self.chain_of) for task, merge in merges]
