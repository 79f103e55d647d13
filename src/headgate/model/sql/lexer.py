"""The words of a SQL text as Spark's own lexer separates them; what might be read in two ways is refused.

sqlglot reads more dialects than Spark's, and Spark more than sqlglot knows. Which functions a text calls must not
depend on who reads it, so it is decided on these words: a call is a name before a bracket, whatever is around it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

__all__ = ["Word", "WordKind", "words_of"]


class WordKind(Enum):
    """What a word is."""

    NAME = auto()
    QUOTED = auto()
    """A name between backquotes."""

    TEXT = auto()
    MARK = auto()


@dataclass(frozen=True, slots=True)
class Word:
    """A word, and where it stands."""

    kind: WordKind
    text: str
    """As it is written."""

    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def folded(self) -> str:
        """A name in lower case."""
        return self.text.lower()


_SPACE = re.compile(r"[ \t\r\n]+")
_LINE_COMMENT = re.compile(r"--[^\n]*")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_NAME = re.compile(r"\w+")
_QUOTED = re.compile(r"`(?:[^`]|``)*`")
_TEXT = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"", re.DOTALL)
_RAW_TEXT = re.compile(r"'[^']*'|\"[^\"]*\"")
_MARK = re.compile(r"->|=>|[()\[\]{}.,+\-*/%<>=!&|^~:;?]")


@lru_cache(maxsize=4_096)
def words_of(text: str) -> tuple[Word, ...]:
    """The words of a SQL text, without spaces and comments; raises ``ValueError`` for what Spark might read otherwise.

    >>> [word.text for word in words_of("upper(`the city`) = r'\\\\' -- why")]
    ['upper', '(', '`the city`', ')', '=', "r'\\\\'"]
    """
    words: list[Word] = []
    position = 0
    while position < len(text):
        if match := _SPACE.match(text, position) or _comment(text, position):
            position = match.end()
            continue
        words.append(_word(text, position))
        position = words[-1].end
    return tuple(words)


def _comment(text: str, position: int) -> re.Match[str] | None:
    match = _LINE_COMMENT.match(text, position) or _COMMENT.match(text, position)
    if match is None:
        return None
    inside = match[0][2:]
    # Spark nests comments, goes on with a line after a backslash, and takes some comments for hints.
    if inside.startswith("+") or "/*" in inside or "\\" in inside or "\r" in inside[:-1]:
        raise ValueError(f"a comment that may be read in two ways, at character {position + 1} (leave it out)")
    return match


def _word(text: str, position: int) -> Word:
    if match := _NAME.match(text, position):
        follows = text[match.end() : match.end() + 1]
        if match[0] in ("r", "R") and follows in ("'", '"') and (raw := _RAW_TEXT.match(text, match.end())):
            return Word(WordKind.TEXT, match[0] + raw[0], position)
        return Word(WordKind.NAME, match[0], position)
    for kind, pattern in ((WordKind.QUOTED, _QUOTED), (WordKind.TEXT, _TEXT), (WordKind.MARK, _MARK)):
        if match := pattern.match(text, position):
            return Word(kind, match[0], position)
    if text[position] in "'\"`":
        raise ValueError("a quote that is not closed")
    raise ValueError(f"the character {text[position]!r} outside of quotes")
