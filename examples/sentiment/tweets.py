"""Make tweets whose language, feeling and hashtags are known.

    .venv/bin/python examples/sentiment/tweets.py data/tweets --tweets 20000
    .venv/bin/python examples/sentiment/tweets.py data/tweets --tweets 60000 --rate 500    # a file a second

A tweet follows from the seed and its number. Six languages, more than half of the tweets English; a few hashtags are
used much more than the others, and every minute or so another one has its day.
"""

import argparse
import json
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import feelings

BEGINNING = datetime(2026, 7, 1, 18, tzinfo=UTC)
SHARES = {"en": 0.55, "es": 0.13, "fr": 0.09, "de": 0.08, "pt": 0.08, "it": 0.07}
PLACES = ("Austin", "Boston", "Chicago", "Denver", "Leeds", "London", "Toronto", "Sydney")
TAGS = (
    *("final", "goal", "derby", "champions", "penalty", "referee", "offside", "kickoff", "transfer", "coach"),
    *("stadium", "fans", "anthem", "replay", "keeper", "worldcup", "trophy", "highlights", "lineup", "halftime"),
    *("news", "weather", "traffic", "music", "cinema", "coffee", "travel", "recipes", "books", "games", "startup"),
    *("election", "market", "science", "space", "climate", "health", "fashion", "garden", "photography"),
)
BURST_S, BURST_SHARE = 70.0, 0.35
"""How long a hashtag has its day, and the share of tweets that then carry it."""

PHRASES: dict[str, dict[str, list[str]]] = json.loads(
    Path(__file__).with_name("phrases.json").read_text(encoding="utf-8")
)
"""Sentences in each language, and what they may be about."""

FELT = "so {}|how {}|simply {}|really {} if you ask me|{}, {}|that is {} and {}"
"""What is said of a feeling, in English; the words come from the lexicon."""


@dataclass(frozen=True, slots=True)
class Tweet:
    """A tweet, and what is known of it."""

    id: int
    at: datetime
    place: str
    text: str
    language: str
    score: int
    """The sum of the valences of its English words; 0 in other languages."""

    hashtags: tuple[str, ...]

    def line(self) -> str:
        """What is told of it: all but what is to be found out."""
        at = self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return json.dumps({"id": self.id, "at": at, "place": self.place, "text": self.text}, ensure_ascii=False)


def tweets(seed: int, first: int, count: int, per_s: float = 50.0) -> Iterator[Tweet]:
    """Some tweets, ``per_s`` of them in a second of event time."""
    for number in range(first, first + count):
        yield _tweet(random.Random(f"{seed}-{number}"), seed, number, number / per_s)


def _tweet(draw: random.Random, seed: int, number: int, after_s: float) -> Tweet:
    language = draw.choices(list(SHARES), list(SHARES.values()))[0]
    sentence = draw.choice(PHRASES[language]["sentences"]).format(draw.choice(PHRASES[language]["subjects"]))
    if draw.random() < 0.5:
        sentence = sentence[0].upper() + sentence[1:]
    parts, score = [sentence], 0
    if language == "en" and draw.random() < 0.8:
        felt, score = _felt(draw)
        parts.insert(draw.randrange(2), felt)
    tags = _tags(draw, seed, after_s)
    parts += [f"#{tag.upper() if draw.random() < 0.1 else tag}" for tag in tags]
    if draw.random() < 0.2:
        parts.insert(0, "@user")
    if draw.random() < 0.15:
        parts.append(f"https://example.org/{draw.randrange(10**6)}")
    at = BEGINNING + timedelta(milliseconds=round(after_s * 1_000))
    return Tweet(number, at, draw.choice(PLACES), " ".join(parts), language, score, tuple(tags))


def _felt(draw: random.Random) -> tuple[str, int]:
    """What is said of a feeling, and the valences of its words summed up."""
    form = draw.choice(FELT.split("|"))
    words = [draw.choice(_WORDS) for _ in range(form.count("{}"))]
    shown = [word.upper() if draw.random() < 0.1 else word for word in words]
    return f"{form.format(*shown)}{draw.choice(('!', '.', ' :)', ''))}", sum(feelings.lexicon()[word] for word in words)


_WORDS = tuple(feelings.lexicon())
_WEIGHTS = [1.0 / (place + 1) for place in range(len(TAGS))]


def _tags(draw: random.Random, seed: int, after_s: float) -> list[str]:
    """Hashtags, each once: by Zipf's law, and the one that has its day."""
    tags = draw.choices(TAGS, _WEIGHTS, k=draw.choice((0, 1, 1, 2, 3)))
    if draw.random() < BURST_SHARE:
        tags.append(random.Random(f"{seed}-burst-{int(after_s / BURST_S)}").choice(TAGS))
    return list(dict.fromkeys(tags))


def end_mark(count: int, per_s: float = 50.0) -> Tweet:
    """An English tweet an hour after all others: with it, all windows of event time before it have passed."""
    at = BEGINNING + timedelta(seconds=count / per_s + 3_600)
    return Tweet(count, at, "Nowhere", "that was all of it for this evening #end", "en", 0, ("end",))


def write_files(folder: Path, seed: int, count: int, files: int, per_s: float) -> None:
    """Write tweets as files of equal size, and one that marks the end; each appears whole."""
    bounds = [count * number // files for number in range(files + 1)]
    began_s = int(time.time()) - files
    for number, (first, last) in enumerate(pairwise(bounds)):
        put(folder, number, [tweet.line() for tweet in tweets(seed, first, last - first, per_s)], began_s + number)
    put(folder, files, [end_mark(count, per_s).line()], began_s + files)


def put(folder: Path, number: int, texts: list[str], at_s: int | None = None) -> None:
    """Add a file, whole. Files are read in the order of their times, which ``at_s`` may set."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{number:06d}.json"
    hidden.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    if at_s is not None:
        os.utime(hidden, (at_s, at_s))
    hidden.rename(folder / f"{number:06d}.json")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make tweets whose language, feeling and hashtags are known.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tweets", type=int, default=20_000, help="how many (20000)")
    parser.add_argument("--rate", type=int, help="so many a second, a file each second, in place of all at once")
    parser.add_argument("--per-s", type=float, default=50.0, help="tweets in a second of event time (50)")
    parser.add_argument("--seed", type=int, default=1, help="another seed makes other tweets (1)")
    given = parser.parse_args()
    if not given.rate:
        write_files(given.folder, given.seed, given.tweets, 10, given.per_s)
        return
    for number, first in enumerate(range(0, given.tweets, given.rate)):
        some = tweets(given.seed, first, min(given.rate, given.tweets - first), given.per_s)
        put(given.folder, number, [tweet.line() for tweet in some])
        print(f"\r{min(first + given.rate, given.tweets):,} of {given.tweets:,} tweets", end="", flush=True)
        time.sleep(1.0)
    put(given.folder, -(-given.tweets // given.rate), [end_mark(given.tweets, given.per_s).line()])
    print()


if __name__ == "__main__":
    main()
