"""How much there is to run on: machines of a provider, and Spark's executors on them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.errors import InputError, unknown
from headgate.machines.provider import AcquiredMachine, Provider
from headgate.runtime.spark_internals.executor_checks import check_executors
from headgate.runtime.spark_internals.executors import Executors
from headgate.runtime.spark_internals.protocol import Places

__all__ = ["Scaling", "checked_executors"]


def checked_executors(spark: SparkSession, state: Path) -> Executors:
    """Spark's executors; raises :class:`InputError` unless each can run Headgate and sees the state directory."""
    executors = Executors(spark)
    if not executors.local:
        check_executors(executors, state)
    return executors


class Scaling:
    """Changes how much there is to run on, while dataflows run."""

    def __init__(self, executors: Executors, provider: Provider | None) -> None:
        self.executors = executors
        self.provider = provider
        self.longest_epoch_s: float | None = None
        """How long epochs may take while somebody decides what there is: changes take effect between them."""

        self._lock = threading.Lock()

    def scale(self, count: int) -> None:
        """Have so many executors: more are asked for; those that are too many end their tasks and leave."""
        with self._lock:
            self.executors.request(count)

    def machines(self) -> Sequence[AcquiredMachine]:
        """The machines that there ever were, in the order in which they were acquired."""
        return () if self.provider is None else self.provider.list(gone=True)

    def executors_of(self, machines: Sequence[str]) -> Places:
        """The executors on each of some machines; without a provider, on hosts of these names."""
        hosts = {machine.name: machine.host for machine in self.machines() if not machine.is_gone}
        there = self.executors.list()
        return [[each for each in there if each.host == hosts.get(name, name)] for name in machines]

    def checked_places(self, machines: Sequence[str] | None) -> tuple[str, ...] | None:
        """Names of machines, or without a provider of hosts; raises :class:`InputError` unless these are there."""
        if machines is None:
            return None
        hosts = [executor.host for executor in self.executors.list()]
        known = hosts if self.provider is None else [machine.name for machine in self.provider.list()]
        _check_names(machines, known, "machine", "UNKNOWN_MACHINE")
        return tuple(machines)

    def check(self, acquired: Sequence[str], released: Sequence[str]) -> None:
        """Raise :class:`InputError` unless machines of these classes can be had and these ones be released."""
        if not acquired and not released:
            return
        provider = self._provider()
        _check_names(acquired, [vm_class.name for vm_class in provider.classes()], "VM class", "UNKNOWN_VM_CLASS")
        _check_names(released, [machine.name for machine in provider.list()], "machine", "UNKNOWN_MACHINE")

    def acquire(self, vm_class: str, key: str | None = None) -> AcquiredMachine:
        """Ask the provider for a machine; executors come onto it when it is ready."""
        with self._lock:
            provider = self._provider()
            known = {machine.name for machine in provider.list(gone=True)}
            machine = provider.acquire(vm_class, key)
            if machine.name not in known:
                self.executors.one_more()
            return machine

    def release(self, machine: str) -> None:
        """Give a machine back to the provider, after what it is doing."""
        with self._lock:
            self._provider().release(machine)
            self.executors.one_less()

    def _provider(self) -> Provider:
        if self.provider is None:
            message = "this engine cannot acquire machines; run it with --cluster, after 'headgate cluster up'"
            raise InputError("NO_PROVIDER", message)
        return self.provider


def _check_names(names: Sequence[str], known: Sequence[str], what: str, condition: str) -> None:
    for name in names:
        if name not in known:
            raise unknown(condition, f"no {what} '{name[:60]}' is known", name, known)
