"""Actions on Spark as a cluster: all of them are done or none, and a refusal says why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from headgate.adaptation.actions import AcquireMachine, Action, ReleaseMachine, SetPartitions, SwitchAlternate
from headgate.adaptation.cluster import Cluster
from headgate.errors import HeadgateError, InputError
from headgate.machines.provider import AcquiredMachine, MachineState, machine_class
from headgate.model.cluster.vm_class import VmClass
from headgate.model.names import Signature, TaskId
from headgate.runtime.engine.cluster import SparkCluster
from headgate.runtime.engine.engine import Engine
from headgate.runtime.engine.scaling import Scaling
from headgate.sharing.deduplicate import deduplicate
from tests.runtime.small import files, flow, memory, numbered, put

pytestmark = pytest.mark.spark
SMALL = machine_class("small", 1, 2**30, Decimal("0.1"))


class InMemoryProvider:
    """Machines that are only names; it has so many and no more."""

    def __init__(self, most: int = 100) -> None:
        self.most = most
        self.made: list[AcquiredMachine] = []

    def classes(self) -> tuple[VmClass, ...]:
        return (SMALL,)

    def acquire(self, vm_class: str, key: str | None = None) -> AcquiredMachine:
        if len(self.made) == self.most:
            raise HeadgateError("SOLD_OUT", "no machine is left")
        name = f"{vm_class}-{len(self.made) + 1}"
        self.made.append(AcquiredMachine(name, SMALL, "h", MachineState.READY, 0.0, key=key))
        return self.made[-1]

    def release(self, machine: str) -> None:
        states = {found.name: MachineState.RELEASED for found in self.made if found.name == machine}
        self.made = [replace(found, state=states.get(found.name, found.state)) for found in self.made]

    def list(self, *, gone: bool = False) -> tuple[AcquiredMachine, ...]:
        return tuple(machine for machine in self.made if gone or not machine.is_gone)


@pytest.fixture
def provider(engine: Engine) -> InMemoryProvider:
    made = InMemoryProvider(most=3)
    engine.scaling = Scaling(engine.scaling.executors, made)
    return made


@pytest.fixture
def smooth(engine: Engine, tmp_path: Path) -> Signature:
    """A task with two alternates in a dataflow that runs."""
    put(tmp_path / "in", "0", numbered(0, 5))
    ways = [
        {"name": "a", "type": "derive", "config": {"columns": {"w": "v + 1"}}, "value": 1},
        {"name": "b", "type": "derive", "config": {"columns": {"w": "v - 1"}}, "value": 0.5},
    ]
    made = flow("f", files(tmp_path / "in"), {"id": "smooth", "alternates": ways}, memory("out"))
    engine.submit(made)
    return Signature(deduplicate(made).signatures[TaskId("smooth")])


def cluster_of(engine: Engine) -> Cluster:
    return SparkCluster(engine)


def test_all_actions_take_effect_the_changes_of_tasks_in_one_snapshot(
    engine: Engine, provider: InMemoryProvider, smooth: Signature
) -> None:
    provider.acquire("small")
    before = engine.snapshot.number
    actions: Sequence[Action] = [
        SwitchAlternate(smooth, "b"),
        SetPartitions(smooth, 3),
        AcquireMachine("small"),
        ReleaseMachine("small-1"),
    ]
    cluster_of(engine).apply(actions)
    assert engine.snapshot.number == before + 1
    assert engine.snapshot.partitions == {smooth: 3}
    assert engine.plan.tasks[smooth].options.model_dump()["columns"] == {"w": "v - 1"}
    assert [machine.name for machine in provider.list()] == ["small-2"]
    cluster_of(engine).apply([SetPartitions(smooth, None)])
    assert engine.snapshot.partitions == {}


@pytest.mark.parametrize(
    ("bad", "condition"),
    [
        (AcquireMachine("smal"), "UNKNOWN_VM_CLASS"),
        (ReleaseMachine("small-9"), "UNKNOWN_MACHINE"),
        (SwitchAlternate(Signature("0" * 64), "a"), "UNKNOWN_TASK"),
        (SetPartitions(Signature("0" * 64), 2), "UNKNOWN_TASK"),
    ],
)
def test_one_that_cannot_be_done_leaves_everything_as_it_was(
    engine: Engine, provider: InMemoryProvider, smooth: Signature, bad: Action, condition: str
) -> None:
    provider.acquire("small")
    before = engine.snapshot
    with pytest.raises(InputError) as caught:
        cluster_of(engine).apply([ReleaseMachine("small-1"), AcquireMachine("small"), SetPartitions(smooth, 2), bad])
    assert caught.value.condition == condition
    assert engine.snapshot is before
    assert [machine.name for machine in provider.list()] == ["small-1"]


def test_an_alternate_or_a_number_that_is_not_there(engine: Engine, smooth: Signature) -> None:
    before = engine.snapshot
    with pytest.raises(InputError, match="task 'smooth' of 'f' has no alternate 'c'; it has a, b"):
        cluster_of(engine).apply([SetPartitions(smooth, 2), SwitchAlternate(smooth, "c")])
    with pytest.raises(InputError, match="0 partitions: at least 1"):
        cluster_of(engine).apply([SetPartitions(smooth, 0)])
    assert engine.snapshot is before


def test_what_was_acquired_before_a_refusal_is_given_back(
    engine: Engine, provider: InMemoryProvider, smooth: Signature
) -> None:
    with pytest.raises(HeadgateError, match="no machine is left"):
        cluster_of(engine).apply([AcquireMachine("small")] * 4)
    assert provider.list() == ()
    assert len(provider.list(gone=True)) == 3


def test_without_a_provider_or_a_cluster_a_sentence_says_so(engine: Engine) -> None:
    with pytest.raises(InputError) as no_provider:
        engine.acquire("small")
    with pytest.raises(InputError) as no_cluster:
        engine.scale(2)
    assert [no_provider.value.condition, no_cluster.value.condition] == ["NO_PROVIDER", "CANNOT_SCALE"]
