"""Dead letters by cause: what went wrong how often, with some of the rows as they came in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.service.dead_letters import dead_letters

__all__ = ["LetterCause", "LetterSample", "causes_of", "letter_causes"]

SAMPLES = 5


@dataclass(frozen=True, slots=True)
class LetterSample:
    """A row for which a task raised, as it came in."""

    record: Any
    error: str
    epoch: int
    at: str


@dataclass(frozen=True, slots=True)
class LetterCause:
    """Rows for which a task raised for the same reason."""

    task: str
    """``dataflow.task``."""

    dataflows: tuple[str, ...]
    cause: str
    """The error, with its numbers and quoted texts replaced by dots."""

    rows: int
    first_at: str
    last_at: str
    snapshots: tuple[int, ...]
    samples: tuple[LetterSample, ...]
    """The newest."""


def letter_causes(
    state: Path, may_see: Callable[[Iterable[str]], bool], as_seen: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> tuple[LetterCause, ...]:
    """The causes, most rows first; ``may_see`` says whether who asks may see the rows of some dataflows."""
    letters = [as_seen(letter) for letter in dead_letters(state) if may_see(letter["dataflows"])]
    return causes_of(letters)


def causes_of(letters: Sequence[Mapping[str, Any]]) -> tuple[LetterCause, ...]:
    """Group letters, oldest first, by task and cause."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for letter in letters:
        groups.setdefault((letter["task"], _cause(letter["error"])), []).append(letter)
    causes = [
        LetterCause(
            task,
            tuple(sorted({name for letter in group for name in letter["dataflows"]})),
            cause,
            len(group),
            group[0]["at"],
            group[-1]["at"],
            tuple(sorted({letter["snapshot"] for letter in group})),
            tuple(_sample(letter) for letter in group[: -SAMPLES - 1 : -1]),
        )
        for (task, cause), group in groups.items()
    ]
    return tuple(sorted(causes, key=lambda cause: (-cause.rows, cause.task, cause.cause)))


def _sample(letter: Mapping[str, Any]) -> LetterSample:
    return LetterSample(letter["record"], letter["error"], letter["epoch"], letter["at"])


def _cause(error: str) -> str:
    """What errors of the same kind have in common.

    >>> _cause("ValueError: no sensor '17' in row 4.5\\nmore")
    "ValueError: no sensor '...' in row ..."
    """
    line = error.strip().partition("\n")[0][:300]
    line = re.sub(r"'[^']*'", "'...'", line)
    line = re.sub(r'"[^"]*"', '"..."', line)
    return re.sub(r"(?<![\w.])-?\d[\d.,:eE+-]*", "...", line)
