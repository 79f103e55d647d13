"""A document as it was written: plain values, and the line of each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from headgate.errors import Fault, Place

__all__ = ["Located", "Mark", "MarkedDict", "MarkedList", "Path", "find_mark", "with_tasks"]

Mark = tuple[int, int | None]
"""Line and column, from 1."""

Path = Sequence[str | int]


class MarkedDict(dict[str, Any]):
    """A mapping that keeps its own place and that of each key."""

    __slots__ = ("mark", "marks")

    def __init__(self, mark: Mark) -> None:
        super().__init__()
        self.mark = mark
        self.marks: dict[str, Mark] = {}

    def put(self, key: str, value: object, mark: Mark) -> None:
        self[key] = value
        self.marks[key] = mark


class MarkedList(list[Any]):
    """A list that keeps its own place and that of each item."""

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
        """The place of the part at ``path``, or of the closest part above it."""
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


def with_tasks(faults: Iterable[Fault], tree: object, value: Any) -> tuple[Fault, ...]:
    """Faults of the text, each with the id of the task that it is in, if any.

    ``tree`` has the marks of the document, ``value`` its content.
    """
    if not isinstance(tree, MarkedDict) or not isinstance(tree.get("tasks"), MarkedList):
        return tuple(faults)
    begin = tree.marks["tasks"]
    end = min((mark for mark in tree.marks.values() if mark > begin), default=(inf, 0))
    marks = tree["tasks"].marks

    def with_task(fault: Fault) -> Fault:
        here = (fault.place.line or 0, fault.place.column or 0)
        position = bisect_right(marks, here) - 1
        if not begin <= here < end or position < 0:
            return fault
        task = value["tasks"][position]
        name = task.get("id") if isinstance(task, dict) else None
        return replace(fault, task=name) if isinstance(name, str) else fault

    return tuple(map(with_task, faults))
