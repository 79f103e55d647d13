"""The window of a running engine: what policies see, made of an observation. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headgate.adaptation.actions import SetPartitions
from headgate.adaptation.policy import Capabilities, Terms
from headgate.adaptation.rows import stream_rows
from headgate.adaptation.window import MachineColumns, Window
from headgate.capacity.sharing import Sharing
from headgate.model.arrays import Floats, Ints, Shape
from headgate.model.capacity import CoreShare, FragmentLoad, Pool, StageLoad
from headgate.model.cluster.machine_observations import MachineRow, MachineState
from headgate.model.cluster.observation import FragmentObservation, Observation
from headgate.model.names import Signature
from headgate.model.stream import ByPredicate

__all__ = ["EpochGoal", "window_of"]

CORRECTION = (0.2, 10.0)
"""By how much a fragment may need more or less than its tasks did when each was run by itself."""


@dataclass(frozen=True, slots=True)
class EpochGoal:
    """Seconds of an engine's epochs."""

    trigger_s: float
    """From one to the next, while there is time."""

    longest_s: float
    """How long they may be (L) before a pool counts as full."""


def window_of(terms: Terms, capabilities: Capabilities, seen: Observation, epochs: EpochGoal) -> Window:
    """What policies see of an observation, which may be of several intervals together."""
    reader = _Reader(terms, seen)
    shape, sharing = reader.shape(), reader.sharing(capabilities, epochs)
    return Window(
        terms,
        capabilities,
        seen.ended,
        shape,
        reader.active(shape),
        reader.arriving(shape),
        reader.waiting(shape),
        _omega(seen),
        _machines(seen, terms, capabilities),
        sharing,
        _latencies(seen),
        seen,
    )


