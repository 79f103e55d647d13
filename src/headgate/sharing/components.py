"""Which sources hang together: running dataflows as connected components, kept up to date while tasks come and go.

A running dataflow of SHARE is a connected component of the running graph. Every task is reached from a *root* (a task
that nothing feeds, other than to close a loop), so it is enough to keep the components of the roots, linked wherever a
task reads streams of two roots. A task behind a single root never links anything: most submissions and withdrawals
leave this value as it is.

Joining two components renumbers the smaller one. When the last link between two roots goes, the graph is searched from
both ends in turn until one end has nothing left to search; that is the smaller part, and it gets a new number. Both
cost what the smaller side has in roots and links, not in tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from immutables import Map

from headgate.model.names import Signature

__all__ = ["Components", "Link"]

Link = tuple[Signature, Signature]
"""Two roots whose rows meet in a task."""

Roots = Map[Signature, None]


@dataclass(frozen=True, slots=True)
class Components:
    """Roots by the number of their component, and how many streams link each pair of them.

    >>> a, b, c = map(Signature, "abc")
    >>> joined = Components().add([a, b, c]).link([(a, b), (b, c)])
    >>> len(joined), len(joined.unlink([(a, b)])), joined.of(a) == joined.of(c)
    (1, 2, True)
    """

    numbers: Map[Signature, int] = field(default_factory=Map)
    members: Map[int, Roots] = field(default_factory=Map)
    links: Map[Signature, Map[Signature, int]] = field(default_factory=Map)
    made: int = 0
    """How many numbers were given out; none is used twice."""

    def __len__(self) -> int:
        return len(self.members)

    def of(self, root: Signature) -> int:
        """The number of a root's component."""
        return self.numbers[root]

    def add(self, roots: Iterable[Signature]) -> Components:
        """New roots, each a component by itself."""
        numbers, members, made = self.numbers, self.members, self.made
        for root in roots:
            made += 1
            numbers = numbers.set(root, made)
            members = members.set(made, Map({root: None}))
        return replace(self, numbers=numbers, members=members, made=made)

    def remove(self, roots: Iterable[Signature]) -> Components:
        """Without roots that nothing links any more."""
        numbers, members = self.numbers, self.members
        for root in roots:
            number = numbers[root]
            numbers = numbers.delete(root)
            left = members[number].delete(root)
            members = members.set(number, left) if left else members.delete(number)
        return replace(self, numbers=numbers, members=members)

    def link(self, links: Iterable[Link]) -> Components:
        """Streams that link roots more: their components become one."""
        after = self
        for one, other in links:
            after = after._linked(one, other)._joined(one, other)
        return after

    def unlink(self, links: Iterable[Link]) -> Components:
        """Such streams less: components may split."""
        after, ends = self, dict[Signature, None]()
        for one, other in links:
            after, gone = after._unlinked(one, other)
            ends |= {one: None, other: None} if gone else {}
        # Not just the ends of each link: when the middle of three parts gets a new number, the outer two keep theirs.
        leaders: dict[int, Signature] = {}
        for end in ends:
            leader = leaders.setdefault(after.of(end), end)
            after = after._parted(leader, end) if leader != end else after
            leaders |= {after.of(leader): leader, after.of(end): end}
        return after

    def _linked(self, one: Signature, other: Signature) -> Components:
        links = self.links
        for near, far in ((one, other), (other, one)):
            beside = links.get(near) or Map()
            links = links.set(near, beside.set(far, beside.get(far, 0) + 1))
        return replace(self, links=links)

    def _unlinked(self, one: Signature, other: Signature) -> tuple[Components, bool]:
        links, gone = self.links, False
        for near, far in ((one, other), (other, one)):
            beside = links[near]
            gone = beside[far] == 1
            beside = beside.delete(far) if gone else beside.set(far, beside[far] - 1)
            links = links.set(near, beside) if beside else links.delete(near)
        return replace(self, links=links), gone

    def _joined(self, one: Signature, other: Signature) -> Components:
        large, small = self.of(one), self.of(other)
        if large == small:
            return self
        if len(self.members[large]) < len(self.members[small]):
            large, small = small, large
        return self._renumbered(list(self.members[small]), small, large)

    def _parted(self, one: Signature, other: Signature) -> Components:
        if self.of(one) != self.of(other):
            return self
        part = self._smaller_part(one, other)
        if part is None:
            return self
        made = self.made + 1
        return replace(self._renumbered(part, self.of(one), made), made=made)

    def _renumbered(self, roots: list[Signature], old: int, new: int) -> Components:
        numbers = self.numbers.mutate()
        left, joined = self.members[old].mutate(), self.members.get(new, Map()).mutate()
        for root in roots:
            numbers[root] = new
            joined[root] = None
            del left[root]
        members = self.members.set(new, joined.finish())
        rest = left.finish()
        members = members.set(old, rest) if rest else members.delete(old)
        return replace(self, numbers=numbers.finish(), members=members)

    def _smaller_part(self, one: Signature, other: Signature) -> list[Signature] | None:
        """The roots reached from whichever end is searched through first; ``None`` if the ends still hang together."""
        sides = [{one}, {other}]
        searches = [self._reached(sides[0]), self._reached(sides[1])]
        while True:
            for side, search in enumerate(searches):
                met = next(search, None)
                if met is None:
                    return list(sides[side])
                if met in sides[1 - side]:
                    return None

    def _reached(self, seen: set[Signature]) -> Iterator[Signature]:
        """Search from the one root in ``seen``, a root at a time, noting each there."""
        waiting = list(seen)
        while waiting:
            for beside in self.links.get(waiting.pop()) or ():
                if beside not in seen:
                    seen.add(beside)
                    waiting.append(beside)
                    yield beside
