"""The running set: SHARE's two invariants after any sequence, against the paper's set algebra written out naively."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from headgate.errors import InputError
from headgate.model.dataflow import Dataflow
from headgate.model.graph import Graph
from headgate.model.names import DataflowName, Owner, Signature
from headgate.model.share import Share
from headgate.sharing.change import Operation
from headgate.sharing.merge import merge
from headgate.sharing.running import RunningSet
from headgate.sharing.signature import sign
from tests.sharing.naive import NaiveSet
from tests.sharing.sequences import operations, random_dataflow
from tests.sharing.strategies import dataflows, opaque

seeds = st.integers(0, 2**32)


def written_out(running: RunningSet) -> set[frozenset[str]]:
    """The running dataflows, each as the set of its tasks' ancestor graphs, written out from the streams."""
    tasks = running.tasks.as_dict()
    texts: dict[Signature, str] = {}

    def text(signature: Signature) -> str:
        if signature not in texts:
            running_task = tasks[signature].running
            feeds = sorted(
                f"{(s.source_port, s.target_port, s.routing, s.side)!r}<{text(s.source)}>" for s in running_task.feeds
            )
            ways = sorted((way.type, way.config.text) for way in running_task.task.alternates)
            kind, _, who = running_task.task.scope.partition(" ")
            texts[signature] = f"{ways!r}{(kind, who) if kind else None!r}({','.join(feeds)})"
        return texts[signature]

    return {frozenset(text(signature) for signature in dataflow.tasks) for dataflow in running.dataflows()}


def check_invariants(running: RunningSet, submitted: dict[str, Dataflow]) -> None:
    wanted = {name: set(sign(flow).values()) for name, flow in submitted.items()}
    tasks = running.tasks.as_dict()
    for name, flow in submitted.items():  # Eq. 1: an equivalent task runs for each sink
        signatures = sign(flow)
        assert all(signatures[sink] in tasks for sink in Graph(flow).sinks())
        assert set(running.find(name).signatures.values()) == wanted[name]
    needed = {signature for signatures in wanted.values() for signature in signatures}
    assert set(tasks) == needed  # Eq. 2: nothing runs that no sink needs, and nothing twice
    for signature, used in tasks.items():
        assert set(used.users) == {name for name, signatures in wanted.items() if signature in signatures}
        assert {stream.source for stream in used.running.feeds} <= needed
    parts = [dataflow.tasks for dataflow in running.dataflows()]
    assert sum(map(len, parts)) == len(tasks)  # disjoint
    assert len(parts) == len(running.components)


@pytest.mark.parametrize("isolated", [False, True])
@settings(max_examples=6)
@given(seed=seeds)
def test_after_any_sequence_the_running_set_is_that_of_the_papers_set_algebra(isolated: bool, seed: int) -> None:
    running, naive = RunningSet(), NaiveSet()
    submitted: dict[str, Dataflow] = {}
    for step, (operation, flow) in enumerate(operations(random.Random(seed), 200, isolated=isolated)):
        if operation == "submit":
            submitted[flow.name] = flow
            running, change = running.submit(flow)
            counted = naive.merge(flow)
        else:
            del submitted[flow.name]
            running, change = running.withdraw(flow.name)
            counted = naive.unmerge(flow.name)
        assert (len(change.shared), len(change.own)) == counted
        assert change.operation == Operation(operation)
        event(f"running dataflows {operation}: {len(change.before)} before, {len(change.after)} after")
        if step % 10 == 0 or step > 190:
            assert written_out(running) == naive.told()
            check_invariants(running, submitted)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(seed=seeds, isolated=st.booleans())
def test_the_same_over_many_long_sequences(seed: int, isolated: bool) -> None:
    running, naive = RunningSet(), NaiveSet()
    submitted: dict[str, Dataflow] = {}
    for operation, flow in operations(random.Random(seed), 400, isolated=isolated):
        if operation == "submit":
            submitted[flow.name] = flow
            running, _ = running.submit(flow)
            naive.merge(flow)
        else:
            del submitted[flow.name]
            running, _ = running.withdraw(flow.name)
            naive.unmerge(flow.name)
        assert written_out(running) == naive.told()
    check_invariants(running, submitted)


@settings(max_examples=60)
@given(st.lists(dataflows(loops=True), min_size=1, max_size=5), seeds)
def test_loops_too_and_in_the_end_nothing_is_left(flows: list[Dataflow], seed: int) -> None:
    named = {f"flow{n}": replace(flow, name=DataflowName(f"flow{n}")) for n, flow in enumerate(flows)}
    running = RunningSet()
    for flow in named.values():
        running, _ = running.submit(flow)
    check_invariants(running, named)
    merged = merge(named.values())
    assert set(sign(merged.graph).values()) == set(running.tasks)
    names = list(named)
    random.Random(seed).shuffle(names)
    for name in names:
        running, _ = running.withdraw(name)
        del named[name]
        check_invariants(running, named)
    assert (len(running.tasks), len(running.components), len(running.components.links)) == (0, 0, 0)


