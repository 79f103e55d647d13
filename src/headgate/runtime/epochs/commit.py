"""The commit of an epoch: which staged files go to which sinks, topics and dead letters. Nothing here knows Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from headgate.model.names import Signature
from headgate.runtime.epochs.staging import StagedFile
from headgate.runtime.observing.counting import RowCounts
from headgate.runtime.observing.records import Arrivals
from headgate.store.chain_entries import ChainKept
from headgate.store.entries import CommittedOutput, OutputKind, StagedRows, Target

__all__ = ["HOST_LETTERS", "LETTERS", "SINK", "TOPIC", "EpochResult", "Files", "StagedEpoch", "Target", "outputs_of"]

SINK, TOPIC, LETTERS = OutputKind.SINK, OutputKind.TOPIC, OutputKind.LETTERS
HOST_LETTERS = OutputKind.HOST_LETTERS

Files = dict[Target, list[StagedRows]]
"""Staged files by target."""


@dataclass(frozen=True, slots=True)
class EpochResult:
    """What an epoch puts out, and what was measured."""

    outputs: tuple[CommittedOutput, ...] = ()
    counts: RowCounts = field(default_factory=Counter)
    arrivals: Mapping[Signature, list[Arrivals]] = field(default_factory=dict)
    chains: tuple[ChainKept, ...] = ()
    misplaced: int | None = None
    """Partitions that ran elsewhere than they were placed; none where nothing is placed."""


@dataclass(frozen=True, slots=True)
class StagedEpoch:
    """What the job of an epoch has staged."""

    files: Sequence[StagedFile]
    targets: Sequence[Target]
    """By the number of the output."""

    counted: Counter[int]
    """Further rows that the job has counted, by number."""

    ran: frozenset[str]
    """The tasks and topics that took part."""

    row_counts: Callable[[Mapping[int, int]], RowCounts]
    """The rows into and out of tasks, from the rows of each output."""

    places: Mapping[int, str] = field(default_factory=dict)
    """The executor of each partition that had rows, where that is known."""

    misplaced: int | None = None
    """Partitions that ran elsewhere than they were placed; none where nothing is placed."""

    def by_target(self) -> tuple[Files, dict[Target, list[Arrivals]]]:
        """The files of each target, and when the events of their rows had been taken in."""
        files: Files = {}
        arrivals: dict[Target, list[Arrivals]] = {}
        for file in self.files:
            target = self.targets[file.output]
            files.setdefault(target, []).append(StagedRows(file.path, file.rows))
            arrivals.setdefault(target, []).append(Arrivals(file.rows, np.frombuffer(file.ingested, np.int64)))
        return files, arrivals

    def counts(self, files: Files) -> RowCounts:
        """The rows into and out of tasks, and those that failed."""
        rows = Counter(self.counted)
        for file in self.files:
            rows[file.output] += file.rows
        counts = self.row_counts(rows)
        for target, kept in files.items():
            if target.kind == LETTERS:
                counts[Signature(target.name), "errors"] += sum(file.rows for file in kept)
        return counts


def outputs_of(
    files: Files,
    arrivals: Mapping[Target, Sequence[Arrivals]],
    head_of: Callable[[str], int],
    reasons_of: Callable[[str], Sequence[str]],
) -> tuple[CommittedOutput, ...]:
    """What is to be committed, in the order of snapshots; each batch of a topic gets its number here."""
    heads: dict[str, int] = {}
    outputs = []
    for target, staged in sorted(files.items(), key=lambda item: item[0].snapshot):
        output = CommittedOutput(target, tuple(staged))
        if target.kind is TOPIC:
            heads[target.name] = heads.get(target.name, head_of(target.name)) + 1
            output = replace(output, number=heads[target.name], ingested_us=_mean_us(arrivals[target]))
        elif target.kind is LETTERS:
            output = replace(output, reasons=tuple(reasons_of(target.name)))
        outputs.append(output)
    return tuple(outputs)


def _mean_us(arrivals: Sequence[Arrivals]) -> int:
    means = [float(part.ingested_us.mean()) for part in arrivals]
    return int(np.average(means, weights=[part.rows for part in arrivals]))
