"""Runs an engine in a process of its own, feeds it, kills it, and compares what its sinks hold with plain Python."""

from __future__ import annotations

import json
import math
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = ("sluice", "weir", "lock", "gate", "race")
PATIENCE_S = 240.0


class Rig:
    """A folder with an engine's state, what it reads and what it writes."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.rnd = random.Random(seed)
        self.rows: list[dict[str, Any]] = []
        self.side: list[dict[str, Any]] = []
        self.files = 0
        self.starts = 0
        self.kills = 0
        self.hits = 0
        """Kills at the very moment that was aimed at."""
        self.after_work = 0
        """Kills of engines that had done at least one epoch since their start."""
        self.interrupted = 0
        """Epochs that Spark had begun and not finished when the engine was killed."""
        self.committed = 0
        """Those of them whose outputs were committed: they must be delivered, and not be made again."""
        self._epochs_before = 0
        self._processes: list[subprocess.Popen[bytes]] = []
        for name in ("in", "side", "out"):
            (folder / name).mkdir()
        for number in range(8):
            made = self._made(10, 1_000_000 + number * 10)
            self.side += made
            self._put(folder / "side" / f"{number}.json", made)
        # A file where a sink wants its folder: the sink refuses until somebody takes it away.
        (folder / "out" / "late").touch()

    def _made(self, count: int, first: int) -> list[dict[str, Any]]:
        made = []
        for number in range(first, first + count):
            at = BEGINNING + timedelta(seconds=number % 1_000_000 * 0.1)
            text = " ".join(self.rnd.sample(WORDS, 2))
            value = round(self.rnd.uniform(-5, 50), 3)
            row = {"id": number, "k": f"k{self.rnd.randrange(6)}", "v": value, "at": at.isoformat(), "text": text}
            made.append(row)
        return made

    def _put(self, path: Path, rows: Iterable[dict[str, Any]]) -> None:
        waiting = self.folder / "waiting.json"
        waiting.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        waiting.rename(path)

    def feed(self) -> None:
        """Drop a small file of new rows."""
        made = self._made(20, len(self.rows))
        self.rows += made
        self._put(self.folder / "in" / f"{self.files:06d}.json", made)
        self.files += 1

    # the process

    def start(self, aim: str | None = None) -> subprocess.Popen[bytes]:
        """Start the engine; it leads a process group and a session of its own."""
        environment = {key: value for key, value in os.environ.items() if key != "HEADGATE_TEST_AIM"}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        if aim is not None:
            environment["HEADGATE_TEST_AIM"] = aim
        self.starts += 1
        self._epochs_before = self.epochs()
        command = [sys.executable, "-m", "tests.runtime.killed_engine", str(self.folder), str(self.starts)]
        with (self.folder / "log").open("ab") as log:
            log.write(f"--- start {self.starts}, aim {aim}\n".encode())
            log.flush()
            process = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        self._processes.append(process)
        return process

    def wait(self, reached: Callable[[], bool], feeding_s: float | None = None) -> bool:
        """Wait until something holds, feeding meanwhile; says whether it came before the engine ended."""
        process = self._running
        until, next_feed = time.monotonic() + PATIENCE_S, time.monotonic()
        while not reached():
            if process.poll() is not None:
                return reached()
            assert time.monotonic() < until, f"waited {PATIENCE_S} s in vain\n{self.log()}"
            if feeding_s is not None and time.monotonic() >= next_feed:
                self.feed()
                next_feed = time.monotonic() + feeding_s
            time.sleep(0.01)
        return True

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        return self._processes[-1]

    def is_ready(self) -> bool:
        file = self.folder / "ready"
        return file.exists() and file.read_text(encoding="utf-8") == str(self._running.pid)

    def kill(self, only_driver: bool = False) -> None:
        """Kill the engine with SIGKILL: all its processes, or only the one that the user started."""
        process = self._running
        if only_driver:
            process.kill()
        else:
            self.end()
        assert process.wait(30) == -signal.SIGKILL, self.log()
        self._note_kill()

    def end(self) -> None:
        """Leave nothing behind, whatever happened."""
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)
        self._processes.clear()

    def log(self) -> str:
        lines = (self.folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(line for line in lines if "TransformWithState" not in line and line.strip())[-6000:]

    # one life of the engine

    def killed_at_random(self, only_driver: bool = False) -> None:
        """Start, feed, and kill at a random moment, most often after it has done some epochs.

        Time alone would not do: on a busy machine the kill would come before the first epoch.
        """
        self.start()
        if self.rnd.random() < 0.9:
            enough = self.epochs() + self.rnd.randrange(1, 8)
            assert self.wait(lambda: self.is_ready() and self.epochs() >= enough, 0.3), self.log()
            moment = time.monotonic() + self.rnd.uniform(0.0, 2.0)
        else:
            moment = time.monotonic() + self.rnd.uniform(2.0, 15.0)
        assert self.wait(lambda: time.monotonic() >= moment, 0.3), self.log()
        self.kill(only_driver)

    def killed_at(self, aim: str, within_s: float = 60.0) -> bool:
        """Start and feed until it kills itself at a moment; says whether that moment came."""
        process = self.start(aim)
        if self.wait(self.is_ready, 1.0):
            moment = time.monotonic() + within_s
            self.wait(lambda: time.monotonic() >= moment, 0.3)
        if process.poll() is None:
            self.kill()
            return False
        self.end()
        assert process.returncode == -signal.SIGKILL, self.log()
        self._note_kill()
        self.hits += 1
        return True

    def epochs(self) -> int:
        """How many epochs Spark has committed, in all fragments there are."""
        return sum(_last(folder / "checkpoint" / "commits") + 1 for folder in self._fragments())

    def _fragments(self) -> list[Path]:
        return list((self.folder / "state").glob("fragments/*"))

    def _note_kill(self) -> None:
        """Count a kill, and what it interrupted."""
        self.kills += 1
        self.after_work += self.epochs() > self._epochs_before
        for folder in self._fragments():
            begun = _last(folder / "checkpoint" / "offsets")
            if begun > _last(folder / "checkpoint" / "commits"):
                self.interrupted += 1
                commit = folder / "commit.json"
                found = json.loads(commit.read_text(encoding="utf-8")) if commit.exists() else {"epoch": -1}
                self.committed += found["epoch"] == begun

    def finish(self) -> None:
        """Let it read everything, go idle and stop."""
        self.feed()
        far = {"id": -1, "k": "k0", "v": -1.0, "at": (BEGINNING + timedelta(days=9)).isoformat(), "text": ""}
        # Rows at v <= 0 do not reach the window: this one must, and is taken out of the comparison.
        self._put(self.folder / "last.json", [{**far, "v": 1.0}])
        (self.folder / "finish").touch()
        process = self.start()
        self.wait(lambda: process.poll() is not None)
        self.end()
        assert process.returncode == 0, self.log()


def _last(folder: Path) -> int:
    """The last number of a log of Spark's."""
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return max((int(name) for name in names if name.isdigit()), default=-1)


