"""The chains of a fragment: folded by epochs, merged and collected beside them.

What is known between two epochs is in the journal: the last commit names the files of every chain. Nothing else has to
be loaded or closed, and a folding that no commit follows has changed nothing.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from headgate.model.chain_work import Chain
from headgate.model.names import Signature
from headgate.runtime.chains.files import MERGED, remove_others
from headgate.runtime.chains.fold import FoldedPart
from headgate.runtime.chains.jobs import ChainEpoch, ChainJobs, ChainTask, FoldPlan
from headgate.runtime.chains.merging import MergedFiles, due_merges, with_merged
from headgate.runtime.chains.ranges import appended, empty, living, resliced
from headgate.store.chain_entries import ChainKept
from headgate.store.files import sync_folder

__all__ = ["ChainHost", "FoldedEpoch", "FoldedTask", "form_of_chain"]

COLLECT_EVERY = 8
"""Files that no commit names are removed once in so many epochs."""

Offer = Callable[[Callable[[], None]], bool]
"""Takes work that nobody waits for."""


@dataclass(frozen=True, slots=True)
class FoldedTask:
    """A window or a join in an epoch."""

    signature: Signature
    life: str
    known: ChainTask
    inputs: tuple[tuple[str, ...], ...]
    partitions: int | None


@dataclass(frozen=True, slots=True)
class FoldedEpoch:
    """What an epoch has made of the chains."""

    kept: tuple[ChainKept, ...]
    outputs: tuple[tuple[tuple[Signature, str], ...], ...] = ()
    """For each range the files of rows that come out, and whose they are; none if no row does."""

    parts: Mapping[Signature, Sequence[FoldedPart]] = field(default_factory=dict)
    failed: Mapping[Signature, str] = field(default_factory=dict)
    """The tasks whose fold raised, and what; their chains are as they were."""


def form_of_chain(chain: Chain) -> str:
    """Stands for the tables of a chain: state of the same form can be gone on with."""
    tables = [(t.name, str(t.schema), str(t.axis), t.version, t.key) for t in chain.tables]
    return hashlib.blake2b(repr(tables).encode(), digest_size=8).hexdigest()


class ChainHost:
    """The chains of one fragment."""

    def __init__(self, jobs: ChainJobs, outputs: Path, partitions: int, offer: Offer) -> None:
        """``outputs`` is where the rows of an epoch wait for the rest of it."""
        self._jobs = jobs
        self._outputs = outputs
        self._partitions = partitions
        self._offer = offer
        self._known: dict[str, ChainTask] = {}
        """By life: what its files can be merged with."""

        self._lock = threading.Lock()
        self._merging: set[str] = set()
        """Files that are being merged."""

        self._merged: list[MergedFiles] = []
        """What is to take the place of files with the next commit."""

        self._epochs = 0
        jobs.folder.mkdir(exist_ok=True)

    def fold(
        self, epoch: int, before: Sequence[ChainKept], tasks: Sequence[FoldedTask], alive: Callable[[str], bool]
    ) -> FoldedEpoch:
        """Fold an epoch; ``alive`` says of which lives the state is still needed."""
        chains = {kept.life: kept for kept in before if alive(kept.life)}
        plans = [FoldPlan(task.known, self._state(task, chains.get(task.life)), task.inputs) for task in tasks]
        folder = self._empty_folder(epoch)
        work = ChainEpoch(epoch, int(time.time() * 1e6), str(self._jobs.folder), str(folder), tuple(plans))
        made = self._jobs.fold(work) if plans else []
        failed: dict[Signature, str] = {}
        outputs: dict[int, list[tuple[Signature, str]]] = {}
        for task, plan, parts in zip(tasks, plans, made, strict=True):
            error = next((part.error for part in parts if part.error), None)
            if error is not None:
                failed[task.signature] = error
                continue
            chains[task.life] = self._settled(task, _after(plan.kept, parts))
            for at, part in enumerate(parts):
                outputs.setdefault(at, []).extend([(task.signature, part.output)] if part.output else [])
        if tasks:
            sync_folder(self._jobs.folder)
        ranges = tuple(tuple(outputs.get(at, ())) for at in range(max(outputs, default=-1) + 1))
        seen = {task.signature: parts for task, parts in zip(tasks, made, strict=True)}
        return FoldedEpoch(tuple(chains.values()), ranges if any(ranges) else (), seen, failed)

    def _state(self, task: FoldedTask, known: ChainKept | None) -> ChainKept:
        """The state that a task goes on with, in as many ranges as are wanted."""
        work, options, chain = self._jobs.chain_of(task.known)
        form, keys = form_of_chain(chain), work.keys(options)
        keyed = any(keys)
        wanted = (task.partitions or None) if keyed else 1
        if known is None or known.form != form:
            return ChainKept(task.life, form, (None,) * len(keys), empty(wanted or self._partitions))
        count = wanted or len(known.parts)
        return known if count == len(known.parts) else replace(known, parts=resliced(known.parts, count))

    def _settled(self, task: FoldedTask, kept: ChainKept) -> ChainKept:
        """A chain with what has been merged meanwhile, and without files that nobody needs any more."""
        self._known[task.life] = task.known
        with self._lock:
            merged = list(self._merged)
        return living(with_merged(kept, merged), self._axes(task.known))

    def _empty_folder(self, epoch: int) -> Path:
        shutil.rmtree(self._outputs, ignore_errors=True)
        # A worker that outlives a killed engine for a moment must not write into what the next engine reads.
        folder = self._outputs / f"{epoch}-{os.getpid()}"
        folder.mkdir(parents=True)
        return folder

    def _axes(self, known: ChainTask) -> Mapping[str, str]:
        _, _, chain = self._jobs.chain_of(known)
        return {table.name: str(table.axis) for table in chain.tables}

    # beside the epochs

    def tidy(self, kept: Sequence[ChainKept]) -> None:
        """After a commit: remove what it does not name, and merge what has become too many files."""
        with self._lock:
            # What is not in a commit yet may be in the next one; where files have changed meanwhile, it never will.
            self._merged = [one for one in self._merged if any(with_merged(chain, [one]) != chain for chain in kept)]
            waiting, busy = bool(self._merged), bool(self._merging)
            names = frozenset[str](self._merging).union(*(chain.files for chain in kept))
            names |= {one.file.name for one in self._merged if one.file is not None}
        if self._epochs % COLLECT_EVERY == 0:
            remove_others(self._jobs.folder, lambda name: name in names or (busy and name.startswith(MERGED)))
        self._epochs += 1
        if not busy and not waiting:
            self._merge(kept)

    def _merge(self, kept: Sequence[ChainKept]) -> None:
        due = [
            (known, merge)
            for chain in kept
            if (known := self._known.get(chain.life)) is not None
            for merge in due_merges(chain, self._axes(known))
        ]
        if not due:
            return
        files = {file.name for _, merge in due for file in merge.files}
        with self._lock:
            self._merging = files

        def work() -> None:
            done: list[MergedFiles] = []
            try:
                done = self._jobs.merge(due)
                sync_folder(self._jobs.folder)
            finally:
                with self._lock:
                    self._merged += done
                    self._merging = set()

        if not self._offer(work):
            with self._lock:
                self._merging = set()


def _after(before: ChainKept, made: Sequence[FoldedPart]) -> ChainKept:
    """A chain after an epoch."""
    parts = tuple(appended(part, new.files) for part, new in zip(before.parts, made, strict=True))
    dead = dict(before.dead)
    for axis in {axis for one in made for axis in one.dead}:
        marks = [one.dead[axis] for one in made if axis in one.dead]
        if len(marks) == len(made):
            dead[axis] = max(min(marks), dead.get(axis, min(marks)))
    return ChainKept(before.life, before.form, made[0].seen, parts, dead)
