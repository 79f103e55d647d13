"""A mapping with versions: each is a value that never changes, and the newest is as quick as a plain dict.

There is one dict, held by the version that was used last. Every other version holds what differs between it and its
neighbour on the way there. Using another version turns the differences on that way around, so that it holds the dict
(*rerooting*; H. G. Baker, "Shallow binding makes functional arrays fast", ACM SIGPLAN Notices 26(8), 1991). One step
costs what one change was large. A version that nobody holds any more is freed.

Beside a hash array mapped trie, whose every change copies a path of nodes all over the memory, this takes a third of
the time at a hundred thousand dataflows, and grows less with their number. Versions may be used from several threads.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from threading import RLock
from typing import Generic, TypeVar, overload

__all__ = ["VersionedMap"]

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class _Absent:
    pass


_ABSENT = _Absent()


class VersionedMap(Mapping[K, V], Generic[K, V]):
    """An immutable mapping that is cheap to change: :meth:`updated` returns the next version.

    >>> first = VersionedMap({"a": 1})
    >>> second = first.updated({"b": 2}, without=["a"])
    >>> dict(second), dict(first), dict(second)
    ({'b': 2}, {'a': 1}, {'b': 2})
    """

    __slots__ = ("_differences", "_items", "_lock", "_nearer")

    def __init__(self, items: Mapping[K, V] | None = None) -> None:
        self._items: dict[K, V] | None = dict(items or {})
        self._differences: dict[K, V | _Absent] = {}
        """What to set to come from the nearer version to this one."""
        self._nearer: VersionedMap[K, V] | None = None
        """The next version on the way to the one that holds the dict."""
        self._lock = RLock()

    def updated(self, changes: Mapping[K, V], without: Iterable[K] = ()) -> VersionedMap[K, V]:
        """The next version: with some keys set, and others gone. Raises ``KeyError`` for one that is not there."""
        with self._lock:
            items = self._items if self._items is not None else self._held()
            get = items.get
            differences: dict[K, V | _Absent] = {key: items[key] for key in without}
            for key in differences:
                if key not in changes:
                    del items[key]
            differences |= {key: get(key, _ABSENT) for key in changes}
            items.update(changes)
            newer: VersionedMap[K, V] = VersionedMap.__new__(VersionedMap)
            newer._items, newer._differences, newer._nearer, newer._lock = items, {}, None, self._lock
            self._items, self._differences, self._nearer = None, differences, newer
            return newer

    def __getitem__(self, key: K) -> V:
        with self._lock:
            return (self._items if self._items is not None else self._held())[key]

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | D) -> V | D: ...
    def get(self, key: K, /, default: object = None) -> object:
        with self._lock:
            return (self._items if self._items is not None else self._held()).get(key, default)

    def look_up(self, keys: Iterable[K]) -> list[V | None]:
        """The values of several keys, ``None`` for those that are not there."""
        with self._lock:
            get = (self._items if self._items is not None else self._held()).get
            return [get(key) for key in keys]

    def __contains__(self, key: object) -> bool:
        with self._lock:
            return key in (self._items if self._items is not None else self._held())

    def __len__(self) -> int:
        with self._lock:
            return len(self._held())

    def __iter__(self) -> Iterator[K]:
        return iter(self.as_dict())

    def items(self) -> ItemsView[K, V]:
        return self.as_dict().items()

    def values(self) -> ValuesView[V]:
        return self.as_dict().values()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VersionedMap):
            return NotImplemented
        return self is other or self.as_dict() == other.as_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"VersionedMap({self.as_dict()!r})"

    def as_dict(self) -> dict[K, V]:
        """A copy in plain Python."""
        with self._lock:
            return dict(self._held())

    def _held(self) -> dict[K, V]:
        """The dict, in this version's state and held by it."""
        way: list[VersionedMap[K, V]] = []
        holder = self
        while holder._items is None:
            assert holder._nearer is not None
            way.append(holder)
            holder = holder._nearer
        for version in reversed(way):
            items = holder._items
            assert items is not None
            back: dict[K, V | _Absent] = {key: items.get(key, _ABSENT) for key in version._differences}
            for key, value in version._differences.items():
                if isinstance(value, _Absent):
                    del items[key]
                else:
                    items[key] = value
            holder._items, holder._differences, holder._nearer = None, back, version
            version._items, version._differences, version._nearer = items, {}, None
            holder = version
        assert self._items is not None
        return self._items
