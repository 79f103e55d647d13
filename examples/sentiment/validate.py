"""Compare what the dataflow wrote with what is known of the tweets, and with a plain computation of the rest.

    .venv/bin/python examples/sentiment/validate.py out/sentiment --tweets 20000

Tells how many languages were found out, and checks every average and every ranking. Exit status 1 if one is wrong.
"""

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

from feelings import lexicon
from languages import languages_of
from tweets import Tweet, end_mark, tweets

WINDOW_S, SLIDE_S, HIGHEST = 60, 10, 10

Averages = dict[int, tuple[str, int, float]]
Rankings = dict[int, list[tuple[int, str, int]]]


def taken_for_english(some: list[Tweet]) -> tuple[list[Tweet], float]:
    """The tweets that are taken for English, and the share of tweets whose language was found out."""
    results = languages_of([tweet.text for tweet in some])
    right = sum(language == tweet.language for language, tweet in zip(results, some, strict=True))
    return [tweet for language, tweet in zip(results, some, strict=True) if language == "en"], right / len(some)


def averages(english: list[Tweet]) -> Averages:
    """By a tweet's id: its place, the how manieth of the place it is, and the mean score of the place up to it."""
    seen: dict[str, list[int]] = defaultdict(list)
    results = {}
    for tweet in sorted(english, key=lambda tweet: tweet.id):
        scores = seen[tweet.place]
        scores.append(tweet.score if tweet.language == "en" else _score(tweet.text))
        results[tweet.id] = (tweet.place, len(scores), sum(scores) / len(scores))
    return results


def _score(text: str) -> int:
    """The score of a text that was taken for English and is not, word by word of the lexicon."""
    words = re.sub(r"(https?://|@|#)\S+", "", text).lower()
    return sum(score * len(re.findall(rf"(?<![a-z']){word}(?![a-z'])", words)) for word, score in lexicon().items())


def rankings(english: list[Tweet]) -> Rankings:
    """By the end of a window, in seconds since 1970: place, hashtag and tweets of those that are used most.

    Only windows that have passed when the last tweet comes.
    """
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for tweet in english:
        at_s = tweet.at.timestamp()
        first = int(at_s // SLIDE_S) * SLIDE_S + SLIDE_S
        for end_s in range(first, first + WINDOW_S, SLIDE_S):
            counts[end_s].update(tweet.hashtags)
    last_s = max(tweet.at.timestamp() for tweet in english if tweet.hashtags)
    results = {}
    for end_s, tags in counts.items():
        if end_s <= last_s and tags:
            ordered = sorted(tags.items(), key=lambda tag: (-tag[1], tag[0]))[:HIGHEST]
            results[end_s] = [(place, tag, count) for place, (tag, count) in enumerate(ordered, 1)]
    return results


def told_averages(rows: list[dict[str, Any]]) -> Averages:
    return {row["id"]: (row["place"], row["tweets"], row["average"]) for row in rows}


def told_rankings(rows: list[dict[str, Any]]) -> Rankings:
    results: Rankings = defaultdict(list)
    for row in rows:
        end = row["window_end"]
        moment = end if isinstance(end, datetime) else datetime.fromisoformat(end)
        results[round(moment.timestamp())].append((row["place"], row["hashtag"], row["tweets"]))
    return {end_s: sorted(some) for end_s, some in results.items()}


def faults(
    english: list[Tweet], average_rows: list[dict[str, Any]], ranking_rows: list[dict[str, Any]]
) -> tuple[int, int]:
    """How many averages and how many rankings are wrong, lacking or too many."""
    wanted, results = averages(english), told_averages(average_rows)
    wrong = sum(not _same(wanted.get(key), results.get(key)) for key in wanted.keys() | results.keys())
    wrong += abs(len(average_rows) - len(results))
    lists, ranked = rankings(english), told_rankings(ranking_rows)
    return wrong, sum(lists.get(key) != ranked.get(key) for key in lists.keys() | ranked.keys())


def _same(one: tuple[str, int, float] | None, two: tuple[str, int, float] | None) -> bool:
    return one is not None and two is not None and one[:2] == two[:2] and abs(one[2] - two[2]) < 1e-9


def _rows(folder: Path) -> list[dict[str, Any]]:
    texts = (path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.json")))
    return [json.loads(line) for text in texts for line in text.splitlines()]


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare what the dataflow wrote with what is known of the tweets.")
    parser.add_argument("answers", type=Path, help="the folder with averages and rankings")
    parser.add_argument("--tweets", type=int, default=20_000, help="as given to tweets.py (20000)")
    parser.add_argument("--per-s", type=float, default=50.0, help="as given to tweets.py (50)")
    parser.add_argument("--seed", type=int, default=1, help="as given to tweets.py (1)")
    given = parser.parse_args()
    some = [*tweets(given.seed, 0, given.tweets, given.per_s), end_mark(given.tweets, given.per_s)]
    english, share = taken_for_english(some)
    wrong = faults(english, _rows(given.answers / "averages"), _rows(given.answers / "rankings"))
    print(f"languages: {share:.2%} of {len(some):,} tweets")
    print(f"averages: {len(english):,}, {wrong[0]:,} wrong")
    print(f"rankings: {len(rankings(english)):,}, {wrong[1]:,} wrong")
    return 1 if any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
