"""One replication of the simulator as a :class:`~headgate.adaptation.cluster.Cluster`, for policies on observations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from headgate.adaptation.actions import AcquireMachine, Action, AssignCores, ReleaseMachine, SwitchAlternate
from headgate.adaptation.cluster import Cluster
from headgate.errors import InputError
from headgate.model.cluster.machine_observations import MachineObservations, MachineState
from headgate.model.cluster.observation import (
    FragmentObservation,
    Observation,
    SinkObservation,
    Sojourn,
    TaskObservation,
    TaskProfile,
)
from headgate.model.graph import Graph
from headgate.model.names import Signature
from headgate.sharing.signature import sign
from headgate.simulation.simulator import Simulator
from tests.simulation.action_checks import ActionCheck
from tests.simulation.sojourn import sojourns

__all__ = ["EachReplication", "Policy", "SimulatedCluster", "control"]


class Policy(Protocol):
    """Decides from observations only."""

    name: str

    def decide(self, observed: Observation) -> Sequence[Action]:
        """The actions to take now; none if nothing needs to change."""


def control(cluster: Cluster, policy: Policy, wait: Callable[[], bool]) -> None:
    """Observe, decide, act, as long as ``wait``, which lets time pass, returns true."""
    while wait():
        actions = policy.decide(cluster.observe())
        if actions:
            cluster.apply(actions)


class SimulatedCluster:
    """Implements the protocol for one replication. Time passes only when the simulator advances.

    Every task has cores of its own and is a fragment of its own. The fluid model knows mean sojourns only, so all
    percentiles are the mean. Rows in are those that were processed; those that came and wait are ``rows_waiting``.
    """

    def __init__(self, simulator: Simulator, replication: int = 0) -> None:
        self.simulator, self.row = simulator, replication
        dataflow = simulator.setting.dataflow
        tasks = Graph(dataflow).tasks
        signatures = sign(dataflow)
        self._signatures: list[Signature] = [signatures[name] for name in simulator.shape.names]
        self._index = {signature: place for place, signature in enumerate(self._signatures)}
        if len(self._index) < len(self._signatures):
            message = f"dataflow '{dataflow.name}' has two equivalent tasks; leave one of them out"
            raise InputError("DUPLICATE_TASK", message)
        self._types = [tasks[name].type for name in simulator.shape.names]
        self._seen_step = 0
        self._seen_done, self._seen_sent = (np.zeros(simulator.shape.tasks) for _ in range(2))

    def observe(self) -> Observation:
        """What was measured since the last call, or since the beginning."""
        sim, row = self.simulator, self.row
        done = sim.finished[row] - self._seen_done
        sent = sim.sent[row] - self._seen_sent
        seconds = (sim.step - self._seen_step) * sim.setting.interval_s
        self._seen_done, self._seen_sent = sim.finished[row].copy(), sim.sent[row].copy()
        self._seen_step = sim.step
        dataflows = (str(sim.setting.dataflow.name),)
        placed = self._placed()
        tasks = tuple(self._task(place, done, sent, placed[place], dataflows) for place in range(sim.shape.tasks))
        late_s = sojourns(sim, row)
        sinks = tuple(
            SinkObservation(
                self._signatures[place],
                sim.shape.names[place],
                dataflows,
                round(done[place]),
                Sojourn(*(4 * (float(late_s[place]),))) if done[place] > 0 else None,
            )
            for place in sim.shape.outputs
        )
        fragments = tuple(self._fragment(place, done, seconds) for place in range(sim.shape.tasks))
        return Observation(sim.now_s, seconds, tasks, sinks, fragments, self._machines())

    def _placed(self) -> list[list[tuple[str, int]]]:
        fleet, row = self.simulator.fleet, self.row
        placed: list[list[tuple[str, int]]] = [[] for _ in self._signatures]
        count = int(fleet.slots[row])
        numbers = fleet.number[row]
        for slot, task in np.argwhere(fleet.placed[row, :count] > 0).tolist():
            placed[task].append((f"vm-{numbers[slot]}", int(fleet.placed[row, slot, task])))
        return placed

    def _task(
        self,
        place: int,
        done: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
        sent: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
        placed: list[tuple[str, int]],
        dataflows: tuple[str, ...],
    ) -> TaskObservation:
        shape, way = self.simulator.shape, int(self.simulator.active[self.row, place])
        cost = float(shape.cost_s[place, way])
        rows = round(done[place])
        profile = TaskProfile(rows, cost, cost, 0.0, 0, 0.0)
        return TaskObservation(
            self._signatures[place],
            shape.names[place],
            self._types[place],
            shape.alternates[place][way],
            dataflows,
            sum(cores for _, cores in placed),
            rows,
            round(sent[place]),
            profile=profile,
            rows_waiting=float(self.simulator.queue[self.row, place]),
            placed=tuple(placed),
        )

    def _fragment(
        self, place: int, done: np.ndarray[tuple[int, ...], np.dtype[np.float64]], seconds: float
    ) -> FragmentObservation:
        sim, row = self.simulator, self.row
        capacity = float(sim.last.capacity[row, place])
        cost = float(sim.shape.cost_s[place, sim.active[row, place]])
        busy = min(float(sim.last.done[row, place]) * cost / capacity, 1.0) if capacity > 0 else 0.0
        return FragmentObservation(
            str(sim.shape.names[place]),
            "simulated",
            (self._signatures[place],),
            sim.step,
            round(done[place]),
            round(float(sim.queue[row, place])),
            busy * seconds,
            0.0,
            0.0,
            busy * seconds,
            0.0,
        )

    def _machines(self) -> MachineObservations:
        sim, row, fleet = self.simulator, self.row, self.simulator.fleet
        slots = fleet.working(row, sim.now_s)
        speed = sim.speeds()[row] * fleet.power[row]
        cost = sim.shape.cost_of(sim.active[row])
        capacity = sim.last.capacity[row]
        used = np.minimum(sim.last.done[row] * cost / np.where(capacity > 0, capacity, 1.0), 1.0)
        kinds = [sim.setting.cloud.classes[kind] for kind in fleet.kind[row, slots].tolist()]
        busy = (fleet.placed[row, : int(fleet.slots[row])] @ used)[slots] / np.array([kind.cores for kind in kinds])
        is_ready = (fleet.ready[row, slots] <= sim.now_s).tolist()
        return MachineObservations(
            tuple(f"vm-{number}" for number in fleet.number[row, slots].tolist()),
            tuple(kind.name for kind in kinds),
            tuple(MachineState.READY if ready else MachineState.STARTING for ready in is_ready),
            tuple(kind.cores for kind in kinds),
            tuple(speed[slots].tolist()),
            tuple(busy.tolist()),
            tuple(fleet.acquired[row, slots].tolist()),
            tuple(at if ready else None for at, ready in zip(fleet.ready[row, slots].tolist(), is_ready, strict=True)),
            price_per_h=tuple(kind.price_per_h for kind in kinds),
        )

    def apply(self, actions: Sequence[Action]) -> None:
        """Do all of some actions or, if one cannot be done, none, and say why."""
        steps = ActionCheck(self.simulator, self.row, self._index).resolved(actions)
        sim, row = self.simulator, self.row
        new: dict[str, int] = {}
        for step in steps:
            match step:
                case SwitchAlternate(task, alternate):
                    place = self._index[task]
                    sim.switch(row, place, sim.shape.alternates[place].index(alternate))
                case AcquireMachine(vm_class, machine):
                    slot = int(sim.acquire(row, sim.setting.cloud.place(vm_class))[0])
                    if machine is not None:
                        new[machine] = slot
                case ReleaseMachine(machine):
                    sim.release(row, self._slot(machine, new))
                case AssignCores(pool, machine, cores):
                    sim.place(row, sim.columns.index(pool), self._slot(machine, new), cores)
        for action in actions:
            sim.note(row, action)

    def _slot(self, machine: str, new: dict[str, int]) -> int:
        if machine in new:
            return new[machine]
        slot = self.simulator.fleet.slot_of(self.row, machine, self.simulator.now_s)
        assert slot is not None
        return slot


@dataclass(slots=True)
class EachReplication:
    """A policy of its own for each replication, on a cluster of its own: the same policy that runs on Spark."""

    make: Callable[[], Policy]
    every: int | None = 1
    name: str = ""
    _loops: list[tuple[SimulatedCluster, Policy]] = field(default_factory=list)

    def begin(self, simulator: Simulator) -> None:
        rows = range(simulator.setting.replications)
        self._loops = [(SimulatedCluster(simulator, row), self.make()) for row in rows]
        self.name = self.name or self._loops[0][1].name
        self.decide(simulator)

    def decide(self, simulator: Simulator) -> None:
        del simulator
        for cluster, policy in self._loops:
            actions = policy.decide(cluster.observe())
            if actions:
                cluster.apply(actions)
