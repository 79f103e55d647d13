"""The graph: what is drawn, how it is collapsed, which part of it is chosen."""

from __future__ import annotations

import pytest

from headgate.errors import InputError
from headgate.service.console.choices import SnapshotChoices
from headgate.service.console.graph import MOST_NODES, GraphLevel, RunningGraph, running_graph
from headgate.service.console.selection import selected_tasks
from tests.service.console.samples import REGISTRY, shared, signature


def drawn(count: int, teams: int, level: GraphLevel = GraphLevel.AUTO, select: str = "") -> RunningGraph:
    return running_graph(
        shared(count, teams).running, SnapshotChoices(), REGISTRY, snapshot=7, level=level, select=select
    )


def test_every_task_is_a_node_once_with_all_who_use_it() -> None:
    graph = drawn(3, 2)
    assert (graph.level, graph.tasks, graph.submitted) == (GraphLevel.TASKS, 2 + 3 * 2, 12)
    by_name = {node.name: node for node in graph.nodes}
    assert [user.dataflow for user in by_name["flow0.part"].users] == ["flow0", "flow1", "flow2"]
    assert by_name["flow0.part"].owners == ("team0", "team1")
    assert by_name["flow1.out"].role == "sink"
    assert len(graph.edges) == 1 + 3 + 3
    places = {(node.x, node.y) for node in graph.nodes}
    assert len(places) == len(graph.nodes), "no node hides another"
    left = {node.id: node.x for node in graph.nodes}
    assert all(left[edge.source] < left[edge.target] for edge in graph.edges)


@pytest.mark.parametrize("level", [GraphLevel.DATAFLOWS, GraphLevel.TEAMS])
def test_a_collapsed_graph_has_no_cycle_and_loses_no_task(level: GraphLevel) -> None:
    graph = drawn(12, 3, level)
    assert sum(node.tasks for node in graph.nodes) == 2 + 12 * 2
    left = {node.id: node.x for node in graph.nodes}
    assert graph.edges
    assert all(left[edge.source] < left[edge.target] for edge in graph.edges)
    assert len(graph.nodes) == 1 + (12 if level is GraphLevel.DATAFLOWS else 3)


def test_a_large_graph_is_collapsed_until_it_fits() -> None:
    graph = drawn(2 * MOST_NODES, 5)
    assert graph.level is GraphLevel.TEAMS
    assert len(graph.nodes) == 6
    few = drawn(2 * MOST_NODES, 5, select="flow3")
    assert (few.level, len(few.nodes)) == (GraphLevel.TASKS, 4)


def test_terms_choose_tasks() -> None:
    running = shared(3, 2).running

    def names(text: str) -> set[str]:
        named = {one: f"{flow}.{task}" for flow in ("flow2", "flow1", "flow0") for task, one in pairs(flow)}
        return {named[task] for task in selected_tasks(running, text)}

    def pairs(flow: str) -> list[tuple[str, str]]:
        return [(task, signature(running, flow, task)) for task in ("read", "part", "own", "out")]

    assert names("flow1") == {"flow0.read", "flow0.part", "flow1.own", "flow1.out"}
    assert names("flow1.own") == {"flow1.own"}
    assert names("+flow1.own") == {"flow0.read", "flow0.part", "flow1.own"}
    assert names("flow1.own+") == {"flow1.own", "flow1.out"}
    assert names("type:rate, flow2.out") == {"flow0.read", "flow2.out"}
    assert names("team:team1") == names("flow1")
    assert len(names("")) == 8
    for text, condition in [
        ("flow9", "UNKNOWN_DATAFLOW"),
        ("flow1.oun", "UNKNOWN_TASK"),
        ("team:teem1", "UNKNOWN_OWNER"),
    ]:
        with pytest.raises(InputError) as refused:
            selected_tasks(running, text)
        assert refused.value.condition == condition
