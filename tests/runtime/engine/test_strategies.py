"""Whatever the strategy, a dataflow puts out what it puts out alone, while others come and go."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.errors import InputError
from headgate.model.dataflow import Dataflow
from headgate.model.names import TaskId
from headgate.model.strategy import StrategyName
from headgate.model.task import Alternate
from headgate.runtime.engine.engine import Engine
from headgate.runtime.engine.plans import Plans, read_snapshot
from headgate.sharing.alternates import binding_level
from headgate.sharing.applied import Applied
from headgate.sharing.deduplicate import deduplicate
from headgate.tasks.registry import default_registry
from tests.runtime.flows import Expected, drop_file, make_rows, multiset
from tests.runtime.sequences import KEYED, random_flow, source_in
from tests.runtime.small import beside, files, flow, memory, numbered, put, ran_by

pytestmark = pytest.mark.spark


def only_way(expected: Expected) -> Callable[[str], Alternate]:
    """The alternate of a task; none has two here."""
    return lambda task: expected.graph.tasks[TaskId(task)].alternates[0]


@dataclass
class Sequence:
    """Dataflows that come and go on one engine, files that are dropped meanwhile, and what must come out."""

    spark: SparkSession
    folder: Path
    strategy: StrategyName
    flows: list[Dataflow]
    files: list[Path] = field(default_factory=list)
    done: list[Applied] = field(default_factory=list)
    lives: dict[str, list[int]] = field(default_factory=dict)
    """For each dataflow the number of files in its past lives; where it shares nothing, it reads all of them anew."""

    def run(self, draw: random.Random, changes: int) -> None:
        self.folder.mkdir(parents=True)
        self._drop()
        keeper, *others = [one if at == 0 else beside(one, "keeper") for at, one in enumerate(self.flows)]
        state = self.folder.parent / "state"
        with Engine(state, spark=self.spark, trigger_s=0.05, strategy=self.strategy) as engine:
            self.done.append(engine.submit(keeper, others[0]))
            self.flows = [keeper, *others]
            for _ in range(changes):
                self._change(engine, draw.choice(others))
                self._drop()
                if draw.random() < 0.5:
                    engine.wait_until_idle()
                engine.housekeep()
            engine.wait_until_idle()
            engine.housekeep()
            assert not engine.failures()
            self.check(engine)
            self.looks_right(engine)

    def _drop(self) -> None:
        number = len(self.files)
        self.files.append(drop_file(self.folder, number, make_rows(number, 20, 7)))

    def _change(self, engine: Engine, flow: Dataflow) -> None:
        if flow.name not in {known.name for known in engine.snapshot.dataflows}:
            self.done.append(engine.submit(flow))
            return
        if self.strategy is StrategyName.NONE:
            engine.wait_until_idle()
            self.lives.setdefault(flow.name, []).append(len(self.files))
        self.done.append(engine.withdraw(flow.name))

    def check(self, engine: Engine) -> None:
        for known in self.flows:
            wanted = self._alone(engine, known) if self.strategy is StrategyName.NONE else self._by_log(engine, known)
            for task in known.tasks:
                name = str(task.config.get("name", ""))
                if task.type == "write_memory":
                    assert multiset(engine.memory.rows(name)) == multiset(wanted.get(name, [])), name

    def _alone(self, engine: Engine, flow: Dataflow) -> dict[str, list[dict[str, Any]]]:
        now = [len(self.files)] if flow.name in {known.name for known in engine.snapshot.dataflows} else []
        ends = [*self.lives.get(flow.name, []), *now]
        found: dict[str, list[dict[str, Any]]] = {}
        life = Expected(self.spark, flow)
        for number, file in enumerate(self.files[: max(ends, default=0)], 1):
            life.epoch(file, only_way(life))
            for name, rows in life.sinks.items():
                found.setdefault(name, []).extend(rows * ends.count(number))
        return found

    def _by_log(self, engine: Engine, flow: Dataflow) -> dict[str, list[dict[str, Any]]]:
        """Over the epochs of the source that ran it; what a keyed task remembers begins with its life."""
        (source,) = [f for f in engine.fragments.values() if f.fragment.kind == "source"]
        expected, since = Expected(self.spark, flow), dict[str, int]()
        ran = ran_by(engine, source)
        for epoch, file in enumerate(self.files):
            snapshot = read_snapshot(engine.journal, ran[epoch], default_registry())
            if flow.name not in {known.name for known in snapshot.running}:
                continue
            signatures = snapshot.find(flow.name).signatures
            for task in flow.tasks:
                life = snapshot.since.get(signatures[task.id], 0) if task.id in signatures else 0
                if since.setdefault(task.id, life) != life:
                    expected.states.pop((task.id, task.alternates[0].name), None)
                since[task.id] = life
            expected.epoch(file, only_way(expected))
        return expected.sinks

    def looks_right(self, engine: Engine) -> None:
        """Each strategy has left its own traces."""
        kinds = {fragment.fragment.kind.value for fragment in engine.fragments.values()}
        shared = any(s.change.shared for done in self.done for s in done.submissions)
        restarted = {name for done in self.done for name in done.restarted}
        assert shared == (self.strategy is not StrategyName.NONE)
        assert bool(restarted) == (self.strategy in (StrategyName.REPLACE, StrategyName.REPLACE_PRUNE))
        assert ("proxy" in kinds) == (self.strategy is StrategyName.INCREMENTAL)
        if self.strategy not in (StrategyName.INCREMENTAL, StrategyName.REPLACE):
            assert not engine.snapshot.resting

    @property
    def wider(self) -> int:
        return sum(len(s.wider) for done in self.done for s in done.submissions)


def keeper(folder: Path) -> Dataflow:
    return deduplicate(flow("keeper", {"id": "source", **source_in(folder)}, memory("keeper.0"))).dataflow


def fixed_flows(folder: Path) -> list[Dataflow]:
    """Dataflows of which each reads a stream that another makes wider, one with a keyed task behind it."""
    source = {"id": "source", **source_in(folder)}

    def where(text: str) -> dict[str, Any]:
        return {"type": "filter", "config": {"where": text}}

    made = [
        flow("wide", source, where("v > 0"), {"type": "tokenise", "config": {"column": "text"}}, memory("wide.0")),
        flow("narrow", source, where("v > 10"), {"id": "n", **KEYED[0]}, memory("narrow.0")),
        flow("two", source, where("g > 2 and v > 0"), {**KEYED[1]}, memory("two.0"), memory("two.1", inputs=["t1"])),
    ]
    return [deduplicate(one).dataflow for one in made]


@pytest.mark.parametrize("strategy", StrategyName)
def test_a_short_sequence_under_every_strategy(spark: SparkSession, tmp_path: Path, strategy: StrategyName) -> None:
    folder = tmp_path / "in"
    sequence = Sequence(spark, folder, strategy, [keeper(folder), *fixed_flows(folder)])
    draw = random.Random(1)
    draw.choice = _in_turn(["narrow", "two", "wide", "narrow", "wide"])  # type: ignore[method-assign]
    sequence.run(draw, changes=5)
    assert (sequence.wider > 0) == (strategy is not StrategyName.NONE)


def _in_turn(names: list[str]) -> Any:
    """Take the dataflows of these names, one after the other."""
    left = iter(names)
    return lambda flows: next(flow for name in [next(left)] for flow in flows if flow.name == name)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("strategy", StrategyName)
def test_long_random_sequences(spark: SparkSession, tmp_path: Path, strategy: StrategyName, seed: int) -> None:
    folder, draw = tmp_path / "in", random.Random(seed)
    flows = [random_flow(f"flow{number}", folder, draw) for number in range(5)]
    Sequence(spark, folder, strategy, [keeper(folder), *flows]).run(draw, changes=20)


def test_a_task_that_needs_its_inputs_in_one_batch_is_not_torn_apart(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    put(folder, "0", numbered(0, 6))
    some = {"id": "some", "type": "filter", "config": {"where": "id > 1"}}
    few = {"id": "few", "type": "filter", "config": {"where": "id > 3"}, "inputs": ["t0"]}
    both = {
        "id": "both",
        "type": "sql",
        "config": {"query": "select l.id, r.v from l join r on l.id = r.id", "columns": "id long, v double"},
        "ports": {"inputs": ["l", "r"], "outputs": ["out"]},
        "inputs": [{"from": "some", "to": "l"}, {"from": "few", "to": "r"}],
    }
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05, strategy=StrategyName.INCREMENTAL) as engine:
        engine.submit(flow("one", files(folder), some, memory("one")))
        engine.wait_until_idle()  # or the second would read the first file too, in one batch with the second file
        done = engine.submit(beside(flow("two", files(folder), some, few, both, memory("two")), "one"))
        assert "some" in done.submissions[0].change.own_ids, "it is shared with nobody, since its rows meet others'"
        put(folder, "1", numbered(0, 6))
        engine.wait_until_idle()
        assert sorted(row["id"] for row in engine.memory.rows("two")) == [4, 5]


def test_a_submission_that_cannot_be_made_durable_leaves_all_running(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "in", "0", numbered(0, 3))
    one, two = (flow(name, files(tmp_path / "in"), memory(name)) for name in ("one", "two"))

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05, strategy=StrategyName.REPLACE) as engine:
        engine.submit(one)
        with monkeypatch.context() as patched:
            patched.setattr(Plans, "publish", full)
            with pytest.raises(OSError, match="no space"):
                engine.submit(two)
        assert [known.name for known in engine.dataflows] == ["one"]
        put(tmp_path / "in", "1", numbered(3, 3))
        engine.wait_until_idle()
        assert sorted(row["id"] for row in engine.memory.rows("one")) == [*range(6)], "it was stopped, and goes on"
        done = engine.submit(two)
        assert done.restarted
        put(tmp_path / "in", "2", numbered(6, 3))
        engine.wait_until_idle()
        assert sorted(row["id"] for row in engine.memory.rows("one")) == [*range(9)]
        assert {row["id"] for row in engine.memory.rows("two")} >= {6, 7, 8}
        task = engine.snapshot.find("two").signatures[TaskId("t0")]
        assert binding_level(engine.shared.running, task, engine.snapshot.levels).latency_max_s is None


def test_the_strategy_stays_while_there_are_dataflows(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 3))
    one, two = (flow(name, files(tmp_path / "in"), memory(name)) for name in ("one", "two"))
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05, strategy=StrategyName.INCREMENTAL) as engine:
        engine.submit(one, two)
        engine.wait_until_idle()
        engine.withdraw("two")
        resting = engine.snapshot.resting
        assert resting, "what nobody needs stays"
    with pytest.raises(InputError, match="runs its dataflows with strategy 'incremental'"):
        Engine(tmp_path / "state", spark=spark, strategy=StrategyName.HOT)
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05) as engine:
        assert engine.snapshot.strategy is StrategyName.INCREMENTAL
        assert resting <= engine.fragments.keys(), "also after a restart"
        before = engine.submit(beside(two, "one"))
        assert not before.started, "and is resumed where it is"
        put(tmp_path / "in", "1", numbered(3, 3))
        engine.wait_until_idle()
        assert sorted(row["id"] for row in engine.memory.rows("two")) == [3, 4, 5]
        engine.withdraw("one")
        engine.withdraw("two")
    with Engine(tmp_path / "state", spark=spark, trigger_s=0.05, strategy=StrategyName.HOT) as engine:
        assert not engine.snapshot.resting
        engine.housekeep()
        assert not engine.fragments
