"""A document as it was written: plain values, and the line on which each of them stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.errors import Fault, Place

__all__ = ["Located", "Mark", "MarkedDict", "MarkedList", "Path", "find_mark"]

Mark = tuple[int, int | None]
"""Line and column, from 1."""

Path = Sequence[str | int]


class MarkedDict(dict[str, Any]):
    """A mapping that remembers where it and each of its keys stand."""

    __slots__ = ("mark", "marks")

    def __init__(self, mark: Mark) -> None:
        super().__init__()
        self.mark = mark
        self.marks: dict[str, Mark] = {}

    def put(self, key: str, value: object, mark: Mark) -> None:
        self[key] = value
        self.marks[key] = mark


class MarkedList(list[Any]):
    """A list that remembers where it and each of its items stand."""

    __slots__ = ("mark", "marks")

    def __init__(self, mark: Mark) -> None:
        super().__init__()
        self.mark = mark
        self.marks: list[Mark] = []

    def put(self, value: object, mark: Mark) -> None:
        self.append(value)
        self.marks.append(mark)


@dataclass(frozen=True, slots=True)
class Located:
    """The content of a document and a way to find the line of any part of it.

    ``marked`` gives the tree of :class:`MarkedDict` and :class:`MarkedList`; it is called only when a fault must be
    placed, so a format whose fast parser knows no lines can parse again then.
    """

    value: Any
    file: str | None
    marked: Callable[[], Any]
    faults: tuple[Fault, ...] = ()
    """What is wrong with the document but did not keep it from being read, such as a key given twice."""

    def place(self, path: Path) -> Place:
        """Where the part at ``path`` stands; if it is not there, where the closest part above it stands."""
        mark = find_mark(self.marked(), path)
        return Place(self.file, *(mark or (1, None)))


def find_mark(tree: object, path: Path) -> Mark | None:
    """The mark of the deepest part along ``path`` that has one."""
    mark: Mark | None = getattr(tree, "mark", None)
    for step in path:
        if isinstance(tree, MarkedDict) and step in tree:
            mark, tree = tree.marks.get(str(step), mark), tree[str(step)]
        elif isinstance(tree, MarkedList) and isinstance(step, int) and 0 <= step < len(tree):
            mark, tree = tree.marks[step], tree[step]
        else:
            break
    return mark
