"""What the sinks of a killed engine hold, compared with what plain Python says they should."""

from __future__ import annotations

import math
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from headgate.store.entries import EpochCommitted, SnapshotPublished
from headgate.store.journal import read_journal
from tests.runtime.rig import BEGINNING, Rig
from tests.runtime.small import json_rows

# what the sinks hold


def parquet_rows(folder: Path) -> list[dict[str, Any]]:
    return [row for file in sorted(folder.glob("part-*")) for row in pq.read_table(file).to_pylist()]


def csv_rows(folder: Path) -> list[tuple[str, ...]]:
    files = sorted(folder.glob("part-*"))
    return [tuple(line.split(",")) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def table_rows(file: Path, table: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(file) as connection:
        found = connection.execute(f"select * from {table}").fetchall()
    connection.close()
    return found


# what they should hold


def kalman(values: Iterable[float], sensor_noise: float) -> list[float]:
    """Estimates of a one-dimensional Kalman filter that starts at 0 with variance 30."""
    estimate, error, made = 0.0, 30.0, []
    for value in values:
        error += 0.125
        gain = error / (error + sensor_noise)
        estimate += gain * (value - estimate)
        error *= 1.0 - gain
        made.append(estimate)
    return made


def means(values: list[float], size: int) -> list[float]:
    return [math.fsum(values[max(0, i + 1 - size) : i + 1]) / min(size, i + 1) for i in range(len(values))]


class Story:
    """Which rows each source epoch held and which snapshot it ran, from the first sink and the journal."""

    def __init__(self, rig: Rig) -> None:
        state = rig.folder / "state"
        self.epoch_of: dict[int, int] = {}
        source = ""
        for file in (rig.folder / "out" / "parquet").glob("part-*"):
            found = re.match(r"part-(\d+)-(source-[0-9a-f]{16})", file.name)
            assert found is not None, file.name
            source = found[2]
            for row in pq.read_table(file, columns=["id"]).to_pylist():
                self.epoch_of[row["id"]] = int(found[1])
        commits = [entry for _, entry in read_journal(state / "journal", EpochCommitted)]
        self._ran = {entry.epoch: entry.snapshots[0] for entry in commits if entry.origin.startswith(source)}
        self.snapshots: dict[int, Mapping[str, Any]] = {
            entry.number: entry.snapshot for _, entry in read_journal(state / "journal", SnapshotPublished)
        }

    def snapshot(self, row: int) -> int:
        """The snapshot under which a row was read."""
        return self._ran[self.epoch_of[row]]

    def runs(self, snapshot: int, dataflow: str) -> bool:
        stored = self.snapshots.get(snapshot, {"dataflows": {}, "paused": []})
        return dataflow in set(stored["dataflows"]) - set(stored["paused"])

    def life(self, snapshot: int, dataflow: str) -> int:
        """The snapshot since which a dataflow has run without a break."""
        while self.runs(snapshot - 1, dataflow):
            snapshot -= 1
        return snapshot

    def smooths_by_mean(self, snapshot: int) -> bool:
        return any(way.startswith("moving_average") for way in self.snapshots[snapshot]["active"].values())


def same(found: Iterable[Any], wanted: Iterable[Any], what: str) -> None:
    """Compare multisets, and tell what is lost and what is too much."""
    has, should = Counter(iter(found)), Counter(iter(wanted))
    lost, extra = should - has, has - should
    told = f"{what}: {lost.total()} lost {list(lost)[:5]}, {extra.total()} too many {list(extra)[:5]}"
    assert not lost, told
    assert not extra, told


def compare(rig: Rig) -> dict[str, int]:
    """Compare every sink with what it should hold; returns how much there was."""
    out, database = rig.folder / "out", rig.folder / "out.db"
    clean = {row["id"]: row for row in rig.rows if row["v"] > 0}
    plain = [row for row in parquet_rows(out / "parquet") if row["id"] >= 0]
    same((row["id"] for row in plain), clean, "parquet")
    pairs = [(number, row["v"]) for number, row in clean.items()]
    for name in ("json", "late"):
        same(((row["id"], row["v"]) for row in json_rows(out / name) if row["id"] >= 0), pairs, name)
    same(((int(r[0]), float(r[1])) for r in csv_rows(out / "csv") if int(r[0]) >= 0), pairs, "csv")
    same((row for row in table_rows(database, "plain") if row[0] >= 0), pairs, "table")
    words = [(row["id"], word) for row in clean.values() for word in row["text"].split()]
    same(((row["id"], row["word"]) for row in json_rows(out / "words")), words, "words")
    story = Story(rig)
    order = _keyed(rig, clean, story)
    _window(rig, clean)
    guests = _guests(rig, clean, story, order)
    return {
        "rows": len(clean),
        "epochs": len(set(story.epoch_of.values())),
        "snapshots": max(story.snapshots),
        "guests": guests,
        "kills": rig.kills,
        "kills aimed": rig.hits,
        "kills after work": rig.after_work,
        "epochs interrupted": rig.interrupted,
        "of them committed": rig.committed,
    }


def _keyed(rig: Rig, clean: dict[int, dict[str, Any]], story: Story) -> dict[str, list[int]]:
    """Check what remembers, in the order in which the host says it saw the rows of a key; returns that order."""
    out = rig.folder / "out"
    counts = [row for row in json_rows(out / "counts") if row["id"] >= 0]
    same((row["id"] for row in counts), clean, "counts")
    last = max((row["n"] for row in json_rows(out / "counts") if row["id"] < 0), default=0)
    order: dict[str, list[int]] = {}
    for key in {row["k"] for row in clean.values()}:
        seen = sorted((row["n"], row["id"]) for row in counts if row["k"] == key)
        same((n for n, _ in seen), range(1, len(seen) + 1), f"count of {key}")
        order[key] = [number for _, number in seen]
        epochs = [story.epoch_of[number] for number in order[key]]
        assert epochs == sorted(epochs), f"{key}: rows of epochs out of order"
    assert last == len(order["k0"]) + 1
    wanted_s: dict[int, float] = {}
    wanted_m: dict[int, float] = {}
    wanted_a: dict[int, float] = {}
    for seen_ids in order.values():
        values = [clean[number]["v"] for number in seen_ids]
        wanted_s.update(zip(seen_ids, kalman(values, 0.32), strict=True))
        wanted_m.update(zip(seen_ids, means(values, 5), strict=True))
        by_mean = [n for n in seen_ids if story.smooths_by_mean(story.snapshot(n))]
        by_kalman = [n for n in seen_ids if not story.smooths_by_mean(story.snapshot(n))]
        wanted_a.update(zip(by_mean, means([clean[n]["v"] for n in by_mean], 3), strict=True))
        wanted_a.update(zip(by_kalman, kalman([clean[n]["v"] for n in by_kalman], 1.0), strict=True))
    close("kalman", ((row["id"], row["s"]) for row in parquet_rows(out / "kalmans")), wanted_s)
    close("moving average", table_rows(rig.folder / "out.db", "means"), wanted_m)
    close("alternates", ((row["id"], row["s"]) for row in json_rows(out / "smoothed")), wanted_a)
    _chain(rig, order)
    return order


def close(what: str, found: Iterable[tuple[Any, ...]], wanted: dict[int, float]) -> None:
    rows = [(number, value) for number, value in found if number >= 0]
    same((number for number, _ in rows), wanted, what)
    wrong = [(n, v, wanted[n]) for n, v in rows if not math.isclose(v, wanted[n], rel_tol=1e-9, abs_tol=1e-9)]
    assert not wrong, f"{what}: {len(wrong)} wrong values, {wrong[:3]}"


def _chain(rig: Rig, order: dict[str, list[int]]) -> None:
    found = json_rows(rig.folder / "out" / "chain")
    even = [number for seen in order.values() for place, number in enumerate(seen) if place % 2]
    same((row["id"] for row in found if row["id"] >= 0), even, "chain")
    by_residue: dict[int, list[int]] = defaultdict(list)
    for row in found:
        by_residue[row["z"]].append(row["c"])
    for residue, seen_counts in by_residue.items():
        same(seen_counts, range(1, len(seen_counts) + 1), f"chained count of {residue}")
    firsts = [(row["z"], row["id"]) for row in found if row["c"] == 1]
    same(((row["z"], row["id"]) for row in json_rows(rig.folder / "out" / "once")), firsts, "dedup")


def _window(rig: Rig, clean: dict[int, dict[str, Any]]) -> None:
    wanted: dict[tuple[int, str], list[float]] = defaultdict(list)
    for row in clean.values():
        seconds = int((datetime.fromisoformat(row["at"]) - BEGINNING).total_seconds())
        wanted[seconds // 10, row["k"]].append(row["v"])
    found = {}
    rows = json_rows(rig.folder / "out" / "windows")
    for row in rows:
        start = datetime.fromisoformat(row["window_start"])
        found[int((start - BEGINNING).total_seconds()) // 10, row["k"]] = row
    assert len(found) == len(rows), "window: told of twice"
    same(found, wanted, "windows")
    same(((at, row["n"]) for at, row in found.items()), ((at, len(v)) for at, v in wanted.items()), "window counts")
    assert all(math.isclose(found[at]["s"], math.fsum(v), rel_tol=1e-9) for at, v in wanted.items())


def _texts(found: list[tuple[str, ...]], rows: list[int], name: str) -> None:
    """Check a host that only one dataflow uses; a life of it counts from 1."""
    same((int(number) for number, *_ in found if int(number) >= 0), rows, f"{name}, its own host")
    by_text: dict[str, Counter[int]] = defaultdict(Counter)
    for _, text, count in found:
        by_text[text][int(count)] += 1
    for text, counts in by_text.items():
        assert all(counts[n] >= counts[n + 1] > 0 for n in range(1, max(counts))), f"{name}: counts of {text}"


def _guests(rig: Rig, clean: dict[int, dict[str, Any]], story: Story, order: dict[str, list[int]]) -> int:
    """Check dataflows that came and went: each has the epochs in which the plan log says that it ran, and no other."""
    names = {name for stored in story.snapshots.values() for name in stored["dataflows"]}
    guests = sorted(name for name in names if re.fullmatch(r"[gh]\d+", name))
    side = {row["id"] for row in rig.side if row["v"] > 0}
    for name in guests:
        rows = [row["id"] for row in json_rows(rig.folder / "out" / name / "rows") if row["id"] >= 0]
        counts = {row["id"]: row[name] for row in json_rows(rig.folder / "out" / name / "counts")}
        if name.startswith("h"):
            ran = {number: story.snapshot(number) for number in clean}
            wanted = {number for number, snapshot in ran.items() if story.runs(snapshot, name)}
            same(rows, wanted, name)
            for seen in order.values():
                ordinal: Counter[int] = Counter()
                for number in seen:
                    if number in wanted:
                        life = story.life(ran[number], name)
                        ordinal[life] += 1
                        assert counts.get(number) == ordinal[life], f"{name}: row {number} of life {life}"
        else:
            assert side >= set(rows), name
            if story.runs(max(story.snapshots), name):
                same(rows, side, name)
        same((number for number in counts if number >= 0), set(rows), f"{name}, keyed")
        _texts(csv_rows(rig.folder / "out" / name / "texts"), rows, name)
        assert len(json_rows(rig.folder / "out" / name / "counts")) == len(counts), f"{name}: counted twice"
    return len(guests)
