"""How many executors are asked for, and which ones leave, on a fake application."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headgate.errors import InputError
from headgate.runtime.spark_internals.executors import Executors
from headgate.runtime.spark_internals.protocol import ExecutorInfo
from tests.runtime.fakes import FakeInternals


def application(master: str, *active_tasks: int) -> tuple[Executors, FakeInternals]:
    present = [ExecutorInfo(str(number), f"host{number}", 2, active, 0.0) for number, active in enumerate(active_tasks)]
    inside = FakeInternals(present)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master=master))
    return Executors(spark, inside), inside


def test_the_idlest_leave_and_of_those_the_youngest() -> None:
    executors, inside = application("spark://host:7077", 0, 3, 0, 0)
    executors.request(2)
    assert [executor.id for executor in executors.list()] == ["0", "1"]
    assert inside.requested == [2]


def test_more_are_requested_and_none_leaves() -> None:
    executors, inside = application("spark://host:7077", 0)
    executors.request(3)
    assert (inside.requested, len(executors.list())) == ([3], 1)


def test_machines_that_join_and_leave_move_the_target() -> None:
    executors, inside = application("spark://host:7077", 0, 0)
    executors.one_more()
    executors.one_less()
    assert inside.requested == [], "as long as all that the master has are taken"
    executors.request(2)
    executors.one_more()
    executors.one_less()
    executors.one_less()
    executors.one_less()
    assert inside.requested == [2, 3, 2, 1]
    assert executors.target == 1


@pytest.mark.parametrize(("master", "count"), [("local[2]", 2), ("spark://host:7077", 0)])
def test_what_cannot_be_scaled(master: str, count: int) -> None:
    executors, inside = application(master, 0)
    with pytest.raises(InputError) as raised:
        executors.request(count)
    assert raised.value.condition == "CANNOT_SCALE"
    assert inside.requested == []


def test_work_runs_on_each() -> None:
    executors, _ = application("spark://host:7077", 0, 0)
    assert executors.on_each(lambda: 7) == {"0": 7, "1": 7}
