"""Tasks, dataflows and service levels: frozen, checked when made, equal by value."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from decimal import Decimal
from typing import Any

import pytest

from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, Owner, PortName, TaskId, is_name
from headgate.model.service_level import ServiceLevel
from headgate.model.stream import Stream
from headgate.model.task import Alternate, Port, Ports, Task
from tests.samples import DATAFLOW


def _task(name: str, *values: float) -> Task:
    return Task(TaskId(name), tuple(Alternate(f"way{n}", "opaque", value=v) for n, v in enumerate(values or (1.0,))))


def _stream(source: str, target: str) -> Stream:
    return Stream(TaskId(source), PortName("out"), TaskId(target), PortName("in"))


def test_a_task_has_alternates_each_of_its_own_name() -> None:
    with pytest.raises(ValueError, match="no alternate"):
        Task(TaskId("a"), ())
    with pytest.raises(ValueError, match="two alternates of one name"):
        Task(TaskId("a"), (Alternate("x", "rate"), Alternate("x", "union")))


def test_values_are_relative_to_the_best() -> None:
    task = _task("a", 0.7, 1.4, 0.35)
    assert task.relative_values == (0.5, 1.0, 0.25)
    assert task.is_dynamic
    assert (task.type, task.config) == ("opaque", task.alternates[0].config)
    assert not _task("a").is_dynamic


def test_a_dataflow_knows_every_end_of_its_streams() -> None:
    a, b = _task("a"), _task("b")
    with pytest.raises(ValueError, match="two tasks of one id"):
        Dataflow(DataflowName("f"), (a, a))
    with pytest.raises(ValueError, match="a:out -> c:in has an end that is no task"):
        Dataflow(DataflowName("f"), (a, b), (_stream("a", "c"),))


def test_streams_stand_by_the_task_they_enter_and_keep_their_order_there() -> None:
    a, b, c = _task("a"), _task("b"), _task("c")
    flow = Dataflow(DataflowName("f"), (a, b, c), (_stream("b", "c"), _stream("a", "b"), _stream("a", "c")))
    assert [str(stream) for stream in flow.streams] == ["a:out -> b:in", "b:out -> c:in", "a:out -> c:in"]


def test_dataflows_are_frozen_and_hashable() -> None:
    with pytest.raises(FrozenInstanceError):
        DATAFLOW.name = DataflowName("other")  # type: ignore[misc]
    assert replace(DATAFLOW) == DATAFLOW
    assert hash(replace(DATAFLOW)) == hash(DATAFLOW)
    assert replace(DATAFLOW, owner=Owner("other")) != DATAFLOW
    assert list(DATAFLOW.types)[:3] == ["read_files", "filter", "kalman"]


def test_ports_are_found_by_name() -> None:
    ports = Ports((Port(PortName("a")),), (Port(PortName("b")),))
    assert ports.input("a") == Port(PortName("a"))
    assert ports.output("a") is None


@pytest.mark.parametrize(
    ("level", "says"),
    [
        ({"latency_min_s": 1.0}, "needs latency_max_s"),
        ({"latency_min_s": 2.0, "latency_max_s": 2.0}, "must be below latency_max_s"),
        ({"break_even_at_best_per_h": Decimal(1)}, "together or not at all"),
        ({"break_even_at_best_per_h": Decimal(1), "break_even_at_worst_per_h": Decimal(1)}, "must be below break_even"),
    ],
)
def test_a_service_level_agrees_with_itself(level: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ServiceLevel(**level)


@pytest.mark.parametrize("name", ["a", "A.b-c_d@e", "0", "_", "x" * 128])
def test_names(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize("name", ["", "-a", ".a", "@a", "a b", "a:b", "ü", "a\n", "x" * 129, "a/b"])
def test_what_is_no_name(name: str) -> None:
    assert not is_name(name)
