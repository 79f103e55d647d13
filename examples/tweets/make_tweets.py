"""Makes tweets about four topics, with the topic of each known: the input of tweets.xml.

    .venv/bin/python examples/tweets/make_tweets.py [FOLDER] [--tweets 5000] [--seed 1]

FOLDER is data/topics if none is given. Some words belong to several topics; only the word beside them decides, as in
"ice cream" and "ice hockey". That is what makes the better classifiers of tweet_topics.py better.
"""

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

TOPICS = {
    "food": "ice cream|hot dog|street food|apple pie|dinner|kitchen|recipe|bakery|lunch|cheese|tomato|spicy",
    "sport": "ice hockey|home run|street race|hot streak|match|referee|goal|coach|league|stadium|penalty|season",
    "music": "home record|street band|apple music|rock concert|album|guitar|singer|encore|chorus|festival|drummer|lp",
    "weather": "ice storm|hot spell|rock fall|home flooded|rain|sunshine|forecast|thunder|humid|cloudy|breeze|frost",
}
FILLERS = (
    "so",
    "today",
    "really",
    "again",
    "my",
    "this",
    "the",
    "what a",
    "cannot wait",
    "with friends",
    "in town",
    "last night",
    "tomorrow",
    "finally",
)


def tweets(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Tweet and topic, one after the other; the same ones for the same seed."""
    draw = random.Random(seed)
    for number in range(count):
        topic = draw.choice(list(TOPICS))
        terms = TOPICS[topic].split("|")
        words = draw.sample(terms[:4], 1) + draw.sample(terms[4:], draw.choice((0, 0, 1))) + draw.sample(FILLERS, 3)
        if draw.random() < 0.25:
            words.append(draw.choice(draw.choice(list(TOPICS.values())).split("|")[4:]))
        draw.shuffle(words)
        yield f"@user{number % 97} {' '.join(words)}! https://t.example/{number}", topic


def main() -> None:
    parser = argparse.ArgumentParser(description="Make tweets about four topics.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("data/topics"))
    parser.add_argument("--tweets", type=int, default=5_000, help="how many (5000)")
    parser.add_argument("--seed", type=int, default=1, help="another seed makes other tweets (1)")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    lines = [text for text, _ in tweets(given.tweets, given.seed)]
    (given.folder / "tweets.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{given.tweets:,} tweets in {given.folder / 'tweets.txt'}")


if __name__ == "__main__":
    main()