@given(seeds)
def test_withdrawing_undoes_submitting_and_the_sets_before_stay_as_they_were(seed: int) -> None:
    draw = random.Random(seed)
    sets = [RunningSet()]
    for number in range(8):
        sets.append(sets[-1].submit(random_dataflow(f"flow{number}", draw))[0])
    told = [written_out(running) for running in sets]
    extra = random_dataflow("extra", draw)
    for running, before in zip(sets, told, strict=True):
        more, change = running.submit(extra)
        back, undone = more.withdraw("extra")
        assert back.tasks == running.tasks
        assert back.submitted == running.submitted
        assert (change.shared, change.own) == (undone.shared, undone.own)
        assert set(change.taps) == set(undone.taps)
        assert written_out(running) == before


def test_a_change_tells_what_is_reused_and_whose_and_what_is_added() -> None:
    draw = random.Random(3)
    running = RunningSet()
    for number in range(6):
        running, _ = running.submit(random_dataflow(f"flow{number}", draw))
    flow = random_dataflow("new", draw)
    after, change = running.submit(flow)
    assert {shared.running.signature for shared in change.shared} == set(sign(flow).values()) & set(running.tasks)
    for shared in change.shared:
        assert dict(shared.users) == dict(running.users(shared.running.signature))
        assert "new" not in shared.users
    assert {task.signature for task in change.own} == set(after.tasks) - set(running.tasks)
    inside = {task.signature for task in change.own}
    assert all(tap.source not in inside and tap.target in inside for tap in change.taps)
    assert change.touched == {name for shared in change.shared for name in shared.users}
    assert change.altered == inside | {tap.source for tap in change.taps}


def test_a_name_twice_is_refused_and_nothing_has_changed() -> None:
    flow = random_dataflow("flow", random.Random(1))
    running, _ = RunningSet().submit(flow)
    with pytest.raises(InputError, match="submitted already") as caught:
        running.submit(replace(random_dataflow("flow", random.Random(2))))
    assert (caught.value.condition, caught.value.parameters) == ("NAME_TAKEN", {"dataflow": "flow"})
    check_invariants(running, {"flow": flow})


def test_withdrawing_what_is_not_there_is_refused_and_nothing_has_changed() -> None:
    flow = random_dataflow("flow", random.Random(1))
    running, _ = RunningSet().submit(flow)
    with pytest.raises(InputError, match="did you mean 'flow'") as caught:
        running.withdraw("flwo")
    assert (caught.value.condition, caught.value.parameters["name"]) == ("UNKNOWN_DATAFLOW", "flwo")
    check_invariants(running, {"flow": flow})


def test_merging_two_dataflows_of_one_name_is_refused_with_a_condition() -> None:
    flow = random_dataflow("flow", random.Random(1))
    with pytest.raises(InputError) as caught:
        merge([flow, flow])
    assert caught.value.condition == "NAME_TAKEN"


def test_isolation_classes() -> None:
    def flow(name: str, owner: str, share: Share) -> Dataflow:
        return Dataflow(DataflowName(name), (opaque("t", "a"),), (), Owner(owner), share=share)

    def running_tasks(*flows: Dataflow) -> int:
        running = RunningSet()
        for one in flows:
            running, _ = running.submit(one)
        merged = merge(flows)
        assert set(sign(merged.graph).values()) == set(running.tasks)  # the runtime signs the merged graph
        return len(running.tasks)

    assert running_tasks(flow("a", "ana", Share.ANYONE), flow("b", "ben", Share.ANYONE)) == 1
    assert running_tasks(flow("a", "ana", Share.OWNER), flow("b", "ben", Share.OWNER)) == 2
    assert running_tasks(flow("a", "ana", Share.OWNER), flow("b", "ana", Share.OWNER)) == 1
    assert running_tasks(flow("a", "ana", Share.OWNER), flow("b", "ana", Share.ANYONE)) == 2
    assert running_tasks(flow("a", "ana", Share.NEVER), flow("b", "ana", Share.NEVER)) == 2


def test_what_comes_behind_a_private_task_is_private_and_what_comes_before_is_not() -> None:
    def flow(name: str) -> Dataflow:
        draw = random.Random(5)
        made = random_dataflow(name, draw)
        sink = Graph(made).sinks()[0]
        tasks = tuple(replace(t, share=Share.NEVER) if t.id == sink else t for t in made.tasks)
        return replace(made, tasks=tasks)

    running, _ = RunningSet().submit(flow("one"))
    after, change = running.submit(flow("two"))
    assert len(change.own) == 1
    assert len(after.tasks) == len(running.tasks) + 1
