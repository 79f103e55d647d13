"""Make the messages that the micro-benchmarks read: JSON texts of a given size, a steady number a second.

.venv/bin/python examples/micro/messages.py data/micro --messages 1000
"""

import argparse
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

BEGINNING = datetime(2026, 7, 1, 12, tzinfo=UTC)
LETTERS = "abcdefghijklmnopqrstuvwxyz      "


def lines(seed: int, count: int, size: int, per_s: float) -> list[str]:
    """Messages as JSON lines: an id, a time, and a text of JSON that repeats the id."""
    lines = []
    for number in range(count):
        draw = random.Random(f"{seed}-{number}")
        message = json.dumps({"id": number, "text": "".join(draw.choices(LETTERS, k=size))})
        at = (BEGINNING + timedelta(seconds=number / per_s)).isoformat()
        lines.append(json.dumps({"id": number, "at": at, "message": message}))
    return lines


def write_files(folder: Path, seed: int, count: int, size: int = 1_000, per_s: float = 100.0) -> None:
    """Write one file for each of the two sources; each appears whole."""
    for source, own_seed in (("one", seed), ("two", seed + 1)):
        (folder / source).mkdir(parents=True, exist_ok=True)
        hidden = folder / f".{source}.json"
        hidden.write_text("".join(f"{line}\n" for line in lines(own_seed, count, size, per_s)), encoding="utf-8")
        hidden.rename(folder / source / "0.json")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the messages that the micro-benchmarks read.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--messages", type=int, default=1_000, help="how many for each source (1000)")
    parser.add_argument("--size", type=int, default=1_000, help="characters of a message's text (1000)")
    parser.add_argument("--per-s", type=float, default=100.0, help="messages in a second of event time (100)")
    parser.add_argument("--seed", type=int, default=1, help="another seed makes other messages (1)")
    given = parser.parse_args()
    write_files(given.folder, given.seed, given.messages, given.size, given.per_s)


if __name__ == "__main__":
    main()
