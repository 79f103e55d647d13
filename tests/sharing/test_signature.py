"""Signatures against independent computations: graph isomorphism for DAGs, colour refinement for loops."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from itertools import pairwise

import networkx as nx
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from headgate.documents import parse
from headgate.model.config import Config, canonical_text
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, Owner, PortName, TaskId
from headgate.model.service_level import ServiceLevel
from headgate.model.stream import Stream
from headgate.model.task import Alternate, Task
from headgate.sharing import signature
from headgate.sharing.deduplicate import deduplicate
from headgate.sharing.signature import sign
from tests.sharing.strategies import dataflows, opaque


def node_label(task: Task) -> Hashable:
    """What a task does, by itself, as plainly as can be."""
    return frozenset((way.type, way.config.text) for way in task.alternates)


def edge_label(stream: Stream) -> str:
    return repr((stream.source_port, stream.target_port, stream.routing, stream.side, stream.feedback))


def ancestor_graph(dataflow: Dataflow, root: TaskId) -> nx.DiGraph:
    """The labelled graph of a task and all before it; parallel streams are one edge with all their labels."""
    whole = nx.DiGraph()
    for task in dataflow.tasks:
        whole.add_node(task.id, label=(node_label(task), task.id == root))
    for stream in dataflow.streams:
        if not whole.has_edge(stream.source, stream.target):
            whole.add_edge(stream.source, stream.target, labels=[])
        whole.edges[stream.source, stream.target]["labels"].append(edge_label(stream))
    for _, _, data in whole.edges(data=True):
        data["labels"] = tuple(sorted(data["labels"]))
    return whole.subgraph(nx.ancestors(whole, root) | {root})


def isomorphic(one: nx.DiGraph, two: nx.DiGraph) -> bool:
    same_node = nx.algorithms.isomorphism.categorical_node_match("label", None)
    same_edge = nx.algorithms.isomorphism.categorical_edge_match("labels", None)
    return bool(nx.is_isomorphic(one, two, node_match=same_node, edge_match=same_edge))


def without_duplicates(dataflow: Dataflow) -> Dataflow:
    """Merge equivalent tasks the slow way: by the fully written-out tree of everything before each task."""
    feeds: dict[str, list[Stream]] = {task.id: [] for task in dataflow.tasks}
    for stream in dataflow.streams:
        feeds[stream.target].append(stream)
    labels: dict[str, Hashable] = {task.id: node_label(task) for task in dataflow.tasks}

    def tree(task: str) -> Hashable:
        return labels[task], tuple(sorted(repr((edge_label(s), tree(s.source))) for s in feeds[task]))

    first: dict[Hashable, TaskId] = {}
    stands: dict[str, TaskId] = {task.id: first.setdefault(tree(task.id), task.id) for task in dataflow.tasks}
    kept = set(stands.values())
    return replace(
        dataflow,
        tasks=tuple(task for task in dataflow.tasks if task.id in kept),
        streams=tuple(replace(s, source=stands[s.source]) for s in dataflow.streams if s.target in kept),
    )


@settings(max_examples=200, deadline=None)
@given(dataflows(), dataflows())
def test_equal_signatures_mean_isomorphic_ancestor_graphs_and_the_other_way_round(one: Dataflow, two: Dataflow) -> None:
    one, two = without_duplicates(one), without_duplicates(two)
    signed_one, signed_two = sign(one), sign(two)
    for a in signed_one:
        graph = ancestor_graph(one, a)
        for b in signed_two:
            same = isomorphic(graph, ancestor_graph(two, b))
            event(f"equivalent: {same}")
            assert (signed_one[a] == signed_two[b]) == same


@settings(max_examples=200, deadline=None)
@given(dataflows())
def test_within_a_dataflow_without_duplicates_all_signatures_differ(dataflow: Dataflow) -> None:
    signed = sign(without_duplicates(dataflow))
    assert len(set(signed.values())) == len(signed)


@settings(max_examples=200, deadline=None)
@given(dataflows())
def test_deduplicating_agrees_with_the_slow_way_and_keeps_signatures(dataflow: Dataflow) -> None:
    done = deduplicate(dataflow)
    assert done.dataflow == without_duplicates(dataflow)
    before = sign(dataflow)
    assert done.signatures == sign(done.dataflow)
    assert all(before[task] == signature for task, signature in done.signatures.items())
    assert {task: before[kept] for task, kept in done.stands_for.items()} == {t: before[t] for t in done.stands_for}
    assert len(done.notices) == len(dataflow.tasks) - len(done.dataflow.tasks)


def colours(one: Dataflow, two: Dataflow) -> dict[tuple[int, str], int]:
    """Refine colours of both graphs together until nothing changes: equal colours, equal unrolled ancestors."""
    nodes: dict[tuple[int, str], Hashable] = {
        (n, task.id): node_label(task) for n, flow in enumerate((one, two)) for task in flow.tasks
    }
    feeds: dict[tuple[int, str], list[Stream]] = {node: [] for node in nodes}
    for n, flow in enumerate((one, two)):
        for stream in flow.streams:
            feeds[n, stream.target].append(stream)
    palette: dict[Hashable, int] = {}
    colour = {node: palette.setdefault(label, len(palette)) for node, label in nodes.items()}
    for _ in nodes:
        palette = {}
        seen = {n: tuple(sorted((edge_label(s), colour[n[0], s.source]) for s in feeds[n])) for n in nodes}
        colour = {n: palette.setdefault((colour[n], seen[n]), len(palette)) for n in nodes}
    return colour


def shuffled(dataflow: Dataflow, order: list[int]) -> Dataflow:
    """The same graph under other names, listed in another order."""
    name = {task.id: TaskId(f"x{order[n]}") for n, task in enumerate(dataflow.tasks)}
    tasks = sorted((replace(task, id=name[task.id]) for task in dataflow.tasks), key=lambda task: task.id)
    streams = [replace(s, source=name[s.source], target=name[s.target]) for s in reversed(dataflow.streams)]
    return replace(dataflow, tasks=tuple(tasks), streams=tuple(streams))


@settings(max_examples=150, deadline=None)
@given(dataflows(loops=True, most=5), dataflows(loops=True, most=5))
def test_equal_signatures_of_tasks_in_loops_mean_equal_unrolled_loops(one: Dataflow, two: Dataflow) -> None:
    signed = {(n, task): s for n, flow in enumerate((one, two)) for task, s in sign(flow).items()}
    colour = colours(one, two)
    for a in signed:
        for b in signed:
            if signed[a] == signed[b]:
                assert colour[a] == colour[b]


@settings(max_examples=150, deadline=None)
@given(dataflows(loops=True), st.randoms(use_true_random=False))
def test_names_and_order_do_not_matter_loops_included(dataflow: Dataflow, random: object) -> None:
    order = list(range(len(dataflow.tasks)))
    random.shuffle(order)  # type: ignore[attr-defined]
    other = shuffled(dataflow, order)
    assert sorted(sign(dataflow).values()) == sorted(sign(other).values())


@settings(max_examples=200, deadline=None)
@given(dataflows(loops=True), st.data())
def test_a_change_anywhere_changes_the_signatures_of_just_what_comes_after(
    dataflow: Dataflow, data: st.DataObject
) -> None:
    changed = data.draw(st.sampled_from(dataflow.tasks))
    other = replace(dataflow, tasks=tuple(opaque(t.id, "new") if t is changed else t for t in dataflow.tasks))
    graph = nx.DiGraph([(s.source, s.target) for s in dataflow.streams])
    graph.add_nodes_from(task.id for task in dataflow.tasks)
    after = nx.descendants(graph, changed.id) | {changed.id}
    assume(len(after) < len(dataflow.tasks) or len(dataflow.tasks) == 1)
    one, two = sign(dataflow), sign(other)
    assert {task for task in one if one[task] != two[task]} == after


def flow(*tasks: Task, streams: tuple[Stream, ...] = ()) -> Dataflow:
    return Dataflow(DataflowName("f"), tasks, streams)


def only(dataflow: Dataflow) -> str:
    (signature,) = sign(dataflow).values()
    return signature


def test_values_count_by_their_ratio_and_known_costs_do_not_count() -> None:
    def dynamic(scale: float, cost: float | None, first: str = "a") -> Dataflow:
        ways = (
            Alternate(first, "opaque", Config({"label": "x"}), 0.5 * scale, cost),
            Alternate("b", "opaque", Config({"label": "y"}), 1.0 * scale, selectivity=cost),
        )
        return flow(Task(TaskId("t"), ways))

    plain = only(dynamic(1, None))
    assert only(dynamic(3, 0.2, "other name")) == plain
    assert only(flow(Task(TaskId("t"), tuple(reversed(dynamic(1, None).tasks[0].alternates))))) == plain
    uneven = replace(dynamic(1, None).tasks[0].alternates[0], value=0.4)
    assert only(flow(Task(TaskId("t"), (uneven, dynamic(1, None).tasks[0].alternates[1])))) != plain


def test_the_dataflows_name_owner_and_service_level_do_not_count() -> None:
    one = flow(opaque("a", "x"))
    two = replace(one, name=DataflowName("g"), owner=Owner("eve"), service_level=ServiceLevel(throughput_min=0.1))
    assert sign(one) == sign(two)


def test_numbers_key_order_and_defaults_do_not_count_but_sides_do() -> None:
    def signed(config: str, inputs: str = "[a, b]") -> str:
        text = f"""tasks:
        - {{id: a, type: read_files, config: {{path: a, columns: "k string, t timestamp, x long"}}}}
        - {{id: b, type: read_files, config: {{path: b, columns: "k string, t timestamp, x long"}}}}
        - {{id: j, type: join, config: {{on: [k], time: [t, t], within: 5s}}, inputs: {inputs}}}
        - {{id: u, type: union, inputs: {inputs}}}
        - {{id: m, type: moving_average, config: {config}, inputs: [j]}}
        - {{id: n, type: moving_average, config: {config}, inputs: [u]}}"""
        found = sign(parse(text, "yaml").dataflow)
        return f"{found[TaskId('m')]} {found[TaskId('n')]}"

    plain = signed("{key: [k], column: x, size: 5}")
    assert signed("{column: x, size: 5.0, key: [k]}") == plain
    assert signed("{column: x, size: 5, key: [k], into: average}") == plain
    assert signed("{column: x, size: 6, key: [k]}") != plain
    joined, mixed = signed("{key: [k], column: x, size: 5}", "[b, a]").split()
    assert mixed == plain.split()[1]
    assert joined != plain.split()[0]


def test_a_long_chain_with_a_loop_around_it_is_signed_quickly() -> None:
    names = [TaskId(f"t{n}") for n in range(20_000)]
    chain = [Stream(a, PortName("out"), b, PortName("in")) for a, b in pairwise(names)]
    back = Stream(names[-1], PortName("out"), names[0], PortName("in"), feedback=True)
    signed = sign(flow(*(opaque(name, "same") for name in names), streams=(*chain, back)))
    assert len(set(signed.values())) == len(names)


def test_interleaving_a_stream_with_its_double_still_doubles_it() -> None:
    a, b, c = opaque("a", "x"), opaque("b", "x"), opaque("c", "y")
    into = [Stream(task.id, PortName("out"), c.id, PortName("in")) for task in (a, b)]
    done = deduplicate(flow(a, b, c, streams=tuple(into))).dataflow
    assert [str(stream) for stream in done.streams] == ["a:out -> c:in", "a:out -> c:in"]
    assert sign(done)[c.id] != sign(flow(a, c, streams=(into[0],)))[c.id]


@given(st.text(max_size=4), st.text(max_size=4), st.none() | st.integers(0, 3), st.booleans())
def test_the_short_way_to_write_a_plain_stream_gives_the_canonical_text(
    source: str, target: str, side: int | None, feedback: bool
) -> None:
    stream = Stream(TaskId("a"), PortName(source), TaskId("b"), PortName(target), side=side, feedback=feedback)
    wanted = canonical_text([target, -1 if side is None else side, source, "abc", feedback, []])
    assert signature._feed(stream, "abc") == wanted
