"""Makes the sensor readings that the dataflows in examples/city read. The same seed gives the same readings.

    .venv/bin/python examples/city_data.py [FOLDER] [--rows 10000] [--seed 1] [--append]

FOLDER is data if none is given. As with real sensors, some readings are sent twice, some are out of range, and some
lack their temperature because the sensor failed. --append adds files to those that are there.
"""

import argparse
import csv
import json
import random
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

DISTRICTS = ("harbour", "hill", "market", "north", "south")
SENSORS, ROWS_PER_FILE = 50, 1_000
START = datetime(2026, 7, 1, 6)


def readings(rows: int, seed: int) -> Iterator[dict]:
    """All sensors in turn, one reading per minute each."""
    draw = random.Random(seed)
    base = {sensor: draw.gauss(27, 4) for sensor in range(SENSORS)}
    last = None
    for number in range(rows):
        if last is not None and draw.random() < 0.01:
            yield last
            continue
        sensor = number % SENSORS
        moment = START + timedelta(minutes=number // SENSORS)
        temperature = base[sensor] + draw.gauss(0, 1) + (200 if draw.random() < 0.005 else 0)
        last = {
            "sensor": f"s{sensor:03}",
            "district": DISTRICTS[sensor % len(DISTRICTS)],
            "t": moment.isoformat(),
            "temperature": None if draw.random() < 0.02 else round(temperature, 2),
            "humidity": round(draw.uniform(20, 95), 1),
            "dust": round(draw.lognormvariate(3, 0.8), 1),
        }
        yield last


def repairs(seed: int) -> Iterator[tuple[str, str, str]]:
    """Which sensor was repaired when, and by whom."""
    draw = random.Random(seed)
    for sensor in range(0, SENSORS, 7):
        moment = START + timedelta(hours=draw.randrange(1, 24))
        yield f"s{sensor:03}", moment.isoformat(), draw.choice(("ana", "ben", "chiara"))


def write_file(city: Path, number: int, rows: Iterable[dict]) -> None:
    """Write some readings to a file; the file appears complete or not at all."""
    part = city / f"{number:05}.part"
    part.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    part.replace(part.with_suffix(".jsonl"))


def write(folder: Path, rows: int, seed: int, first: int = 0) -> None:
    """Write the readings, 1,000 per file, numbered from ``first`` on, and the repairs unless they exist."""
    city, log = folder / "city", folder / "repairs"
    city.mkdir(parents=True, exist_ok=True)
    log.mkdir(parents=True, exist_ok=True)
    generated = readings(rows, seed)
    for number in range(-(-rows // ROWS_PER_FILE)):
        write_file(city, first + number, islice(generated, ROWS_PER_FILE))
    if not (log / "repairs.csv").exists():
        with (log / "repairs.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(repairs(seed))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="Make the readings that the dataflows in examples/city read.")
    arguments.add_argument("folder", nargs="?", type=Path, default=Path("data"), help="where to put them (data)")
    arguments.add_argument("--rows", type=int, default=10_000, help="how many readings (10000)")
    arguments.add_argument("--seed", type=int, default=1, help="another seed makes other readings")
    arguments.add_argument("--append", action="store_true", help="add to the files that are there")
    given = arguments.parse_args()
    first = len(list((given.folder / "city").glob("*.jsonl"))) if given.append else 0
    write(given.folder, given.rows, given.seed, first)
    print(f"{given.rows:,} readings in {given.folder / 'city'}, repairs in {given.folder / 'repairs'}")
