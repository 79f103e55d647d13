"""Make the events that Nexmark's queries read: people, auctions and bids, as files of JSON lines.

    .venv/bin/python examples/nexmark/events.py data/nexmark --events 100000
    .venv/bin/python examples/nexmark/events.py data/nexmark --events 60000 --rate 1000   # a file a second

The last file marks the end, an hour later: with it, all windows of event time before it are told of.
"""

import argparse
import time
from pathlib import Path

from headgate.errors import InputError
from headgate_benchmarks.nexmark.events import Events, end_marks, lines, write_files


def paced(events: Events, folder: Path, count: int, rate: int) -> None:
    """A file every second, as if the events came now; each appears whole."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, count, rate)):
        put(folder, number, list(lines(events, first, min(rate, count - first))))
        print(f"\r{min(first + rate, count):,} of {count:,} events", end="", flush=True)
        time.sleep(1.0)
    put(folder, -(-count // rate), end_marks(events, count))
    print()


def put(folder: Path, number: int, texts: list[str]) -> None:
    hidden = folder / f".{number:06d}.json"
    hidden.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    hidden.rename(folder / f"{number:06d}.json")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the events that Nexmark's queries read.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, default=100_000, help="how many (100000)")
    parser.add_argument("--files", type=int, default=10, help="in how many files, all at once (10)")
    parser.add_argument("--rate", type=int, help="so many a second, a file each second, in place of --files")
    parser.add_argument("--per-s", type=int, default=1_000, help="events in a second of event time (1000)")
    parser.add_argument("--seed", type=int, default=1, help="another seed makes other events (1)")
    given = parser.parse_args()
    try:
        events = Events(given.seed, given.per_s)
        if given.rate:
            paced(events, given.folder, given.events, given.rate)
        else:
            write_files(events, given.folder, given.events, given.files)
    except InputError as error:
        parser.error(error.message)


if __name__ == "__main__":
    main()
