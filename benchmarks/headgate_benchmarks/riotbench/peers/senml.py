"""The records of a city's sensors: reading them, what may be asked of them, and writing them, by orjson."""

from pathlib import Path

import orjson

__all__ = ["OBSERVED", "RANGES", "UNITS", "attributes", "ids", "in_range", "read", "written"]

UNITS = {
    "longitude": "lon",
    "latitude": "lat",
    "temperature": "far",
    "humidity": "per",
    "light": "per",
    "dust": "per",
    "airquality_raw": "per",
}
RANGES = {
    "temperature": (-12.5, 43.1),
    "humidity": (10.7, 95.2),
    "light": (1345, 26282),
    "dust": (186.61, 5188.21),
    "airquality_raw": (17, 363),
}
OBSERVED = tuple(RANGES)
LONGEST = 10_000
LATEST_MS = 4_102_444_800_000


def read(text):
    """A record as a dict of its time, its sender and its numbers; ``None`` if it is broken."""
    if len(text) > LONGEST:
        return None
    try:
        record = orjson.loads(text)
        row = dict.fromkeys(UNITS)
        row["bt"] = bt = record["bt"]
        row["source"] = None
        for entry in record["e"]:
            name = entry["n"]
            unit = UNITS.get(name)
            if unit is not None:
                if entry["u"] != unit:
                    return None
                row[name] = float(entry["v"])
            elif name == "source":
                row["source"] = entry["sv"]
    except (ValueError, KeyError, TypeError):
        return None
    return row if row["source"] and 0 <= bt < LATEST_MS else None


def in_range(name, value):
    """A value, or nothing if there is none or it is out of range."""
    low, high = RANGES[name]
    return value if value is not None and low <= value <= high else None


def written(record):
    """A record as SenML, without what is missing."""
    entries = [
        {"n": name, "u": "string", "sv": record[name]}
        for name in ("source", "place", "kind")
        if record[name] is not None
    ]
    entries += [{"n": name, "u": unit, "v": record[name]} for name, unit in UNITS.items() if record[name] is not None]
    return orjson.dumps({"e": entries, "bt": record["bt"]}).decode()


def ids(tables):
    """The senders that are known. There are few: a set takes less time and no more room than a Bloom filter."""
    return frozenset((Path(tables) / "city_ids.txt").read_text(encoding="utf-8").split())


def attributes(tables):
    """Where a sender is and of which kind, by its id."""
    lines = (Path(tables) / "city_attributes.txt").read_text(encoding="utf-8").splitlines()
    return {key: tuple(rest.split(",")[:2]) for key, _, rest in (line.partition(":") for line in lines)}
