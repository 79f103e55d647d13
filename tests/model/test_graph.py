"""The shape of dataflows, compared with networkx."""

from __future__ import annotations

from itertools import pairwise

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.graph import Graph, cycles, loops, topological_order
from headgate.model.names import TaskId
from tests.samples import DATAFLOW

Parents = dict[TaskId, list[TaskId]]


@st.composite
def graphs(draw: st.DrawFn) -> Parents:
    names = [TaskId(f"t{n}") for n in range(draw(st.integers(1, 7)))]
    return {name: draw(st.lists(st.sampled_from(names), max_size=3)) for name in draw(st.permutations(names))}


def _networkx(parents: Parents) -> networkx.DiGraph:
    graph = networkx.DiGraph()
    graph.add_nodes_from(parents)
    graph.add_edges_from((parent, child) for child, sources in parents.items() for parent in sources)
    return graph


@given(graphs())
def test_loops_are_the_strongly_connected_parts(parents: Parents) -> None:
    graph = _networkx(parents)
    expected = [
        part
        for part in networkx.strongly_connected_components(graph)
        if len(part) > 1 or graph.has_edge(*[next(iter(part))] * 2)
    ]
    assert {frozenset(loop) for loop in loops(parents)} == {frozenset(part) for part in expected}


@given(graphs())
def test_one_cycle_is_told_for_each_knot(parents: Parents) -> None:
    loops_of = cycles(parents)
    assert len(loops_of) == len(loops(parents))
    for cycle in loops_of:
        assert cycle[0] == cycle[-1]
        assert all(before in parents[after] for before, after in pairwise(cycle))


@given(graphs())
def test_tasks_come_after_their_parents_unless_there_is_a_cycle(parents: Parents) -> None:
    if networkx.is_directed_acyclic_graph(_networkx(parents)):
        order = topological_order(parents)
        assert sorted(order) == sorted(parents)
        assert all(order.index(p) < order.index(c) for c, sources in parents.items() for p in sources)
        assert cycles(parents) == []
    else:
        with pytest.raises(ValueError, match="a cycle: "):
            topological_order(parents)


def test_sources_sinks_and_streams_of_each_task() -> None:
    graph = Graph(DATAFLOW)
    assert graph.sources() == ["read", "other"]
    assert graph.sinks() == ["loop", "print", "write"]
    assert [stream.source for stream in graph.feeds[TaskId("pair")]] == ["smooth", "other"]
    assert {stream.target for stream in graph.consumers[TaskId("split")]} == {"loop", "print"}
    order = graph.order()
    assert order.index(TaskId("split")) < order.index(TaskId("loop"))


def test_long_chains_and_rings_are_no_matter() -> None:
    many = 20_000
    chain = {TaskId(f"t{n}"): [TaskId(f"t{n - 1}")] if n else [] for n in range(many)}
    assert topological_order(chain)[-1] == f"t{many - 1}"
    ring = chain | {TaskId("t0"): [TaskId(f"t{many - 1}")]}
    (cycle,) = cycles(ring)
    assert (len(cycle), cycle[0]) == (many + 1, "t0")
