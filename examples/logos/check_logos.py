"""Check what the dataflow has found against what was drawn: precision and recall, by frames and by showings.

    .venv/bin/python examples/logos/check_logos.py out/logos

Only clips that are through count: those before the last one that anything was found in. Exit status 1 below 0.9.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clips import SEARCHED, scene

__all__ = ["Score", "by_frame", "by_showing", "drawn"]

Interval = tuple[int, str, int, int]
"""A clip, a logo, and the first and the last frame that show it."""


@dataclass(frozen=True, slots=True)
class Score:
    """Of so many that were found and so many that were drawn, how many agree."""

    right: int
    found: int
    drawn: int

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.drawn if self.drawn else 1.0

    @property
    def f1(self) -> float:
        return 2 * self.right / (self.found + self.drawn) if self.found + self.drawn else 1.0

    def __str__(self) -> str:
        return f"precision {self.precision:.3f}, recall {self.recall:.3f} ({self.right} right of {self.found} found)"


def drawn(clips: Iterable[int], seed: int = 1) -> set[Interval]:
    """What some clips show of the logos that are searched for."""
    return {(clip, s.logo, s.first, s.last) for clip in clips for s in scene(clip, seed) if s.logo in SEARCHED}


def by_frame(found: Iterable[Interval], clips: Iterable[int], seed: int = 1) -> Score:
    """Each logo in each frame counts."""
    there, wanted = (
        {(clip, logo, frame) for clip, logo, first, last in some for frame in range(first, last + 1)}
        for some in (found, drawn(clips, seed))
    )
    return Score(len(there & wanted), len(there), len(wanted))


def by_showing(found: Iterable[Interval], clips: Iterable[int], seed: int = 1) -> Score:
    """Each showing counts: it is found if something found overlaps it by more than half of the two together.

    What was found in two pieces is right at most once.
    """
    some = list(found)
    wanted = drawn(clips, seed)
    right = sum(any(_overlap(one, other) > 0.5 for other in some) for one in wanted)
    return Score(right, len(some), len(wanted))


def _overlap(one: Interval, other: Interval) -> float:
    if one[:2] != other[:2]:
        return 0.0
    both = min(one[3], other[3]) - max(one[2], other[2]) + 1
    return max(both, 0) / (max(one[3], other[3]) - min(one[2], other[2]) + 1)


def main() -> int:
    parser = argparse.ArgumentParser(description="Check found logos against those that were drawn.")
    parser.add_argument("folder", type=Path, help="what the dataflow wrote")
    given = parser.parse_args()
    lines = [line for file in sorted(given.folder.glob("*.json")) for line in file.read_text().splitlines()]
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    through = range(max((row["clip"] for row in rows), default=0))
    found = [(row["clip"], row["logo"], row["first"], row["last"]) for row in rows if row["clip"] in through]
    frames, showings = by_frame(found, through), by_showing(found, through)
    print(f"{len(through)} clips\nframes    {frames}\nshowings  {showings}")
    good = all(least >= 0.9 for score in (frames, showings) for least in (score.precision, score.recall))
    return 0 if through and good else 1


if __name__ == "__main__":
    sys.exit(main())
