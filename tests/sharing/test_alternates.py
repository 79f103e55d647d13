"""Shared tasks: the strictest service level binds."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headgate.documents import parse
from headgate.model.dataflow import Dataflow
from headgate.model.service_level import ServiceLevel
from headgate.sharing.alternates import binding_level, strictest
from headgate.sharing.running import RunningSet

TEXT = """
name: {name}
tasks:
- {{id: read, type: rate}}
- id: smooth
  alternates:
  - {{name: fine, type: kalman, config: {{key: [value], column: value}}, value: 2}}
  - {{name: rough, type: moving_average, config: {{key: [value], column: value, into: smoothed}}, value: 1}}
  inputs: [read]
- {{id: sink, type: write_memory, config: {{name: {name}}}, inputs: [smooth]}}
"""


def flow(name: str, **level: float) -> Dataflow:
    return replace(parse(TEXT.format(name=name), "yaml").dataflow, service_level=ServiceLevel(**level))  # type: ignore[arg-type]


def test_the_strictest_service_level_binds_what_is_shared_and_nothing_else() -> None:
    running, _ = RunningSet().submit(flow("slow", latency_max_s=60.0, throughput_min=0.95))
    running, change = running.submit(flow("quick", latency_max_s=2.0))
    shared = change.shared[0].running.signature
    assert binding_level(running, shared) == ServiceLevel(throughput_min=0.95, latency_max_s=2.0)
    assert binding_level(running, change.own[0].signature).throughput_min == 0.8
    left, _ = running.withdraw("quick")
    assert binding_level(left, shared).latency_max_s == 60.0


levels = st.builds(
    ServiceLevel,
    throughput_min=st.floats(0.1, 1),
    throughput_tolerance=st.floats(0, 0.5),
    latency_max_s=st.none() | st.floats(1, 100),
)


@given(st.lists(levels, min_size=1, max_size=4))
def test_what_meets_the_strictest_meets_each(many: list[ServiceLevel]) -> None:
    joined = strictest(many)
    for level in many:
        assert joined.throughput_band[0] >= level.throughput_band[0] - 1e-12
        assert level.latency_max_s is None or (joined.latency_max_s or 0) <= level.latency_max_s
    assert strictest(reversed(many)) == joined
