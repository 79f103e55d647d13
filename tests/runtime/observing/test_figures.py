"""Figures of a running engine equal what a judge makes of the generator's and the sinks' files alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.documents import parse
from headgate.model.cluster.observation import Figures, Observation
from headgate.model.names import TaskId
from headgate.runtime.engine.engine import Engine
from tests.judge.profit import Judged, judge_profit
from tests.runtime import functions
from tests.runtime.small import put, wait_for

pytestmark = pytest.mark.spark
SINKS = ("every", "even")
LEVEL = {"break_even_at_best_per_h": 0.5, "break_even_at_worst_per_h": 0.3, "latency_max_s": 60.0}
WAYS = [
    {"name": name, "type": "derive", "config": {"columns": {"way": f"'{name}'"}}, "value": value}
    for name, value in (("best", 1.0), ("quick", 0.6))
]


def document(name: str, source: Path, where: str, level: dict[str, Any]) -> str:
    """A source, a task with alternates that labels rows, and a sink of its own."""
    read = {"id": "read", "type": "read_files", "config": {"path": str(source), "columns": "id long, pad string"}}
    tasks = [
        read,
        {"id": "score", "alternates": WAYS, "inputs": ["read"]},
        {"id": "keep", "type": "filter", "config": {"where": where}, "inputs": ["score"]},
        {"id": "to", "type": "derive", "config": {"columns": {"sink": f"'{name}'"}}, "inputs": ["keep"]},
        {
            "id": "out",
            "type": "write_call",
            "config": {"function": "tests.runtime.functions.noted"},
            "inputs": ["to"],
        },
    ]
    return json.dumps({"name": name, "service_level": level, "tasks": tasks})


class World:
    """What the outside saw: rows that were generated, rows at sinks, and who used what from when on."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.generated = folder, 0
        (folder / "sinks").mkdir(parents=True)
        functions.NOTED = folder / "sinks"
        (folder / "generated.jsonl").touch()
        for sink in SINKS:
            (folder / "sinks" / f"{sink}.jsonl").touch()
        promises = {
            name: {
                "sinks": {name: {"of": of, "is": 0}},
                "tasks": 5,
                "values": {"score": {"best": 1.0, "quick": 0.6}},
                "throughput_min": 0.8,
                "throughput_tolerance": 0.05,
                **LEVEL,
            }
            for name, of in (("every", 1), ("even", 2))
        }
        (folder / "promises.json").write_text(json.dumps(promises))
        # Read and score are shared; each has a filter, a label and a sink of its own.
        both = [["every", "even"]] * 2 + [[name] for name in SINKS for _ in range(3)]
        (folder / "usage.jsonl").write_text(json.dumps({"at": time.time() - 1e6, "tasks": both}) + "\n")
        (folder / "billing.json").write_text(json.dumps({"period_s": 1, "least_s": 0}))
        kind = {"cores": 1, "price_per_h": "0.40"}
        local = {"event": "acquired", "machine": "local", "at": time.time() - 1e5, "vm_class": kind}
        (folder / "acquisitions.jsonl").write_text(json.dumps(local) + "\n")

    def generate(self, files: int, rows: int) -> None:
        """Rows of equal length, so that bytes that wait are rows that wait."""
        for _ in range(files):
            ids = range(self.generated, self.generated + rows)
            put(self.folder / "in", str(self.generated), ({"id": n, "pad": f"{n:08d}"} for n in ids))
            with (self.folder / "generated.jsonl").open("a") as log:
                log.writelines(json.dumps({"id": n, "at": time.time()}) + "\n" for n in ids)
            self.generated += rows

    def judged(self, seen: Observation) -> Judged:
        return judge_profit(self.folder, seen.ended - seen.seconds, seen.ended, seen.seconds)


def observed_after_an_epoch(engine: Engine, observe: Callable[[], Observation]) -> Observation:
    """Just after an epoch, long before the next one ends: then rows at sinks and rows counted are the same."""
    (fragment,) = engine.fragments.values()
    before = fragment.last.epoch
    wait_for(lambda: fragment.last.epoch > before, "another epoch")
    return observe()


def agree(seen: Observation, judged: Judged, latency: bool = True) -> None:
    for flow in seen.dataflows:
        own, by_hand = flow.figures, judged.dataflows[flow.name]
        assert isinstance(own, Figures)
        assert own.omega == pytest.approx(by_hand.omega, rel=0.01)
        assert own.gamma == pytest.approx(by_hand.gamma, rel=0.01)
        assert own.cost_per_h == pytest.approx(by_hand.cost_per_h, rel=0.01)
        assert own.theta == pytest.approx(by_hand.theta, abs=0.01)
        assert own.within is (by_hand.violations == 0.0)
        if latency:
            assert own.sojourn is not None
            assert own.sojourn.mean_s == pytest.approx(by_hand.latency_s, rel=0.05, abs=0.05)
    assert seen.together is not None
    assert seen.together.theta == pytest.approx(judged.theta, abs=0.01)


def test_figures_are_those_of_a_judge_that_reads_files_only(spark: SparkSession, tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    flows = [
        parse(document(name, tmp_path / "world" / "in", where, LEVEL), "json").dataflow
        for name, where in (("every", "id >= 0"), ("even", "id % 2 = 0"))
    ]
    with Engine(tmp_path / "state", spark=spark, trigger_s=1.0, price_per_h=Decimal("0.40")) as engine:
        observer = engine.observer()
        world.generate(1, 20)
        engine.submit(*flows)
        # A row is at its sink a moment before it is counted.
        wait_for(lambda: any(sink.rows for sink in observer.observe().sinks), "the first rows are counted")

        engine.limit("every", "read", 100)
        world.generate(10, 100)
        wait_for(lambda: engine.status()[0][0].rows_out > 220, "some rows, while others wait")
        for left in (3, 2, 1, 0):  # on a busy machine an epoch may end while the files are read
            behind = observed_after_an_epoch(engine, observer.observe)
            judged = world.judged(behind)
            assert 0.1 < judged.dataflows["every"].omega < 0.7
            try:
                agree(behind, judged)
                break
            except AssertionError:
                if not left:
                    raise

        engine.limit("every", "read", None)
        engine.switch("even", "score", "quick", by="ana")
        wait_for(lambda: engine.status()[0][0].rows_out == 1_020, "all rows")
        for _ in range(8):  # a switch is there at once, and shows in rows an epoch later
            world.generate(1, 50)
            wait_for(lambda: engine.status()[0][0].rows_out == world.generated, "some more")
        world.generate(1, 50)
        caught_up = observed_after_an_epoch(engine, observer.observe)
        judged = world.judged(caught_up)
        assert judged.dataflows["every"].omega == 1.0
        agree(caught_up, judged)
        way = engine.alternates("every")[TaskId("score")]
        assert (way.alternate, way.by, way.held) == ("quick", "ana", True)
        since = way.since
    with Engine(tmp_path / "state", spark=spark, trigger_s=1.0) as engine:
        way = engine.alternates("every")[TaskId("score")]
        assert (way.alternate, way.by, way.since) == ("quick", "ana", since), "a restart forgets nothing of it"
