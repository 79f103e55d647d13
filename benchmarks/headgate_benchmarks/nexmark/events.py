"""The auction stream of Nexmark: people who join, auctions that open, bids on them, as JSON lines.

Of 50 events in a row one is a person, three are auctions and 46 bids. Half of all bids go to one hot auction, three of
four come from one hot bidder, and three of four auctions have one hot seller; who is hot changes as the stream goes on.
The others are drawn from the last 100 auctions and the last 1,000 people, and from a few that are yet to come. Facts
and proportions are those of the published generator (Tucker et al., NEXMark, 2008; Apache Beam); the code is our own.

An event follows from the seed and its number alone: numbers are drawn in blocks, from a generator that counts (Philox).
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from headgate.errors import InputError

__all__ = ["COLUMNS", "Events", "end_marks", "lines", "write_files"]

COLUMNS = (
    "event string, at timestamp, id bigint, name string, email string, card string, city string, state string, "
    "item string, initial bigint, reserve bigint, expires timestamp, seller bigint, category bigint, "
    "auction bigint, bidder bigint, price bigint, channel string, extra string"
)
"""The columns of all three kinds of events; those of the other two kinds are null."""

BEGIN_MS = int(datetime(2026, 7, 1, tzinfo=UTC).timestamp() * 1_000)
EPOCH, PERSONS, AUCTIONS = 50, 1, 3
"""Of so many events the first is a person, and the next three are auctions."""

FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1_000, 10, 5
IN_FLIGHT, ACTIVE, AHEAD = 100, 1_000, 10
"""How many auctions are open at a time, how many people are active, and how many of either may be yet to come."""

HOT_AUCTIONS, HOT_BIDDERS, HOT_SELLERS, HOT_EVERY = 2, 4, 4, 100
"""All but one in so many go to, or come from, who is hot, which is every hundredth of its kind."""

BLOCK = 5_000
CITIES = (
    ("Phoenix", "AZ"),
    ("Los Angeles", "CA"),
    ("San Francisco", "CA"),
    ("Boise", "ID"),
    ("Portland", "OR"),
    ("Bend", "OR"),
    ("Redmond", "WA"),
    ("Seattle", "WA"),
    ("Kent", "WA"),
    ("Cheyenne", "WY"),
)
FIRST_NAMES = ("Ana", "Ben", "Chidi", "Dora", "Emil", "Farah", "Goran", "Hana", "Ivo", "Jun", "Kofi")
LAST_NAMES = ("Abbas", "Berg", "Castro", "Diallo", "Evans", "Fischer", "Gupta", "Horvat", "Ito")
CHANNELS = ("Apple", "Baidu", "Facebook", "Google", "channel-1", "channel-2", "channel-3")
ITEMS = ("chair", "clock", "coat", "kettle", "lamp", "radio", "rug", "table", "vase")
FILLER = "qgxkvbwzjmyhpdfclrnutsaoie" * 24
END_AFTER_MS = 3_600_000
"""How long after the last event the marks of the end are: later than any auction ends."""

_Draw = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Events:
    """Which events: the seed, and how many of them there are in a second of event time."""

    seed: int = 1
    per_s: int = 1_000
    padded: bool = True
    """Whether texts fill events to the published sizes: 100 bytes for a bid, 200 for a person, 500 for an auction."""

    def __post_init__(self) -> None:
        if not 1 <= self.per_s <= 1_000_000:
            raise InputError("BAD_EVENTS", f"{self.per_s} events per second of event time; expected 1 to 1,000,000")
        if not 0 <= self.seed < 2**31:
            raise InputError("BAD_EVENTS", f"seed {self.seed}; expected 0 to 2147483647")

    @property
    def longest_ms(self) -> int:
        """The longest that an auction is open: twice the time in which as many are opened as are open at a time."""
        return 2 * (IN_FLIGHT * EPOCH // AUCTIONS) * 1_000 // self.per_s + 1


def lines(events: Events, first: int, count: int) -> Iterator[str]:
    """Some events of the stream, each a line of JSON without its end.

    >>> [json.loads(line)["event"] for line in lines(Events(), 0, 6)]
    ['person', 'auction', 'auction', 'auction', 'bid', 'bid']
    >>> list(lines(Events(), 7, 3)) == list(lines(Events(), 0, 10))[7:]
    True
    """
    for block in range(first // BLOCK, -(-(first + count) // BLOCK)):
        begin = block * BLOCK
        draw = np.random.Generator(np.random.Philox(key=events.seed, counter=[0, 0, block, 0])).random((8, BLOCK))
        low, high = max(first - begin, 0), min(first + count - begin, BLOCK)
        for place in range(low, high):
            yield _line(events, begin + place, draw[:, place])


def _line(events: Events, number: int, luck: _Draw) -> str:
    offset, draw = number % EPOCH, luck.tolist()
    at_ms = BEGIN_MS + number * 1_000 // events.per_s
    if offset < PERSONS:
        return _person(events, number, at_ms, draw)
    if offset < PERSONS + AUCTIONS:
        return _auction(events, number, at_ms, draw)
    return _bid(events, number, at_ms, draw)


def _last_person(number: int) -> int:
    """How many people came before the last one, when an event of this number comes."""
    return number // EPOCH


def _last_auction(number: int) -> int:
    epoch, offset = divmod(number, EPOCH)
    return epoch * AUCTIONS + min(offset - PERSONS, AUCTIONS - 1)


def _person_near(number: int, luck: float) -> int:
    """Somebody who is active, or soon will be."""
    last = _last_person(number)
    active = min(last + 1, ACTIVE)
    return last + 1 - active + int(luck * (active + AHEAD))


def _auction_near(number: int, luck: float) -> int:
    """An auction that is open, or soon will be."""
    last = max(_last_auction(number), 0)
    first = max(last - IN_FLIGHT, 0)
    return first + int(luck * (last - first + 1 + AHEAD))


def _hot(last: int) -> int:
    return max(last, 0) // HOT_EVERY * HOT_EVERY


def _is_hot(luck: float, ratio: int) -> bool:
    return luck * ratio >= 1.0


def _price(luck: float) -> int:
    """In cents, from one to a million dollars, each order of magnitude as likely as any other."""
    return round(math.pow(10.0, luck * 6) * 100)


def _person(events: Events, number: int, at_ms: int, luck: list[float]) -> str:
    first, last = FIRST_NAMES[int(luck[0] * len(FIRST_NAMES))], LAST_NAMES[int(luck[1] * len(LAST_NAMES))]
    city, state = CITIES[int(luck[2] * len(CITIES))]
    card = " ".join(f"{int(part * 10_000):04d}" for part in luck[3:7])
    email = f"{first}@{last}.example".lower()
    fields = (
        f'"id":{FIRST_ID + _last_person(number)},"name":"{first} {last}","email":"{email}",'
        f'"card":"{card}","city":"{city}","state":"{state}"'
    )
    return _event("person", at_ms, fields, events, 200, luck[7])


def _auction(events: Events, number: int, at_ms: int, luck: list[float]) -> str:
    seller = _hot(_last_person(number)) if _is_hot(luck[0], HOT_SELLERS) else _person_near(number, luck[1])
    initial = _price(luck[2])
    expires_ms = at_ms + 1 + int(luck[3] * (events.longest_ms - 1))
    fields = (
        f'"id":{FIRST_ID + _last_auction(number)},"item":"{ITEMS[int(luck[4] * len(ITEMS))]}","initial":{initial},'
        f'"reserve":{initial + _price(luck[5])},"expires":"{_time(expires_ms)}","seller":{FIRST_ID + seller},'
        f'"category":{FIRST_CATEGORY + int(luck[6] * CATEGORIES)}'
    )
    return _event("auction", at_ms, fields, events, 500, luck[7])


def _bid(events: Events, number: int, at_ms: int, luck: list[float]) -> str:
    auction = _hot(_last_auction(number)) if _is_hot(luck[0], HOT_AUCTIONS) else _auction_near(number, luck[1])
    bidder = _hot(_last_person(number)) + 1 if _is_hot(luck[2], HOT_BIDDERS) else _person_near(number, luck[3])
    fields = (
        f'"auction":{FIRST_ID + auction},"bidder":{FIRST_ID + bidder},"price":{_price(luck[4])},'
        f'"channel":"{CHANNELS[int(luck[5] * len(CHANNELS))]}"'
    )
    return _event("bid", at_ms, fields, events, 100, luck[7])


def _event(kind: str, at_ms: int, fields: str, events: Events, size: int, luck: float) -> str:
    """A whole event, filled to about the size that is usual for its kind."""
    missing = max(size - len(fields), 0) if events.padded else 0
    extra = FILLER[: int(missing * (0.8 + 0.4 * luck))]
    return f'{{"event":"{kind}","at":"{_time(at_ms)}",{fields},"extra":"{extra}"}}'


def _time(moment_ms: int) -> str:
    return f"{datetime.fromtimestamp(moment_ms / 1_000, UTC):%Y-%m-%dT%H:%M:%S}.{moment_ms % 1_000:03d}Z"


def end_marks(events: Events, count: int) -> list[str]:
    """An event of each kind, an hour after the last: with them, all windows of event time before them have passed.

    Their ids are -1; the bid is on the auction, so that what joins the two gets to know the time as well.
    """
    at_ms = BEGIN_MS + count * 1_000 // events.per_s + END_AFTER_MS
    kinds: list[dict[str, Any]] = [
        {"event": "person", "id": -1},
        {"event": "auction", "id": -1, "seller": -1, "category": -1, "expires": _time(at_ms + 60_000)},
        {"event": "bid", "auction": -1, "bidder": -1, "price": 0},
    ]
    return [json.dumps({**kind, "at": _time(at_ms)}) for kind in kinds]


def write_files(events: Events, folder: Path, count: int, files: int = 1, ended: bool = True) -> None:
    """Write the first events as files of equal size, and the marks of the end as a last one; each appears whole."""
    if count < 1 or not 1 <= files <= count:
        raise InputError("BAD_EVENTS", f"{count} events in {files} files; expected at least one event in each file")
    folder.mkdir(parents=True, exist_ok=True)
    began_s = int(time.time()) - files
    bounds = [count * number // files for number in range(files + 1)]
    for number, (first, last) in enumerate(pairwise(bounds)):
        _put(folder, number, began_s, lines(events, first, last - first))
    if ended:
        _put(folder, files, began_s, iter(end_marks(events, count)))


def _put(folder: Path, number: int, began_s: int, texts: Iterator[str]) -> None:
    hidden = folder / f".{number:06d}.json"
    with hidden.open("w", encoding="utf-8") as file:
        file.writelines(f"{text}\n" for text in texts)
    # Files are read in the order of these times, which could be the same for two that are written quickly.
    os.utime(hidden, (began_s + number, began_s + number))
    hidden.rename(folder / f"{number:06d}.json")
