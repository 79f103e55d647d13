"""The topics of a host of chains: those of its plan, and those of tasks that are gone until their rows are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from headgate.runtime.compile.plan import ChainedSide, Fragment
from headgate.store.files import read_json, write_json

__all__ = ["FILE", "ChainTopic", "ChainTopics", "listed"]

FILE = "topics.json"
"""In the folder of the fragment."""


class ChainTopic(NamedTuple):
    """A topic that a host reads."""

    whose: ChainedSide
    left: int | None = None
    """The snapshot that has it no more, if there is one."""


def listed(folder: Path) -> dict[str, ChainTopic]:
    """The topics that a fragment reads, by its folder."""
    known = read_json(folder / FILE) or {}
    return {topic: ChainTopic(ChainedSide(*whose), left) for topic, (whose, left) in sorted(known.items())}


@dataclass(slots=True)
class ChainTopics:
    """The topics of a host of chains, kept in its folder, where its clock finds them."""

    folder: Path

    def all(self) -> dict[str, ChainTopic]:
        return listed(self.folder)

    def adopt(self, fragment: Fragment, number: int) -> None:
        """Read the topics of a plan of that number; those that it lacks are read until somebody drops them."""
        known = self.all()
        now = {topic: ChainTopic(whose) for topic, whose in zip(fragment.reads, fragment.reads_for, strict=True)}
        gone = {
            topic: one if one.left is not None else one._replace(left=number)
            for topic, one in known.items()
            if topic not in now
        }
        if known != now | gone:
            self._store(now | gone)

    def drop(self, is_drained: Callable[[str, int], bool]) -> list[str]:
        """Drop topics of tasks that are gone and that are drained; returns them."""
        known = self.all()
        drained = [t for t, one in known.items() if one.left is not None and is_drained(t, one.left)]
        if drained:
            self._store({topic: one for topic, one in known.items() if topic not in drained})
        return drained

    def _store(self, topics: Mapping[str, ChainTopic]) -> None:
        write_json(self.folder / FILE, topics, "topics")
