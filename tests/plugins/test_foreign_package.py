"""A package outside the repository, installed into an environment of its own, adds a task type of each kind.

The package is the one that the guide *Your own task types* builds. What its dataflow writes, merged with another one,
switched while it runs, killed once and started again, must be what a plain computation gives.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import processes

GUIDE = processes.ROOT / "docs" / "guides" / "own-task-types.md"
FILES, ROWS = 12, 20

Rows = Counter[tuple[Any, ...]]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the guide's package, over the packages of the one that runs the tests."""
    package, fresh = tmp_path_factory.mktemp("package"), tmp_path_factory.mktemp("environment") / "venv"
    for name, text in re.findall(
        r"^```\w+\n# (weather_\w+\.py|pyproject\.toml)\n(.*?)^```$", GUIDE.read_text(), re.M | re.S
    ):
        (package / name).write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(fresh)], check=True)
    site = next(fresh.glob("lib/*/site-packages"))
    below = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (site / "below.pth").write_text(below, encoding="utf-8")
    python = fresh / "bin" / "python"
    install = [python, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index", package]
    subprocess.run([str(word) for word in install], check=True)
    assert (site / "weather_tasks.py").exists()
    return fresh


class Run:
    """The engine in a process group of its own."""

    def __init__(self, environment: Path, folder: Path) -> None:
        python = str(environment / "bin" / "python")
        variables = {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
        java = Path(sys.prefix) / "java-home"
        if java.exists():
            variables["JAVA_HOME"] = os.environ.get("JAVA_HOME") or java.read_text(encoding="utf-8").strip()
        command = [python, "-m", "tests.plugins.weather_engine", str(folder)]
        self._log = folder / "log"
        self.process = processes.start(command, folder, **variables)

    def wait(self, reached: Callable[[], bool]) -> None:
        until = time.monotonic() + processes.PATIENCE_S
        while not reached():
            assert self.process.poll() is None or reached(), self.log()
            assert time.monotonic() < until, self.log()
            time.sleep(0.05)

    def kill(self) -> None:
        processes.end(self.process)

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-5_000:]


@pytest.fixture
def start(environment: Path, tmp_path: Path) -> Iterator[Callable[[], Run]]:
    runs: list[Run] = []

    def begin() -> Run:
        runs.append(Run(environment, tmp_path))
        return runs[-1]

    yield begin
    for run in runs:
        run.kill()


def readings(folder: Path) -> list[tuple[str, float, float]]:
    """Files of readings, some impossible; each a second newer than the one before, so that their order is known."""
    draw = random.Random(5)
    rows: list[tuple[str, float, float]] = []
    (folder / "stations").mkdir()
    for number in range(FILES):
        made = [
            (
                f"s{draw.randrange(4)}",
                draw.choice([-400.0, *(n / 2 for n in range(-20, 80))]),
                draw.randrange(10, 90) * 1.0,
            )
            for _ in range(ROWS)
        ]
        path = folder / "stations" / f"{number:03d}.csv"
        path.write_text("".join(f"{s},{c},{h}\n" for s, c, h in made), encoding="utf-8")
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        rows += made
    return rows


def expected(rows: list[tuple[str, float, float]]) -> tuple[Rows, Rows]:
    """What the two kinds of sinks must get: with records, and without. Nothing here knows the package."""
    plain: Rows = Counter()
    board: Rows = Counter()
    highs: dict[tuple[str, str], tuple[float, int]] = {}
    for station, celsius, humidity in rows:
        feels = celsius + (humidity - 40) / 10 + 0
        if feels < -273.15:
            continue
        word = "hot" if feels >= 30 else "mild" if feels >= 15 else "cold"
        for scale, degrees in (("C", feels), ("F", feels * 9 / 5 + 32)):
            high, records = highs.get((station, scale), (float("-inf"), 0))
            if degrees > high:
                high, records = degrees, records + 1
            highs[station, scale] = high, records
            row = (station, celsius, humidity, feels, word, scale, degrees)
            plain[row] += 1
            board[*row, high, records] += 1
    return board, plain


def delivered(folder: Path) -> Rows:
    """The rows in files of JSON: lists of objects, or an object a line."""
    rows: Rows = Counter()
    for path in folder.glob("*.json"):
        text = path.read_text(encoding="utf-8")
        objects = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]
        rows.update(tuple(row.values()) for row in objects)
    return rows


@pytest.mark.spark
@pytest.mark.own_spark
def test_a_package_runs_like_what_is_built_in(start: Callable[[], Run], tmp_path: Path) -> None:
    guide = re.search(r"^```yaml\n# weather\.yaml\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert guide is not None
    (tmp_path / "weather.yaml").write_text(guide[1], encoding="utf-8")
    rows = readings(tmp_path)
    board, plain = expected(rows)
    out = tmp_path / "out"
    first = start()
    first.wait(lambda: delivered(out / "board").total() > 0)
    first.kill()
    came = delivered(out / "board")
    assert came <= board
    (tmp_path / "finish").touch()
    second = start()
    second.wait(lambda: second.process.poll() is not None)
    assert second.process.returncode == 0, second.log()
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["failures"] == {}
    assert report["tasks"] == 9
    rows_in, rows_out, errors = report["observed"]["comfort"]
    assert rows_in == rows_out + errors > 0
    assert report["observed"]["both_scales"][:2] == [rows_out, 2 * rows_out]
    highs_in, highs_out, _ = report["observed"]["record_high"]  # rows that waited when it was killed come on top
    assert highs_in == highs_out >= 2 * rows_out
    assert report["switches"] > 0
    assert delivered(out / "plain") == plain
    assert delivered(out / "board") == board
    assert delivered(out / "other") == board
