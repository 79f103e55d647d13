"""What is known of the running tasks, and where to look for one whose stream is wider than what is wished."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from headgate.model.names import Signature
from headgate.sharing.semantic.form import Known, NormalForm
from headgate.sharing.versioned import VersionedMap

__all__ = ["FormIndex"]

MOST_CANDIDATES = 64
"""So many tasks are kept for one place to look, so that a submission costs what its own size is."""


@dataclass(frozen=True, slots=True)
class FormIndex:
    """Running tasks by what they make, as a value.

    A form is kept in one place: under its base, and where it has conjuncts, under the subject of the least of them.
    What contains a wish has conjuncts that the wish implies, so it is kept under a subject of the wish's own.
    """

    known: VersionedMap[Signature, Known] = field(default_factory=VersionedMap)
    places: VersionedMap[Hashable, tuple[Signature, ...]] = field(default_factory=VersionedMap)

    def add(self, tasks: Mapping[Signature, Known]) -> FormIndex:
        places: dict[Hashable, tuple[Signature, ...]] = {}
        for signature, known in tasks.items():
            place = _place(known)
            if place is not None:
                there = places.get(place, self.places.get(place) or ())
                if len(there) < MOST_CANDIDATES:
                    places[place] = (*there, signature)
        return replace(self, known=self.known.updated(tasks), places=self.places.updated(places))

    def remove(self, signatures: list[Signature]) -> FormIndex:
        places: dict[Hashable, tuple[Signature, ...]] = {}
        gone: list[Hashable] = []
        known = [signature for signature in signatures if signature in self.known]
        for signature in known:
            place = _place(self.known[signature])
            there = places.get(place, self.places.get(place) or ()) if place is not None else ()
            if signature in there:
                places[place] = tuple(other for other in there if other != signature)
        for place in [place for place, there in places.items() if not there]:
            del places[place]
            gone.append(place)
        return FormIndex(self.known.updated({}, without=known), self.places.updated(places, without=gone))

    def candidates(self, wish: Known) -> Iterator[tuple[Signature, Known]]:
        """Running tasks that may contain what a task is to make."""
        seen: set[Signature] = set()
        for place in _looked_at(wish):
            for signature in self.places.get(place) or ():
                if signature not in seen:
                    seen.add(signature)
                    yield signature, self.known[signature]


def _place(known: Known) -> Hashable | None:
    if known.window is not None:
        return known.window.group
    if known.form is None:
        return None
    subjects = sorted((_subject(term) for term in known.form.conjuncts), key=repr)
    return _under(known.form, subjects[0] if subjects else None)


def _looked_at(wish: Known) -> list[Hashable]:
    if wish.window is not None:
        return [wish.window.group]
    if wish.form is None:
        return []
    subjects = dict.fromkeys(_subject(term) for term in wish.form.conjuncts)
    return [_under(wish.form, subject) for subject in (*subjects, None)]


def _subject(term: tuple[object, ...]) -> Hashable:
    """What a conjunct is about: the term that it tests."""
    if term[0] in ("or", "and"):
        return term
    inner = term[1]
    return inner[1] if term[0] == "not" and isinstance(inner, tuple) and len(inner) > 1 else inner


def _under(form: NormalForm, subject: Hashable) -> Hashable:
    return (*form.base, form.scope, subject)
