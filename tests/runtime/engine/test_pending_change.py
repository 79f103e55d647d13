"""What submissions and withdrawals make of a snapshot: all of it is kept, and every strategy cuts the same graph."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.errors import InputError
from headgate.model.strategy import StrategyName
from headgate.model.task_type import Role, State
from headgate.runtime.compile.compiler import compile_plan
from headgate.runtime.compile.plan import FED, CompiledPlan, Fragment, Kind, alternate_key
from headgate.runtime.engine.find_task import find_task
from headgate.runtime.engine.pending_change import GROUPED, PendingChange
from headgate.runtime.engine.snapshot import Snapshot
from headgate.runtime.engine.stored import decoded, stored_dataflow
from headgate.sharing.deduplicate import deduplicate
from headgate.sharing.past import past_name
from headgate.sharing.shared_set import SharedSet
from headgate.tasks.registry import default_registry
from headgate_benchmarks.nexmark.flows import QUERIES, flow
from tests.compiled import plan_of
from tests.runtime.sequences import random_flow
from tests.runtime.small import beside, files
from tests.runtime.small import flow as small_flow

REGISTRY = default_registry()
FLOWS = [deduplicate(flow(query)).dataflow for query in QUERIES]


def changed_at_random(seed: int, strategy: StrategyName, steps: int) -> tuple[PendingChange, CompiledPlan]:
    """A change after some others; the plan before it was compiled by difference, too."""
    draw = random.Random(seed)
    flows = [random_flow(f"f{number}", Path("in"), draw) for number in range(6)]
    change = PendingChange(Snapshot(SharedSet(REGISTRY, strategy is not StrategyName.NONE), strategy=strategy))
    plan = compile_plan(change.snapshot)
    for number in range(steps):
        snapshot, plan = change.compiled(plan)
        flow, change = draw.choice(flows), PendingChange(snapshot)
        if flow.name not in snapshot.stored:
            others = [*snapshot.stored]
            change = change.submitted(beside(flow, draw.choice(others)) if others and number % 3 else flow)
        elif draw.random() < 0.5:
            change = change.withdrawn(flow.name)
        else:
            change = change.chosen(snapshot.find(flow.name).signatures.values(), paused=snapshot.paused ^ {flow.name})
    return change, plan


def kept(change: PendingChange) -> Snapshot:
    """The snapshot of a change as a restart reads it."""
    submitted = change.snapshot.shared.running.submitted
    names = (*change.snapshot.stored, *map(past_name, change.snapshot.catch_ups))
    dataflows = [stored_dataflow(submitted[name]) for name in names]
    stored = {one.id: decoded(json.loads(json.dumps(one.document)), REGISTRY) for one in dataflows}
    as_dict = json.loads(json.dumps(change.snapshot.as_dict()))
    return Snapshot.from_dict(as_dict, stored.__getitem__, REGISTRY)


sequences = given(seed=st.integers(0, 10_000), strategy=st.sampled_from(StrategyName), steps=st.integers(1, 20))


@sequences
@settings(deadline=None, max_examples=60)
def test_a_snapshot_holds_all_that_was_decided(seed: int, strategy: StrategyName, steps: int) -> None:
    change, _ = changed_at_random(seed, strategy, steps)
    again = kept(change)
    assert again.as_dict() == change.snapshot.as_dict()
    assert (again.dataflows, again.running) == (change.snapshot.dataflows, change.snapshot.running)
    ours, theirs = again.shared.running, change.snapshot.shared.running
    assert ours.tasks.keys() == theirs.tasks.keys()
    for signature in ours.tasks:
        assert ours.users(signature) == theirs.users(signature)
    for name in again.stored:
        assert ours.find(name).signatures == deduplicate(ours.find(name).dataflow).signatures
    if strategy in GROUPED:
        active = Counter(task for group in again.units.groups.values() for task in group.active)
        assert active == Counter(dict.fromkeys(ours.tasks, 1)), "each running task in one group"


@sequences
@settings(deadline=None, max_examples=100)
def test_compiled_by_difference_is_compiled_from_the_start(seed: int, strategy: StrategyName, steps: int) -> None:
    change, before = changed_at_random(seed, strategy, steps)
    snapshot, plan = change.compiled(before)
    whole = compile_plan(snapshot)
    assert {task.signature: (task.users, task.alternate, task.feeds, task.state) for task in plan.tasks.values()} == {
        task.signature: (task.users, task.alternate, task.feeds, task.state) for task in whole.tasks.values()
    }
    assert {name: in_any_order(one) for name, one in plan.fragments.items()} == {
        name: in_any_order(one) for name, one in whole.fragments.items()
    }
    assert {task: set(names) for task, names in plan.homes.items()} == {
        task: set(names) for task, names in whole.homes.items()
    }
    assert json.loads(plan.hosts_text()) == json.loads(whole.hosts_text())
    assert before.number < plan.number
    for fragment in plan.fragments.values():
        seen = set(fragment.tasks)
        for task in reversed(fragment.tasks):
            seen.discard(task)
            feeds = {feed.source for feed in plan.tasks[task].feeds if not feed.feedback}
            assert feeds & set(fragment.tasks) <= seen, "each task after those that feed it"


@given(seed=st.integers(0, 10_000), steps=st.integers(1, 25))
@settings(deadline=None, max_examples=25)
def test_joins_and_hosts_of_several_sources_are_compiled_by_difference(seed: int, steps: int) -> None:
    draw = random.Random(seed)
    change = PendingChange(Snapshot(SharedSet(REGISTRY)))
    plan = compile_plan(change.snapshot)
    for _ in range(steps):
        snapshot, plan = change.compiled(plan)
        assert {name: in_any_order(one) for name, one in plan.fragments.items()} == {
            name: in_any_order(one) for name, one in compile_plan(snapshot).fragments.items()
        }
        query, change = draw.choice(FLOWS), PendingChange(snapshot)
        change = change.withdrawn(query.name) if query.name in snapshot.stored else change.submitted(query)


def test_an_alternate_of_another_kind_moves_the_cut() -> None:
    ways = [
        {"name": "plain", "type": "derive", "config": {"columns": {"n": "1"}}, "value": 2},
        {"name": "counted", "type": "count", "config": {"key": ["k"], "into": "n"}},
    ]
    tasks = [files(Path("in")), {"id": "either", "alternates": ways}, {"type": "write_console"}]
    change = PendingChange(Snapshot(SharedSet(REGISTRY))).submitted(small_flow("one", *tasks))
    snapshot, plan = change.compiled(compile_plan(change.snapshot.next(stored={}, shared=SharedSet(REGISTRY))))
    assert [fragment.kind for fragment in plan.fragments.values()] == [Kind.SOURCE]
    signature, task = find_task(snapshot, "one", "either")
    switched = PendingChange(snapshot).chosen([signature], active={signature: alternate_key(task.alternates[1])})
    later, plan = switched.compiled(plan)
    assert {fragment.kind for fragment in plan.fragments.values()} == {Kind.SOURCE, Kind.KEYED}
    assert later.since == {signature: later.number, find_task(later, "one", "t0")[0]: 1}


def in_any_order(fragment: Fragment) -> Fragment:
    return replace(fragment, tasks=tuple(sorted(fragment.tasks)))


@sequences
@settings(deadline=None, max_examples=60)
def test_fragments_run_every_task_and_pass_on_what_others_need(seed: int, strategy: StrategyName, steps: int) -> None:
    change, before = changed_at_random(seed, strategy, steps)
    _, plan = change.compiled(before)
    placed = Counter(task for fragment in plan.fragments.values() for task in homes(plan, fragment.id))
    assert placed == Counter(dict.fromkeys(plan.tasks, 1)), "no task has two sources, so each runs once"
    for task in plan.tasks.values():
        for feed in task.feeds:
            (home,) = [f.id for f in plan.fragments.values() if task.signature in homes(plan, f.id)]
            assert reaches(plan, feed.source, home), f"{task.name} does not get the rows of {feed.source}"
    kinds = {fragment.kind for fragment in plan.fragments.values()}
    assert strategy is StrategyName.INCREMENTAL or Kind.PROXY not in kinds
    users = Counter(len(task.users) for task in plan.tasks.values())
    assert strategy is not StrategyName.NONE or users.keys() <= {1}


def homes(plan: CompiledPlan, fragment_id: str) -> tuple[str, ...]:
    fragment = plan.fragments[fragment_id]
    return (*fragment.tasks, *(fragment.roots if fragment.kind not in FED else ()))


def reaches(plan: CompiledPlan, source: str, home: str) -> bool:
    """Whether rows of a task are in a fragment: made there, or brought, now or later, by a topic for it."""
    if source in homes(plan, home):
        return True
    writers = [fragment for fragment in plan.fragments.values() if source in homes(plan, fragment.id)]
    return any(
        topic.reader == home
        and topic.id.removesuffix("-later") in plan.fragments[home].reads
        and any(feed.source == source for feed in topic.feeds)
        for writer in writers
        for topic in writer.writes
    )


def test_states_and_roles_are_what_the_test_thinks() -> None:
    change, before = changed_at_random(3, StrategyName.INCREMENTAL, 12)
    _, plan = change.compiled(before)
    assert {task.role for task in plan.tasks.values()} == {Role.SOURCE, Role.STEP, Role.SINK}
    assert State.KEYED in {task.state for task in plan.tasks.values()}
    assert Kind.PROXY in {fragment.kind for fragment in plan.fragments.values()}


def test_what_cannot_be_done_leaves_all_as_it_was() -> None:
    change, _ = changed_at_random(1, StrategyName.HOT, 5)
    name = next(iter(change.snapshot.stored))
    flow = random_flow(name, Path("in"), random.Random(5))
    with pytest.raises(InputError, match="submitted already"):
        change.submitted(flow)
    with pytest.raises(InputError, match="no dataflow 'none' is running"):
        change.withdrawn("none")
    room = change.caught_up(list(change.snapshot.catch_ups)).making_room([flow])
    assert name not in room.snapshot.stored
    assert replace(room.submitted(flow).snapshot.dataflows[-1], start=flow.start) == flow


def test_a_topic_has_rows_for_one_side() -> None:
    """Rows of two sides have other columns, wherever they come from."""
    plan = plan_of(*map(flow, QUERIES))
    topics = [topic for fragment in plan.fragments.values() for topic in fragment.writes]
    assert len({topic.id for topic in topics}) == len(topics)
    assert all(len({feed.side for feed in topic.feeds}) == 1 for topic in topics)
    read = {fragment.id: set(fragment.reads) for fragment in plan.fragments.values()}
    assert all(topic.id in read[topic.reader] for topic in topics)
    twice = [(topic.reader, writer.id) for writer in plan.fragments.values() for topic in writer.writes]
    assert len(twice) > len(set(twice))  # both sides from one fragment
