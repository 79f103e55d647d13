"""What a benchmark returns, and studies: trials in some worlds, and the conclusions from their rows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Generic, TypeVar

from headgate.errors import HeadgateError
from headgate.model.table import Table, TableColumn

__all__ = ["Conclusion", "Finding", "Measured", "Progress", "Row", "Study", "check_figures", "columns", "means"]

Progress = Callable[[str], None]
Row = dict[str, Any]
World = TypeVar("World")


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures by name, and every sample behind them; ``one | other`` has those of both."""

    figures: Mapping[str, Any]
    samples: Mapping[str, Any] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    """For people; without any, the figures are listed."""

    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of other software that was measured."""

    notes: Mapping[str, str] = field(default_factory=dict)
    """Sentences about what was left out and why."""

    def __or__(self, other: Measured) -> Measured:
        return Measured(
            {**self.figures, **other.figures},
            {**self.samples, **other.samples},
            (*self.tables, *other.tables),
            {**self.versions, **other.versions},
            {**self.notes, **other.notes},
        )


def check_figures(figures: Mapping[str, Any], promised: Iterable[str]) -> None:
    """Raise unless each promised figure (a name or a pattern) is there and every number is finite.

    >>> check_figures({"rate_2": 1.0, "growth": math.nan}, ["rate_*", "growth", "lag_s"])
    Traceback (most recent call last):
    headgate.errors.HeadgateError: figures are missing or not finite: growth, lag_s
    """
    missing = [name for name in promised if not any(fnmatchcase(figure, name) for figure in figures)]
    broken = [key for key, value in figures.items() if isinstance(value, float) and not math.isfinite(value)]
    if missing or broken:
        faults = ", ".join(sorted({*missing, *broken}))
        raise HeadgateError("FIGURES_MISSING", f"figures are missing or not finite: {faults}")


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim of a paper, whether it was reproduced, and a sentence with the figures."""

    name: str
    holds: bool
    sentence: str

    def __str__(self) -> str:
        return f"{'reproduced' if self.holds else 'NOT reproduced'}: {self.sentence}"


@dataclass(slots=True)
class Conclusion:
    """Figures, findings and tables that follow from the rows of a study."""

    figures: dict[str, Any] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    findings: list[Finding] = field(default_factory=list)

    def find(self, name: str, holds: bool, sentence: str) -> None:
        self.findings.append(Finding(name, holds, sentence))


@dataclass(frozen=True, slots=True)
class Study(Generic[World]):
    """An experiment: the trials that it makes in a world, each a row, and what it concludes from all rows."""

    name: str
    trials: Callable[[World], Iterable[Row]]
    conclude: Callable[[Sequence[Row]], Conclusion]

    def run(self, worlds: Sequence[World], progress: Progress, prefix: str = "") -> Measured:
        """Make all trials. Names of figures and samples begin with the prefix; a finding is a figure, 1 or 0."""
        rows: list[Row] = []
        for number, world in enumerate(worlds, start=1):
            progress(f"{prefix}{self.name}: world {number} of {len(worlds)}")
            rows += self.trials(world)
        conclusion = self.conclude(rows)
        figures = conclusion.figures | {f"finding_{each.name}": int(each.holds) for each in conclusion.findings}
        samples: dict[str, Any] = {f"{prefix}{self.name}": rows}
        tables = conclusion.tables
        if conclusion.findings:
            sentences = tuple(map(str, conclusion.findings))
            samples[f"{prefix}{self.name}_findings"] = list(sentences)
            listed = tuple({"finding": sentence} for sentence in sentences)
            tables = (*tables, Table("", columns(("finding", f"{prefix}findings".replace("_", " "))), listed))
        return Measured({f"{prefix}{key}": value for key, value in figures.items()}, samples, tables)


def columns(*each: tuple[str, ...]) -> tuple[TableColumn, ...]:
    """Columns of a table: key, title, unit and number format of each."""
    return tuple(TableColumn(*one) for one in each)


def means(rows: Iterable[Row], measures: Sequence[str], *by: str) -> dict[tuple[Any, ...], dict[str, float]]:
    """Means of measures over the rows with equal values of ``by``.

    >>> means([{"p": "a", "x": 1.0}, {"p": "a", "x": 3.0}], ["x"], "p")
    {('a',): {'x': 2.0}}
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return {
        key: {measure: statistics.mean(row[measure] for row in members) for measure in measures}
        for key, members in groups.items()
    }
