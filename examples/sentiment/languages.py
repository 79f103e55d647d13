"""Tells in which language a short text is written: naive Bayes over letters, pairs and triples of them.

It is trained, when it is first asked, on the few sentences in the folder texts, which have nothing to do with the texts
that it is asked about. Names of people, links and hashtags are left out, since they tell nothing of the language.
"""

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

__all__ = ["LANGUAGES", "detect", "languages_of"]

TEXTS = Path(__file__).with_name("texts")
LANGUAGES = ("de", "en", "es", "fr", "it", "pt")
_NOT_WORDS = re.compile(r"https?://\S+|<url>|[@#]\w+|[^\w\s']|\d")


def _plain(text: str) -> str:
    return " ".join(_NOT_WORDS.sub(" ", text.lower()).split())


@lru_cache(maxsize=1)
def _trained() -> Any:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline

    sentences, labels = [], []
    for language in LANGUAGES:
        text = (TEXTS / f"{language}.txt").read_text(encoding="utf-8").strip()
        for sentence in re.split(r"(?<=[.?!])\s+", text):
            sentences.append(_plain(sentence))
            labels.append(language)
    model = make_pipeline(CountVectorizer(analyzer="char_wb", ngram_range=(1, 3)), MultinomialNB(alpha=0.3))
    return model.fit(sentences, labels)


def languages_of(texts: list[str]) -> list[str]:
    """The language of each text: en, es, fr, de, pt or it.

    >>> languages_of(["Where is the station?", "¿Dónde está la estación?", "Wo ist der Bahnhof?"])
    ['en', 'es', 'de']
    """
    return [str(language) for language in _trained().predict([_plain(text) for text in texts])] if texts else []


def detect(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The operator: a batch of tweets, with a column ``language`` more."""
    texts = [text or "" for text in batch.column("text").to_pylist()]
    return batch.append_column("language", pa.array(languages_of(texts), pa.string()))
