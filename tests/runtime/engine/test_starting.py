"""From where dataflows read that find their sources running: pure, on snapshots and plans."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import InputError
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, Signature, TaskId
from headgate.model.start import Start
from headgate.model.task import Task
from headgate.runtime.compile.compiler import compile_plan
from headgate.runtime.compile.plan import CompiledPlan, later
from headgate.runtime.engine.past import SinkTurn
from headgate.runtime.engine.pending_change import PendingChange
from headgate.runtime.engine.snapshot import Snapshot
from headgate.runtime.engine.starting import Assumed
from headgate.sharing.shared_set import SharedSet
from headgate.tasks.registry import default_registry
from tests.runtime.small import files, flow, memory

POSITIVE = {"id": "positive", "type": "filter", "config": {"where": "v > 0"}}
COUNT = {"id": "n", "type": "count", "config": {"key": ["k"], "into": "n"}}
WINDOW = {"id": "w", "type": "window", "config": {"time": "at", "size": "10s", "columns": {"n": "count(*)"}}}
NOW_S = 1_800_000_000.0


class Running:
    """Snapshots that follow each other."""

    def __init__(self) -> None:
        self.snapshot = Snapshot(SharedSet(default_registry()))
        self.plan = compile_plan(self.snapshot)
        self.read_ns = 0

    def change(self) -> PendingChange:
        return PendingChange(self.snapshot, now_s=NOW_S, standing=Assumed(self.read_ns))

    def publish(self, change: PendingChange) -> PendingChange:
        self.snapshot, self.plan = change.compiled(self.plan)
        return change

    def submit(self, *flows: Dataflow) -> list[str]:
        """How each begins."""
        change = self.change()
        for one in flows:
            change = change.submitted(one)
        self.last = change.submissions[-1]
        return [one.start.how.value for one in self.publish(change).submissions]

    def caught_up(self) -> None:
        self.publish(self.change().caught_up(list(self.snapshot.catch_ups)))

    @property
    def sources(self) -> int:
        return sum(fragment.kind == "source" for fragment in self.plan.fragments.values())


def small(name: str, *steps: dict[str, Any], start: str | None = None, **options: Any) -> Dataflow:
    made = flow(
        name, files(Path("in"), columns="id long, k string, v double, at timestamp", **options), *steps, memory(name)
    )
    return made if start is None else replace(made, start=Start.parse(start))


def on_topic(name: str, *steps: dict[str, Any], start: str | None = None, **options: Any) -> Dataflow:
    config = {"servers": "localhost:1", "topics": ["t"], "format": "json", "columns": "k string, v double", **options}
    made = flow(name, {"type": "read_kafka", "config": config}, *steps, memory(name))
    return made if start is None else replace(made, start=Start.parse(start))


def shape(plan: CompiledPlan) -> dict[str, tuple[str, ...]]:
    return {task: known.users for task, known in plan.tasks.as_dict().items()}


def test_a_late_dataflow_leaves_nothing_behind_once_it_has_caught_up() -> None:
    late, together = Running(), Running()
    flows = [small("base", POSITIVE, COUNT), small("one", POSITIVE), small("two", POSITIVE, COUNT)]
    assert together.submit(*flows) == ["new", "new", "new"]
    assert late.submit(flows[0]) == ["new"]
    assert late.submit(*flows[1:]) == ["catch up", "catch up"]
    assert late.sources == 2, "both catch up with one reader"
    past = [task for task in late.plan.tasks.as_dict() if task not in together.plan.tasks]
    assert len(past) == 5, "source, filter, count and two sinks"
    assert {user for task in past for user in late.plan.tasks[task].users} == {"one", "two"}
    late.caught_up()
    assert shape(late.plan) == shape(together.plan)
    assert (late.snapshot.readings, late.snapshot.catch_ups) == ({}, {})


OTHER_COUNT = {**COUNT, "config": {"key": ["k"], "into": "m"}}


@pytest.mark.parametrize("steps", [[COUNT], [WINDOW], [POSITIVE, OTHER_COUNT], [POSITIVE, COUNT, WINDOW]])
def test_state_that_nobody_has_gets_the_past_first_and_then_what_the_running_tasks_make(
    steps: list[dict[str, Any]],
) -> None:
    running, together = Running(), Running()
    base, late = small("base", POSITIVE), small("late", *steps)
    running.submit(base)
    assert running.submit(late) == ["catch up"]
    assert running.sources == 2
    (first, *_) = running.snapshot.catch_ups[DataflowName("late")].handed
    (home,) = running.plan.homes[first]
    (topic,) = running.plan.fragments[home].reads
    writers = {one.id: [t.id for t in one.writes] for one in running.plan.fragments.values() if one.writes}
    (source,) = {*running.plan.homes[running.snapshot.find("base").signatures[TaskId("t0")]]}
    assert writers.pop(source) == [later(topic)], "what is read now waits"
    assert writers.pop(next(name for name in writers if name.startswith("source-"))) == [topic], "the past is first"
    assert_compiled_at_once(running)

    running.caught_up()
    assert [t.id for t in running.plan.fragments[source].writes] == [topic]
    assert_compiled_at_once(running)
    together.submit(base, late)
    assert sorted(shape(running.plan).values()) == sorted(shape(together.plan).values()), "no task is left over"
    assert running.sources == 1


def assert_compiled_at_once(running: Running) -> None:
    """Compiled by difference or at once: the same."""
    whole = compile_plan(running.snapshot)
    assert whole.fragments.as_dict() == running.plan.fragments.as_dict()
    assert whole.tasks.as_dict().keys() == running.plan.tasks.as_dict().keys()


def test_a_task_that_gets_a_past_has_a_host_of_its_own() -> None:
    running = Running()
    running.submit(small("base", POSITIVE, COUNT))
    assert running.submit(small("late", POSITIVE, OTHER_COUNT)) == ["catch up"]
    running.caught_up()
    assert running.submit(small("later", POSITIVE, OTHER_COUNT)) == ["catch up"]
    hosts = [one for one in running.plan.fragments.values() if one.kind == "keyed"]
    assert [len(one.roots) for one in hosts] == [1, 1, 1]
    assert_compiled_at_once(running)


def test_those_that_come_together_share_what_they_have_of_their_own() -> None:
    running = Running()
    running.submit(small("base", POSITIVE))
    assert running.submit(small("one", WINDOW), small("two", WINDOW)) == ["catch up", "catch up"]
    assert running.sources == 2
    assert len({running.snapshot.find(name).signatures[TaskId("w")] for name in ("one", "two")}) == 1
    running.publish(running.change().caught_up([DataflowName("one")]))
    assert running.sources == 2, "the other has not been said to have caught up"
    running.publish(running.change().without(["two"]))
    assert running.sources == 1
    assert_compiled_at_once(running)


def test_a_count_that_has_not_counted_from_the_beginning_is_not_shared() -> None:
    running = Running()
    running.submit(small("base", POSITIVE))
    replaced = running.change().making_room([small("base", POSITIVE)]).submitted(small("base", POSITIVE, COUNT))
    assert running.publish(replaced).submissions[0].start.how == "continued"
    assert running.submit(small("late", POSITIVE, COUNT)) == ["catch up"]
    assert running.snapshot.catch_ups[DataflowName("late")].handed, "with a count of its own"


def test_a_pause_breaks_a_count() -> None:
    running = Running()
    running.submit(small("base", COUNT), small("keeper"))
    tasks = running.snapshot.find("base").signatures.values()
    running.publish(running.change().chosen(tasks, paused=frozenset({"base"})))
    running.publish(running.change().chosen(tasks, paused=frozenset()))
    assert running.submit(small("late", COUNT)) == ["catch up"]
    assert running.snapshot.catch_ups[DataflowName("late")].handed, "with a count of its own"


def test_now_shares_rows_and_no_state() -> None:
    running = Running()
    running.submit(small("base", POSITIVE, COUNT))
    assert running.submit(small("late", POSITIVE, COUNT, start="now")) == ["now"]
    assert running.sources == 1
    users = {
        task.name.partition(".")[2]: task.users for task in running.plan.tasks.as_dict().values() if len(task.users) > 1
    }
    assert users == {"t0": ("base", "late"), "positive": ("base", "late")}
    assert running.submit(small("first", start="now", files_per_batch=7)) == ["now"]
    (reading,) = running.snapshot.readings.values()
    assert reading.arrived_since_ns == int(NOW_S * 1e9)
    assert running.submit(small("second", start="now", files_per_batch=7)) == ["now"]
    assert running.sources == 2, "it joins the one that reads from now on"


def test_with_shares_what_another_has_counted() -> None:
    running = Running()
    running.submit(small("base", POSITIVE, COUNT))
    assert running.submit(small("late", POSITIVE, COUNT, start="with base")) == ["with"]
    assert len(running.plan.tasks) == 5
    with pytest.raises(InputError, match="no dataflow 'none' is running"):
        running.submit(small("later", start="with none"))


def test_a_time_or_an_age() -> None:
    running = Running()
    running.submit(small("base", POSITIVE))
    running.read_ns = int((NOW_S - 3_600) * 1e9)
    assert running.submit(small("late", POSITIVE, start="6h")) == ["catch up"]
    (reading,) = running.snapshot.readings.values()
    assert (reading.bounded, reading.modified_since_ns) == (True, int((NOW_S - 6 * 3_600) * 1e9))
    assert running.submit(small("behind", POSITIVE, start="10min")) == ["new"], "the source has yet to get there"
    assert sorted(one.bounded for one in running.snapshot.readings.values()) == [False, True]
    with pytest.raises(InputError, match="is in the future"):
        running.submit(small("soon", start="2099-01-01T00:00Z"))


class Old(Assumed):
    """Sources whose oldest file is of some time."""

    def oldest_ns(self, task: Task) -> int | None:
        return round((NOW_S - 60) * 1e9)


def test_a_time_before_there_was_anything() -> None:
    change = replace(Running().change(), standing=Old())
    at = datetime.fromtimestamp(NOW_S - 120, UTC).isoformat()
    with pytest.raises(InputError, match="before the beginning of source 't0': its oldest file is of 2027-01-15T07:59"):
        change.submitted(small("old", start=at))
    assert change.submitted(small("old", start="2min")).submissions[0].start.how.value == "new", "an age may be longer"


def test_files_that_are_gone_cannot_be_caught_up_with() -> None:
    running = Running()
    running.submit(small("base", POSITIVE, after="delete"))
    with pytest.raises(InputError, match="deletes files that it has read; give start: now"):
        running.submit(small("late", POSITIVE, after="delete"))
    assert running.submit(small("late", POSITIVE, after="delete", start="now")) == ["now"]


def test_a_topic_begins_now_where_nobody_says() -> None:
    running = Running()
    assert running.submit(on_topic("base", COUNT)) == ["new"]
    assert running.submit(on_topic("late", COUNT), on_topic("other", COUNT)) == ["now", "now"]
    shared = {task.name.partition(".")[2]: task.users for task in running.plan.tasks.as_dict().values()}
    assert running.sources == 1
    assert shared["n"] == ("late", "other"), "they begin together; the first has counted before"
    assert running.submit(on_topic("all", POSITIVE, start="earliest")) == ["catch up"]
    assert running.submit(on_topic("own", POSITIVE, start="earliest")) == ["catch up"]
    assert running.submit(on_topic("counts", COUNT, start="earliest")) == ["catch up"]
    assert running.snapshot.catch_ups[DataflowName("counts")].handed, "with a count of its own"


def test_counts_from_the_earliest_of_a_topic_are_shared() -> None:
    running = Running()
    assert running.submit(on_topic("base", COUNT, start="earliest")) == ["new"]
    assert running.submit(on_topic("late", COUNT, start="earliest")) == ["catch up"]
    assert running.submit(on_topic("own", COUNT, start="6h")) == ["new"], (
        "how far the source is cannot be known here: it reads by itself"
    )
    running.read_ns = 2**62
    assert running.submit(on_topic("six", COUNT, start="6h"), on_topic("five", COUNT, start="5h")) == ["catch up"] * 2
    six, five = (running.snapshot.find(name).signatures[TaskId("n")] for name in ("six", "five"))
    assert six != five, "they count from different times"
    pasts = [one for one in running.snapshot.readings.values() if one.bounded and one.modified_since_ns]
    assert sorted(one.modified_since_ns for one in pasts) == [round((NOW_S - h * 3_600) * 1e9) for h in (6, 5)]
    running.caught_up()
    assert sum(task.role == "source" for task in running.plan.tasks.as_dict().values()) == 2


def test_the_start_of_a_source_is_no_part_of_what_it_is() -> None:
    running = Running()
    running.submit(small("base", POSITIVE))
    assert running.submit(small("late", POSITIVE, **{"start": "now"})) == ["now"]
    assert running.sources == 1
    two = [{"id": "a", **files(Path("in"), start="now")}, {"id": "b", **files(Path("in"))}]
    both = {"type": "filter", "config": {"where": "v > 0"}, "inputs": ["a", "b"]}
    with pytest.raises(InputError, match="sources 'a' and 'b' of dataflow 'twice' differ in nothing but their start"):
        running.submit(flow("twice", *two, both, memory("twice")))
    other = [{"id": "a", **files(Path("in"), start="now")}, {"id": "b", **files(Path("other"))}]
    taken = running.change().submitted(flow("mixed", *other, both, memory("mixed"))).submissions[0].start
    assert taken.start == "a now, b earliest"


def test_replays_begin_at_the_earliest_and_know_no_times() -> None:
    running = Running()
    played = {"type": "replay", "config": {"path": "r.json", "columns": "k string, v double"}}
    running.submit(flow("base", played, COUNT, memory("base")))
    assert running.submit(flow("late", played, COUNT, memory("late"))) == ["catch up"]
    with pytest.raises(InputError, match="needs a source that knows when its rows came, which 't0' is not"):
        running.submit(replace(flow("old", played, memory("old")), start=Start.parse("6h")))


def test_what_a_generator_has_made_is_gone() -> None:
    running = Running()
    made = {"type": "rate", "config": {"rows_per_s": 1}}
    count = {"type": "count", "config": {"key": ["value"], "into": "n"}}
    running.submit(flow("base", made, count, memory("base")))
    assert running.submit(flow("late", made, count, memory("late"))) == ["now"]
    assert len(running.plan.tasks) == 5, "the source is shared, and no state"


def test_a_table_begins_where_its_own_options_say_and_is_joined_where_it_stands() -> None:
    running = Running()
    config = {"url": "sqlite:///t.db", "table": "t", "by": "n", "columns": "n bigint"}
    table = {"type": "read_table", "config": config}
    assert running.submit(flow("base", table, memory("base"))) == ["new"]
    assert (running.last.start.start, running.snapshot.begins) == ("earliest", {})
    assert running.submit(flow("late", table, memory("late"))) == ["now"]
    assert running.last.start.start == "now"
    assert running.snapshot.begins[DataflowName("late")].since.startswith("2027-01-15T08:00:00")
    running.submit(flow("five", {**table, "config": {**config, "start": 5}}, memory("five")))
    assert running.last.start.start == "5"


class Gone(Assumed):
    """Sources of which some is gone."""

    def gone(self, source: Signature, since_ns: int) -> str:
        return f"of {len(source)} some since {since_ns}"


def test_a_past_that_is_gone_is_refused_or_taken_as_it_is() -> None:
    running = Running()
    running.submit(small("base", POSITIVE, COUNT))
    change = replace(running.change(), standing=Gone())
    with pytest.raises(InputError, match="is no longer whole: source 't0': of 40 some since 0; give --allow-partial"):
        change.submitted(small("late", POSITIVE))
    partial = replace(change, allow_partial=True)
    for late, how in [(small("late", POSITIVE), "catch up"), (small("n", POSITIVE, COUNT), "catch up")]:
        running.publish(made := partial.submitted(late))
        assert made.submissions[0].start.how.value == how
        assert "It lacks what is gone (source 't0': of 40" in made.submissions[0].start.sentence
        assert running.snapshot.begins[late.name].lacks.startswith("source 't0': of 40")
        partial = replace(running.change(), standing=Gone(), allow_partial=True)
    assert change.submitted(small("late", POSITIVE, start="now")).submissions[0].start.lacks == ""


def test_rows_wait_for_the_past_and_are_dropped_if_it_never_comes() -> None:
    running = Running()
    running.submit(small("base", POSITIVE))
    running.submit(small("late", POSITIVE))
    number = running.snapshot.number
    (sink,) = running.snapshot.catch_ups[DataflowName("late")].sinks.values()
    assert running.snapshot.due(sink, number) is SinkTurn.LATER
    with pytest.raises(InputError, match="'late' is catching up; replace it when it has"):
        running.change().making_room([small("late", COUNT)])
    before = running.snapshot
    running.publish(running.change().withdrawn("late"))
    assert running.snapshot.due(sink, number) is SinkTurn.NEVER
    assert running.sources == 1
    assert not running.snapshot.readings
    running.submit(small("late", POSITIVE))
    assert running.snapshot.due(sink, running.snapshot.number) is SinkTurn.LATER
    running.caught_up()
    assert running.snapshot.due(sink, running.snapshot.number) is SinkTurn.NOW
    assert running.snapshot.due(sink, before.number) is SinkTurn.NEVER


def test_a_sink_that_has_all_is_not_written_again() -> None:
    running = Running()
    running.submit(small("base", POSITIVE))
    again = replace(small("base", POSITIVE), name=DataflowName("again"))
    assert running.submit(again) == ["new"]
    assert not running.snapshot.catch_ups
    assert len(running.plan.tasks) == 3


def test_a_loop_reads_by_itself() -> None:
    loop = {
        "id": "loop",
        "type": "filter",
        "config": {"where": "v > 1"},
        "inputs": ["t0", {"from": "back", "feedback": True}],
    }
    back = {"id": "back", "type": "filter", "config": {"where": "v > 2"}, "inputs": ["loop"]}
    running = Running()
    running.submit(small("base", POSITIVE))
    assert running.submit(small("late", loop, back)) == ["alone"]
