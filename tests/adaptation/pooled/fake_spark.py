"""A cluster that accepts what Spark does and nothing else, by its own rules; it does all actions or none."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.adaptation.actions import AcquireMachine, Action, ReleaseMachine, SetPartitions, SwitchAlternate
from headgate.adaptation.window import Window


class Refused(Exception):
    """An action that is not possible, and why."""


class FakeSpark:
    """What is there when a window ends."""

    def __init__(self, seen: Window) -> None:
        self.seen = seen
        pools = [pool.name for pool in seen.sharing.pools] if seen.sharing else []
        self.home = {
            name: pools[int(cores.argmax())]
            for name, cores in zip(seen.machines.names, seen.machines.cores, strict=True)
        }
        self.pools = pools
        self.alternates = {
            seen.terms.signatures[task]: list(ways)
            for task, ways in zip(seen.shape.names, seen.shape.alternates, strict=True)
        }

    def apply(self, actions: Sequence[Action]) -> None:
        released: list[str] = []
        acquired: list[str] = []
        for action in actions:
            match action:
                case SwitchAlternate(task, alternate):
                    self._allowed("switch_alternate")
                    if alternate not in self.alternates.get(task, []):
                        raise Refused(f"no alternate {alternate} of {task}")
                    if self.seen.capabilities.switchable is not None and task not in self.seen.capabilities.switchable:
                        raise Refused(f"{task} cannot be switched")
                case SetPartitions(task, partitions):
                    self._allowed("set_partitions")
                    if task not in (self.seen.capabilities.resizable or ()) or not partitions:
                        raise Refused(f"{task} cannot have {partitions} partitions")
                case AcquireMachine(vm_class, None, pool):
                    self._allowed("acquire_machine")
                    if vm_class not in [each.name for each in self.seen.terms.cloud.classes]:
                        raise Refused(f"no class {vm_class}")
                    if pool not in self.pools and not (pool is None and len(self.pools) == 1):
                        raise Refused(f"no pool {pool}")
                    acquired.append(pool or self.pools[0])
                case ReleaseMachine(machine):
                    self._allowed("release_machine")
                    if machine not in self.home or machine in released:
                        raise Refused(f"no machine {machine}")
                    released.append(machine)
                case _:
                    raise Refused(f"{action} is nothing that Spark does")
        left = [*acquired, *(pool for name, pool in self.home.items() if name not in released)]
        for pool in {self.home[name] for name in released}:
            if pool not in left:
                raise Refused(f"pool {pool} would have no machine")

    def _allowed(self, kind: str) -> None:
        if kind not in self.seen.capabilities.kinds:
            raise Refused(f"{kind} is not possible here")
