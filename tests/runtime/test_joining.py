"""What submissions and withdrawals make of a snapshot: all of it is kept, and every strategy cuts the same graph."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.errors import InputError
from headgate.model.strategy import StrategyName
from headgate.model.task_type import Role, State
from headgate.runtime.compile.plan import FED, CompiledPlan, Kind, compile_plan
from headgate.runtime.engine.pending_change import IN_UNITS, PendingChange, restored
from headgate.runtime.engine.snapshot import Snapshot
from headgate.tasks.registry import default_registry
from headgate_benchmarks.nexmark.flows import QUERIES, flow
from tests.runtime.sequences import random_flow

REGISTRY = default_registry()


def joined_at_random(seed: int, strategy: StrategyName, steps: int) -> PendingChange:
    draw = random.Random(seed)
    flows = [random_flow(f"f{number}", Path("in"), draw) for number in range(6)]
    snapshot = Snapshot(strategy=strategy)
    joined = PendingChange(snapshot, restored(snapshot, REGISTRY, semantic=True))
    for _ in range(steps):
        flow = draw.choice(flows)
        there = flow.name in {known.name for known in joined.snapshot.dataflows}
        joined = joined.withdrawn(flow.name) if there else joined.submitted(flow)
    return joined


sequences = given(seed=st.integers(0, 10_000), strategy=st.sampled_from(StrategyName), steps=st.integers(1, 20))


@sequences
@settings(deadline=None, max_examples=60)
def test_a_snapshot_holds_all_that_was_decided(seed: int, strategy: StrategyName, steps: int) -> None:
    joined = joined_at_random(seed, strategy, steps)
    stored = json.loads(json.dumps(joined.snapshot.as_dict()))
    again = Snapshot.from_dict(stored, REGISTRY)
    assert again == joined.snapshot
    shared = restored(again, REGISTRY, semantic=True)
    assert shared.running.tasks.keys() == joined.shared.running.tasks.keys()
    for signature in shared.running.tasks:
        assert shared.running.users(signature) == joined.shared.running.users(signature)
    if strategy in IN_UNITS:
        held = Counter(task for unit in again.deployment.groups.values() for task in unit.active)
        assert held == Counter(dict.fromkeys(shared.running.tasks, 1)), "each running task in one unit"


@sequences
@settings(deadline=None, max_examples=60)
def test_fragments_run_every_task_and_pass_on_what_others_need(seed: int, strategy: StrategyName, steps: int) -> None:
    snapshot = joined_at_random(seed, strategy, steps).snapshot
    plan = compile_plan(snapshot, REGISTRY)
    assert plan.fragments == compile_plan(Snapshot.from_dict(snapshot.as_dict(), REGISTRY), REGISTRY).fragments
    placed = Counter(task for fragment in plan.fragments.values() for task in homes(plan, fragment.id))
    assert placed == Counter(dict.fromkeys(plan.tasks, 1)), "there is one source, so each task runs once"
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
    """Whether rows of a task are in a fragment: made there, or brought by a topic that some fragment writes for it."""
    if source in homes(plan, home):
        return True
    writers = [fragment for fragment in plan.fragments.values() if source in homes(plan, fragment.id)]
    return any(
        topic.reader == home and topic.id in plan.fragments[home].reads and any(f.source == source for f in topic.feeds)
        for writer in writers
        for topic in writer.writes
    )


def test_states_and_roles_are_what_the_test_thinks() -> None:
    plan = compile_plan(joined_at_random(3, StrategyName.INCREMENTAL, 12).snapshot, REGISTRY)
    assert {task.role for task in plan.tasks.values()} == {Role.SOURCE, Role.STEP, Role.SINK}
    assert State.KEYED in {task.state for task in plan.tasks.values()}
    assert Kind.PROXY in {fragment.kind for fragment in plan.fragments.values()}


def test_what_cannot_be_done_leaves_all_as_it_was() -> None:
    joined = joined_at_random(1, StrategyName.HOT, 5)
    name = joined.snapshot.dataflows[0].name
    flow = random_flow(name, Path("in"), random.Random(5))
    with pytest.raises(InputError, match="submitted already"):
        joined.submitted(flow)
    with pytest.raises(InputError, match="no dataflow 'none' is running"):
        joined.withdrawn("none")
    room = joined.making_room([flow])
    assert name not in {known.name for known in room.snapshot.dataflows}
    assert room.submitted(flow).snapshot.dataflows[-1] == flow


def test_a_topic_has_rows_for_one_side() -> None:
    """Rows of two sides have other columns, wherever they come from."""
    plan = compile_plan(Snapshot(number=1, dataflows=tuple(map(flow, QUERIES))), REGISTRY)
    topics = [topic for fragment in plan.fragments.values() for topic in fragment.writes]
    assert len({topic.id for topic in topics}) == len(topics)
    assert all(len({feed.side for feed in topic.feeds}) == 1 for topic in topics)
    read = {fragment.id: set(fragment.reads) for fragment in plan.fragments.values()}
    assert all(topic.id in read[topic.reader] for topic in topics)
    twice = [(topic.reader, writer.id) for writer in plan.fragments.values() for topic in writer.writes]
    assert len(twice) > len(set(twice))  # both sides from one fragment
