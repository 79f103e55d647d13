"""Checks a list of actions before any of them is applied: all are possible, or an error says which is not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from headgate.adaptation.actions import (
    AcquireMachine,
    Action,
    AssignCores,
    ReleaseMachine,
    SetPartitions,
    SwitchAlternate,
    kind_of,
)
from headgate.errors import BadValue, InputError
from headgate.model.names import Signature
from headgate.simulation.simulator import Simulator

__all__ = ["ActionCheck"]


class ActionCheck:
    """Tracks free cores and placements of one replication while actions are checked."""

    def __init__(self, simulator: Simulator, row: int, index: Mapping[Signature, int]) -> None:
        self._simulator, self._index = simulator, index
        fleet = simulator.fleet
        names = {slot: f"vm-{fleet.number[row, slot]}" for slot in fleet.working(row, simulator.now_s).tolist()}
        spare = fleet.free_cores(row)
        self._free = {name: int(spare[slot]) for slot, name in names.items()}
        self._has: dict[str, dict[int, int]] = defaultdict(dict)
        for slot, place in np.argwhere(fleet.placed[row] > 0).tolist():
            self._has[names[slot]][place] = int(fleet.placed[row, slot, place])
        self._steps: list[Action] = []

    def resolved(self, actions: Sequence[Action]) -> list[Action]:
        """The checked actions, with names for new machines and placements for numbers of cores."""
        for action in actions:
            match action:
                case AcquireMachine(vm_class, machine):
                    self._acquire(vm_class, machine)
                case ReleaseMachine(machine):
                    self._release(machine)
                case SwitchAlternate(task, alternate):
                    self._switch(task, alternate)
                case AssignCores(pool, machine, cores):
                    self._place(pool, machine, cores)
                case SetPartitions(task, partitions):
                    self._spread(task, partitions)
                case _:
                    raise _refused(f"a simulation does not know {kind_of(action)}")
        return self._steps

    def _acquire(self, vm_class: str, machine: str | None) -> None:
        try:
            kind = self._simulator.setting.cloud.vm_class(vm_class)
        except BadValue as error:
            raise _refused(str(error)) from None
        if machine in self._free:
            raise _refused(f"there is a machine '{machine}' already")
        name = machine or f"unnamed {len(self._steps)}"
        self._free[name] = kind.cores
        self._steps.append(AcquireMachine(vm_class, name))

    def _release(self, machine: str) -> None:
        self._know(machine)
        del self._free[machine]
        self._has.pop(machine, None)
        self._steps.append(ReleaseMachine(machine))

    def _switch(self, task: Signature, alternate: str) -> None:
        place = self._place_of(task)
        there = self._simulator.shape.alternates[place]
        if alternate not in there:
            message = f"task '{self._name(place)}' has no alternate '{alternate[:60]}'"
            raise _refused(f"{message}; choose one of {', '.join(there)}")
        self._steps.append(SwitchAlternate(task, alternate))

    def _place(self, pool: str, machine: str, cores: int) -> None:
        if pool not in self._simulator.columns:
            raise _refused(f"there is no pool '{pool[:60]}'")
        place = self._simulator.columns.index(pool)
        self._know(machine)
        more = cores - self._has[machine].get(place, 0)
        if cores < 0 or more > self._free[machine]:
            message = f"task '{self._name(place)}' needs {cores} cores on machine '{machine}'"
            raise _refused(f"{message}, which has {self._free[machine] + cores - more} free")
        self._give(place, machine, more)

    def _spread(self, task: Signature, partitions: int | None) -> None:
        """Add cores where the task has most, remove them where it has fewest."""
        place = self._place_of(task)
        if partitions is None or partitions < 0:
            raise _refused(f"task '{self._name(place)}' has cores of its own in a simulation; say how many")
        more = partitions - sum(placed.get(place, 0) for placed in self._has.values())
        free = sum(self._free.values())
        if more > free:
            message = f"task '{self._name(place)}' needs {partitions} cores, {more} more than now"
            raise _refused(f"{message}, and {free} are free")
        sign = -1 if more > 0 else 1
        for machine in sorted(self._free, key=lambda each: sign * self._has[each].get(place, 0)):
            mine = self._has[machine].get(place, 0)
            step = min(more, self._free[machine]) if more > 0 else max(more, -mine)
            if step:
                self._give(place, machine, step)
                more -= step

    def _give(self, place: int, machine: str, more: int) -> None:
        self._free[machine] -= more
        cores = self._has[machine].get(place, 0) + more
        self._has[machine][place] = cores
        self._steps.append(AssignCores(self._simulator.columns[place], machine, cores))

    def _know(self, machine: str) -> None:
        if machine not in self._free:
            raise _refused(f"there is no machine '{machine[:60]}'")

    def _place_of(self, task: Signature) -> int:
        if task not in self._index:
            raise _refused(f"there is no task '{task[:60]}'")
        return self._index[task]

    def _name(self, place: int) -> str:
        return str(self._simulator.shape.names[place])


def _refused(why: str) -> InputError:
    return InputError("ACTION_REFUSED", f"rejected: {why}. No action was applied")
