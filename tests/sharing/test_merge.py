"""Merging and comparing dataflows, against counting signatures by hand."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName
from headgate.sharing.merge import merge
from headgate.sharing.overlap import overlap
from headgate.sharing.signature import sign
from tests.sharing.strategies import dataflows


@settings(max_examples=150, deadline=None)
@given(st.lists(dataflows(), min_size=1, max_size=4))
def test_the_merged_graph_holds_each_task_once_and_every_dataflow_whole(flows: list[Dataflow]) -> None:
    named = [replace(flow, name=DataflowName(f"flow{n}")) for n, flow in enumerate(flows)]
    merged = merge(named)
    signed = sign(merged.graph)
    assert len(set(signed.values())) == len(signed)
    by_signature = {signature: task for task, signature in signed.items()}
    for flow in named:
        wanted = set(sign(flow).values())
        assert wanted <= set(by_signature)
        users = {task for task, names in merged.users.items() if flow.name in names}
        assert users == {by_signature[signature] for signature in wanted}
    assert set(by_signature) == {signature for flow in named for signature in sign(flow).values()}
    assert merged.saved == sum(len(set(sign(flow).values())) for flow in named) - len(signed)


@settings(max_examples=150, deadline=None)
@given(dataflows(), dataflows())
def test_overlap_finds_what_has_equal_signatures(one: Dataflow, two: Dataflow) -> None:
    found = overlap(one, two)
    first, second = sign(one), sign(two)
    assert all(first[a] == second[b] for a, b in found.equivalent)
    assert len(found.equivalent) == len(set(first.values()) & set(second.values()))
    assert not {first[task] for task in found.only_first} & set(second.values())
    assert not {second[task] for task in found.only_second} & set(first.values())
    assert len(found.only_second) + len(found.equivalent) == len(set(second.values()))