class _Reader:
    """Reads an observation in the names of the terms."""

    def __init__(self, terms: Terms, seen: Observation) -> None:
        self._terms, self._seen = terms, seen
        self._names: Mapping[Signature, str] = {signature: str(task) for task, signature in terms.signatures.items()}
        self._speed = seen.machines.mean_speed() or 1.0
        self._rows_in = {self._names[t.task]: t.rows_in for t in seen.tasks if t.task in self._names}
        self._rows_out = {self._names[t.task]: t.rows_out for t in seen.tasks if t.task in self._names}
        for sink in seen.sinks:
            if sink.task in self._names:
                self._rows_in[self._names[sink.task]] = sink.rows
        self._active = {self._names[t.task]: t.alternate for t in seen.tasks if t.task in self._names}
        self._members = self._grouped()

    def _grouped(self) -> dict[str, tuple[FragmentObservation | None, list[str]]]:
        """The tasks of each fragment; one that several run is the last one's, and one that none runs is by itself."""
        left = {str(task.id): None for task in self._terms.dataflow.tasks}
        members: dict[str, tuple[FragmentObservation | None, list[str]]] = {}
        for fragment in reversed(self._seen.fragments):
            mine = [self._names[task] for task in fragment.tasks if self._names.get(task) in left]
            for name in mine:
                left.pop(name, None)
            if mine:
                members[fragment.id] = (fragment, list(dict.fromkeys(mine)))
        inputs = {str(stream.target): str(stream.source) for stream in self._terms.dataflow.streams}
        for name in list(left):  # a sink has no fragment of its own: it is part of what feeds it
            home = next((tasks for _, tasks in members.values() if inputs.get(name) in tasks), None)
            if home is not None:
                home.append(name)
                left.pop(name)
        return members | {name: (None, [name]) for name in left}

    def shape(self) -> Shape:
        """The graph, with costs as fragments needed them and selectivities as they were measured."""
        factors = self._corrections()
        costs = {}
        for cost in self._seen.costs:
            name = self._names.get(cost.task)
            if name is not None:
                held_s = cost.cpu_s + cost.wait_s * self._speed
                out = self._selectivity(name, cost.alternate, cost.selectivity)
                costs[name, cost.alternate] = held_s * factors.get(name, 1.0), out
        for task in self._terms.dataflow.tasks:
            for way in task.alternates:
                known = self._selectivity(str(task.id), way.name, way.selectivity)
                costs.setdefault((str(task.id), way.name), (0.0, known))
        return Shape.of(
            self._terms.dataflow,
            costs,
            self._shares(),
            [tasks for _, tasks in self._members.values()],
            list(self._terms.owners.values()),
        )

    def _selectivity(self, name: str, alternate: str, declared: float | None) -> float:
        came, went = self._rows_in.get(name, 0), self._rows_out.get(name)
        is_active = self._active.get(name, alternate) == alternate
        if went is not None and came > 0 and (is_active or declared is None):
            return went / came
        return 1.0 if declared is None else declared

    def _shares(self) -> dict[tuple[str, str], float]:
        """Shares of streams with predicates."""
        flow = self._terms.dataflow
        some = {(str(each.source), str(each.target)) for each in flow.streams if isinstance(each.routing, ByPredicate)}
        rows = stream_rows(flow, self._rows_in, self._rows_out) if some else {}
        return {
            edge: min(rows[edge] / self._rows_out[edge[0]], 1.0)
            for edge in some
            if edge in rows and self._rows_out.get(edge[0], 0) > 0
        }

    def _corrections(self) -> dict[str, float]:
        """By task, what its fragment needed for rows over what tasks need by themselves (chi)."""
        costs = {
            self._names[each.task]: each.cpu_s + each.wait_s * self._speed
            for each in self._seen.costs
            if each.task in self._names and self._active.get(self._names[each.task], each.alternate) == each.alternate
        }
        factors: dict[str, float] = {}
        for fragment, tasks in self._members.values():
            expected = sum(self._rows_in.get(name, 0) * costs.get(name, 0.0) for name in tasks)
            if fragment is None or fragment.work_s_per_row is None or expected <= 0:
                continue
            work_s = fragment.work_s_per_row * fragment.rows_in
            started = min(fragment.batches * TASK_S * self._cores(), 0.5 * work_s)
            factor = (work_s - started) / expected
            factors |= dict.fromkeys(tasks, float(np.clip(factor, *CORRECTION)))
        return factors

    def _cores(self) -> int:
        return max(sum(row.cores for row in self._seen.machines if row.works), 1)

    def active(self, shape: Shape) -> Ints:
        """The place of the active alternate of each task."""
        places = [
            ways.index(self._active.get(str(name), ways[0])) if self._active.get(str(name), ways[0]) in ways else 0
            for name, ways in zip(shape.names, shape.alternates, strict=True)
        ]
        return np.array(places, dtype=np.int64)

    def arriving(self, shape: Shape) -> Floats:
        """Rows a second from outside; of a source that does not say what arrived, what was taken."""
        rates = np.zeros(shape.tasks)
        for source in self._seen.sources:
            if source.task in self._names:
                rows = source.rows_taken if source.rows_arrived is None else source.rows_arrived
                rates[shape.place(self._names[source.task])] = rows / self._seen.seconds
        return rates

    def waiting(self, shape: Shape) -> Floats:
        """Rows that wait before each fragment, at its first task."""
        waiting = np.zeros(shape.tasks)
        for fragment, tasks in self._members.values():
            if fragment is not None and fragment.rows_behind:
                waiting[min(shape.place(name) for name in tasks)] = fragment.rows_behind
        return waiting

    def sharing(self, capabilities: Capabilities, epochs: EpochGoal) -> Sharing:
        """Fragments in the one pool of the application, with what their epochs cost without rows."""
        name = capabilities.pools[0]
        loads = tuple(
            FragmentLoad(
                key,
                name,
                tuple(self._stages(fragment, tasks, capabilities)),
                fixed_s=_fixed_s(fragment),
                task_s=TASK_S if fragment is not None else 0.0,
                trigger_s=max(epochs.trigger_s, ON_ROWS * _fixed_s(fragment)) if fragment is not None else 0.0,
            )
            for key, (fragment, tasks) in self._members.items()
        )
        shares = tuple(
            CoreShare(row.name, row.cores, _speed(row, self._terms)) for row in self._seen.machines if row.works
        )
        return Sharing(loads, (Pool(name, shares, epochs.longest_s),))

    def _stages(
        self, fragment: FragmentObservation | None, tasks: Sequence[str], capabilities: Capabilities
    ) -> Iterator[StageLoad]:
        """What runs between two exchanges of rows: partitions can be set from the first task on that allows it."""
        seen = {self._names[task.task]: task for task in self._seen.tasks if task.task in self._names}
        mine = [seen[name] for name in tasks if name in seen]
        settable = [self._names[task.task] for task in mine if capabilities.accepts(SetPartitions(task.task, 1))]
        first = tasks.index(settable[0]) if settable else 0
        most = max((task.partitions or 0 for task in mine), default=0)
        measured = None if fragment is None else fragment.parts
        as_read = 1 if any(task.type in IN_ONE_PIECE for task in mine) else measured
        if first:
            # What is read in one piece stays so, also where what follows is cut.
            yield StageLoad(tuple(tasks[:first]), 1 if as_read == 1 else None)
        yield StageLoad(tuple(tasks[first:]), most or as_read)


