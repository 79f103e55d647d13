"""The function calls of a SQL text: a call is a name before a bracket."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.model.sql.lexer import Word, WordKind, words_of

__all__ = ["FunctionCall", "calls_of"]

_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A name before a bracket, and the words of what is called with."""

    name: Word
    qualified: bool
    """Whether there is a point before the name."""

    arguments: tuple[tuple[Word, ...], ...]
    end: int
    """Where its closing bracket ends."""

    in_lambda: bool
    """Whether it stands in a lambda function, and is called for each element of something."""

    within: tuple[str, ...]
    """The functions in whose arguments it stands."""

    @property
    def folded(self) -> str:
        return self.name.folded


def calls_of(text: str) -> Iterator[FunctionCall]:
    """The calls of a text, outer ones before those in them.

    >>> [(call.folded, len(call.arguments)) for call in calls_of("concat(a, upper(b)) in (1, 2)")]
    [('concat', 2), ('upper', 1), ('in', 2)]
    """
    words = words_of(text)
    closing = _closings(words)
    around: list[tuple[int, str]] = []
    lambdas: list[int] = []
    for place, word in enumerate(words[:-1]):
        while around and around[-1][0] < place:
            around.pop()
        while lambdas and lambdas[-1] < place:
            lambdas.pop()
        if word.text == "->":
            lambdas.append(_end_of_argument(words, place, closing))
        if words[place + 1].text != "(" or word.kind not in (WordKind.NAME, WordKind.QUOTED):
            continue
        last = closing.get(place + 1, len(words) - 1)
        qualified = place > 0 and words[place - 1].text == "."
        arguments = _arguments(words[place + 2 : last])
        within = tuple(name for _, name in around)
        yield FunctionCall(word, qualified, arguments, words[last].end, bool(lambdas), within)
        around.append((last, word.folded))


def _closings(words: tuple[Word, ...]) -> dict[int, int]:
    """The place of the bracket that closes each opening one."""
    opened: list[int] = []
    closing: dict[int, int] = {}
    for place, word in enumerate(words):
        if word.kind is WordKind.MARK and word.text in _OPENING:
            opened.append(place)
        elif word.kind is WordKind.MARK and word.text in _CLOSING and opened:
            closing[opened.pop()] = place
    return closing


def _end_of_argument(words: tuple[Word, ...], place: int, closing: dict[int, int]) -> int:
    """Where the argument ends in which a word stands."""
    while place < len(words):
        word = words[place]
        if word.kind is WordKind.MARK and (word.text == "," or word.text in _CLOSING):
            return place
        place = closing.get(place, place) + 1
    return place


def _arguments(words: tuple[Word, ...]) -> tuple[tuple[Word, ...], ...]:
    arguments: list[list[Word]] = [[]]
    depth = 0
    for word in words:
        if word.kind is WordKind.MARK:
            depth += (word.text in _OPENING) - (word.text in _CLOSING)
            if word.text == "," and depth == 0:
                arguments.append([])
                continue
        arguments[-1].append(word)
    return tuple(map(tuple, arguments)) if arguments != [[]] else ()