@contextmanager
def rig_in(folder: Path, seed: int) -> Iterator[Rig]:
    """A rig whose processes end with the block."""
    rig = Rig(folder, seed)
    try:
        yield rig
    finally:
        rig.end()


# what the sinks hold


def json_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a json sink."""
    files = sorted(folder.glob("part-*")) if folder.is_dir() else []
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


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
    """Which rows each source epoch held and which snapshot it ran, from the first sink and the plan log."""

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
        log = json.loads((state / "fragments" / source / "plan_log.json").read_text(encoding="utf-8"))
        self._log = sorted(map(tuple, log))
        self.snapshots: dict[int, dict[str, Any]] = {}
        for file in (state / "snapshots").glob("[0-9]*.json"):
            self.snapshots[int(file.stem)] = json.loads(file.read_text(encoding="utf-8"))

    def snapshot(self, row: int) -> int:
        """The snapshot under which a row was read."""
        epoch = self.epoch_of[row]
        return int(max(entry for entry in self._log if entry[0] <= epoch)[1])

    def runs(self, snapshot: int, dataflow: str) -> bool:
        found = self.snapshots.get(snapshot, {"dataflows": [], "paused": []})
        return dataflow in {flow["name"] for flow in found["dataflows"]} - set(found["paused"])

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
    names = {flow["name"] for stored in story.snapshots.values() for flow in stored["dataflows"]}
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