IN_ONE_PIECE = ("replay", "read_socket")
"""Sources whose rows come in one partition."""

TASK_S = 0.005
"""Core-seconds of a partition without rows, where nothing better is known."""


ON_ROWS = 2.0
"""Epochs are at least so many times as long as what each takes in any case: admission sees to it."""


def _fixed_s(fragment: FragmentObservation | None) -> float:
    return 0.0 if fragment is None or fragment.fixed_s is None else fragment.fixed_s


def _speed(row: MachineRow, terms: Terms) -> float:
    if row.speed is not None:
        return row.speed
    named = [each.core_power for each in terms.cloud.classes if each.name == row.vm_class]
    return named[0] if named else 1.0


def _machines(seen: Observation, terms: Terms, capabilities: Capabilities) -> MachineColumns:
    """The machines that work or start."""
    rows = [row for row in seen.machines if row.works or (row.state in _COMING and not row.is_gone)]
    classes, billing = terms.cloud.classes, terms.cloud.billing
    kinds, left, starts = [], [], []
    for row in rows:
        place = next((place for place, each in enumerate(classes) if each.name == row.vm_class), None)
        nearest = min(range(len(classes)), key=lambda each: abs(classes[each].cores - row.cores))
        kinds.append(nearest if place is None else place)
        held_s = 0.0 if row.asked is None else max(seen.ended - row.asked, 0.0)
        left.append(max(billing.paid_until_s(held_s) - held_s, 0.0))
        starts.append(0.0 if row.works else max(classes[kinds[-1]].boot_s - held_s, 1.0))
    return MachineColumns(
        tuple(row.name for row in rows),
        np.array(kinds, dtype=np.int64),
        np.array([_speed(row, terms) for row in rows], dtype=np.float64),
        np.array(left, dtype=np.float64),
        np.array(starts, dtype=np.float64),
        np.array([[row.cores] for row in rows], dtype=np.int64).reshape(len(rows), len(capabilities.pools)),
    )


_COMING = (MachineState.STARTING, MachineState.READY)


def _omega(seen: Observation) -> float:
    """Relative throughput: as it was evaluated, or what was taken over what was there."""
    if seen.together is not None and seen.together.omega is not None:
        return seen.together.omega
    known = [each for each in seen.sources if each.rows_arrived is not None]
    taken = sum(each.rows_taken for each in known)
    there = sum(max(each.rows_taken, each.rows_arrived or 0.0) for each in known)
    return taken / there if there > 0 else 1.0


def _latencies(seen: Observation) -> dict[str, float]:
    """The mean sojourn of each dataflow over the rows of its sinks."""
    rows: dict[str, float] = {}
    seconds: dict[str, float] = {}
    for sink in seen.sinks:
        for name in sink.dataflows if sink.sojourn is not None and sink.rows else ():
            assert sink.sojourn is not None
            rows[name] = rows.get(name, 0.0) + sink.rows
            seconds[name] = seconds.get(name, 0.0) + sink.rows * sink.sojourn.mean_s
    return {name: seconds[name] / rows[name] for name in rows}
