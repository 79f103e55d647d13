"""Scores the words of a tweet by a lexicon of valences, from -5 (bad) to 5 (good), and finds its hashtags."""

import re
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

__all__ = ["hashtags_of", "lexicon", "score_of", "split_and_score"]

WORD = re.compile(r"[a-z']+")
HASHTAG = re.compile(r"#(\w+)")
_LEFT_OUT = re.compile(r"https?://\S+|[@#]\w+")


@lru_cache(maxsize=1)
def lexicon() -> dict[str, int]:
    """Valences by word, from lexicon.txt beside this file."""
    lines = Path(__file__).with_name("lexicon.txt").read_text(encoding="utf-8").splitlines()
    return {word: int(score) for word, score in (line.split("\t") for line in lines)}


def score_of(text: str) -> int:
    """The sum of the valences of a text's words.

    >>> score_of("What a GREAT day, thank you @ana! #terrible")
    5
    """
    valences = lexicon()
    return sum(valences.get(word, 0) for word in WORD.findall(_LEFT_OUT.sub(" ", text.lower())))


def hashtags_of(text: str) -> list[str]:
    """The hashtags of a text, in lower case, each once.

    >>> hashtags_of("#Goal by Ana, what a #goal! #final")
    ['goal', 'final']
    """
    return list(dict.fromkeys(tag.lower() for tag in HASHTAG.findall(text)))


def split_and_score(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The operator: a batch of English tweets, with their score and hashtags in the place of the text."""
    texts = [text or "" for text in batch.column("text").to_pylist()]
    return pa.RecordBatch.from_arrays(
        [
            *(batch.column(name) for name in ("id", "at", "place")),
            pa.array([score_of(text) for text in texts], pa.int64()),
            pa.array([hashtags_of(text) for text in texts], pa.list_(pa.string())),
        ],
        ["id", "at", "place", "score", "hashtags"],
    )
