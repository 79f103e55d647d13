"""The functions of tweets.xml: clean a tweet, and find its topic in three ways.

    .venv/bin/python examples/tweets/tweet_topics.py      measures what each way is worth and costs

Each way takes more time and finds more: words one by one (naive Bayes on a few training tweets), topics of words
(latent Dirichlet allocation), and the same with multi-word expressions. The models are trained when first used, on
tweets of another seed.
"""

import re
import sys
import time
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from make_tweets import tweets

TRAINING_SEED = 1_000_003
_NOT_WORDS = re.compile(r"https?://\S+|@\w+|[^\w\s]")


def clean(row: dict[str, Any]) -> dict[str, Any]:
    """The tweet in lower case, without names, links and punctuation.

    >>> clean({"value": "@ana Ice cream, finally! https://t.example/1"})
    {'tweet': 'ice cream finally'}
    """
    return {"tweet": " ".join(_NOT_WORDS.sub(" ", (row["value"] or "").lower()).split())}


def bayes(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"topic": str(_bayes().predict([row["tweet"]])[0])}


def lda(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"topic": _lda_topic(row["tweet"], longest=1)}


def lda_multi_word(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"topic": _lda_topic(row["tweet"], longest=2)}


def _training(count: int) -> tuple[list[str], list[str]]:
    texts, topics = zip(*tweets(count, TRAINING_SEED), strict=True)
    return [clean({"value": text})["tweet"] for text in texts], list(topics)


@lru_cache(maxsize=1)
def _bayes() -> Any:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline

    return make_pipeline(CountVectorizer(), MultinomialNB()).fit(*_training(60))


@lru_cache(maxsize=2)
def _lda(longest: int) -> tuple[Any, dict[int, str]]:
    """The model, and the topic that most training tweets of each component have."""
    from sklearn.decomposition import LatentDirichletAllocation
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline

    texts, topics = _training(2_000)
    counter = CountVectorizer(ngram_range=(longest, longest), min_df=30)
    components = LatentDirichletAllocation(32 * longest, learning_method="online", random_state=1)
    model = make_pipeline(counter, components)
    likeliest = model.fit_transform(texts).argmax(axis=1)
    by_component: dict[int, Counter[str]] = {}
    for component, topic in zip(likeliest.tolist(), topics, strict=True):
        by_component.setdefault(component, Counter())[topic] += 1
    return model, {component: counts.most_common(1)[0][0] for component, counts in by_component.items()}


def _lda_topic(text: str, longest: int) -> str:
    model, topics = _lda(longest)
    return topics.get(int(model.transform([text]).argmax()), "food")


def main() -> None:
    """Share of 500 tweets whose topic each way finds, relative to the best, and its time per tweet."""
    sample = [(clean({"value": text}), topic) for text, topic in tweets(500, seed=7)]
    ways = {"bayes": bayes, "lda": lda, "multi_word": lda_multi_word}
    right, took_ms = {}, {}
    for name, way in ways.items():
        way(sample[0][0])  # trains the model
        began = time.process_time()
        right[name] = sum(way(row)["topic"] == topic for row, topic in sample) / len(sample)
        took_ms[name] = (time.process_time() - began) * 1_000 / len(sample)
    for name in ways:
        print(
            f"{name:12} right {right[name]:.3f}  value {right[name] / max(right.values()):.2f}  {took_ms[name]:.2f} ms"
        )


if __name__ == "__main__":
    main()
