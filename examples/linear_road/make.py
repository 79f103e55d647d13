"""Make traffic for Linear Road, and the tables that its queries ask.

    .venv/bin/python examples/linear_road/make.py --expressways 2 --minutes 15
    .venv/bin/python examples/linear_road/make.py --from sample.csv.gz

Writes into out/linear_road: traffic.parquet, what cars report and ask, in order; tolls.db, what they paid in the days
before; usual.npy, how fast each segment usually is; and accidents.json, the accidents that are among the traffic. The
same seed makes the same files.
"""

import argparse
import json
import sqlite3
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa  # noqa: TID251
import pyarrow.parquet as pq  # noqa: TID251

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # where it is run as a script

from examples.linear_road.traffic import COLUMNS, ROAD, Road, Traffic, make, usual_speeds

__all__ = ["history_of", "table_of", "write"]

DAYS = 8
"""Of the 69 days before today, on how many a car was on the road."""


def history_of(traffic: Traffic, seed: int) -> tuple[np.ndarray, ...]:
    """What cars paid: car, day, expressway and toll. A third of the days that queries ask for are among them."""
    rng = np.random.default_rng([seed, 3])
    rows = traffic.columns
    asked = rows["type"] == 3
    seen = np.unique(np.column_stack((rows["vid"], rows["xway"]))[rows["type"] == 0], axis=0)
    vid, xway = (np.repeat(seen[:, at], DAYS) for at in (0, 1))
    day = rng.integers(1, 70, len(vid))
    known = asked & (rng.uniform(size=len(asked)) < 1 / 3)
    parts = [
        np.concatenate(pair)
        for pair in ((vid, rows["vid"][known]), (day, rows["day"][known]), (xway, rows["xway"][known]))
    ]
    unique = np.unique(np.column_stack(parts), axis=0)
    return (*unique.T, rng.integers(10, 100, len(unique)))


def table_of(traffic: Traffic) -> pa.Table:
    return pa.table({name: pa.array(traffic.columns[name], pa.int32()) for name in COLUMNS})


def write(folder: Path, traffic: Traffic, seed: int = 0, road: Road = ROAD) -> None:
    """Write all that a run needs."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table_of(traffic), folder / "traffic.parquet")
    write_tables(folder, traffic, seed, road)


def write_tables(folder: Path, traffic: Traffic, seed: int = 0, road: Road = ROAD) -> None:
    """Write what is known of the days before."""
    np.save(folder / "usual.npy", usual_speeds(int(traffic.columns["xway"].max()) + 1, seed, road))
    (folder / "accidents.json").write_text(json.dumps([asdict(one) for one in traffic.accidents], indent=1) + "\n")
    (folder / "tolls.db").unlink(missing_ok=True)
    with sqlite3.connect(folder / "tolls.db") as database:
        database.execute("create table tolls (vid int, day int, xway int, toll int, primary key (vid, day, xway))")
        rows = zip(*(values.tolist() for values in history_of(traffic, seed)), strict=True)
        database.executemany("insert into tolls values (?, ?, ?, ?)", rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--expressways", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--cars", type=int, default=6_000, help="on each expressway when it begins")
    parser.add_argument("--entering", type=float, default=15.0, help="cars a second that enter each expressway")
    parser.add_argument("--accidents", type=int, default=2, help="in each direction")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from", dest="given", type=Path, help="a file of Linear Road's own rows")
    parser.add_argument("--out", type=Path, default=Path("out/linear_road"))
    asked = parser.parse_args()
    road = Road(cars=asked.cars, entering_per_s=asked.entering, accidents=asked.accidents)
    if asked.given is None:
        traffic = make(asked.expressways, round(asked.minutes * 60), asked.seed, road)
    else:
        loaded = np.loadtxt(asked.given, delimiter=",", dtype=np.int32)
        traffic = Traffic(dict(zip(COLUMNS, loaded[np.argsort(loaded[:, 1], kind="stable")].T, strict=True)))
    write(asked.out, traffic, asked.seed, road)
    reports = int(np.count_nonzero(traffic.columns["type"] == 0))
    last = int(traffic.columns["time"][-1])
    queries, accidents = len(traffic) - reports, len(traffic.accidents)
    print(f"{asked.out}: {reports} reports, {queries} queries, {last} s, {accidents} accidents")


if __name__ == "__main__":
    main()
