"""The local provider: a Spark standalone cluster on this machine's loopback, a worker process for each machine.

Its folder::

    cluster.json          the master, and the available VM classes
    acquisitions.jsonl    every machine there ever was
    master.log
    machines/NAME/        worker.log, and what its executors print (work/)

Machines have addresses of their own (127.0.1.1 and so on), so Spark takes them for different hosts. They outlive the
process that has started them.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from headgate.errors import HeadgateError, InputError, os_reason, unknown
from headgate.machines.acquisitions import Acquisitions, as_dict, vm_class_of
from headgate.machines.processes import Process, end, oldest, start
from headgate.machines.provider import AcquiredMachine, MachineState, machine_class
from headgate.machines.standalone import (
    MIB,
    free_port,
    is_free,
    last_words,
    registered_hosts,
    start_master,
    start_worker,
)
from headgate.model.cluster.vm_class import VmClass
from headgate.store.files import write_json

__all__ = ["CLASSES", "LocalProvider", "Stopped", "class_named"]

CLASSES = (
    machine_class("small", 1, 1024 * MIB, Decimal("0.05")),
    machine_class("medium", 2, 2048 * MIB, Decimal("0.10")),
    machine_class("large", 4, 4096 * MIB, Decimal("0.20")),
    machine_class("slow", 2, 2048 * MIB, Decimal("0.06"), core_power=0.5),
)
"""VM classes that every local cluster has."""

HOST = "127.0.0.1"
MASTER = "master"
POLL_S = 0.2
DRAINED_S = 60.0
"""A machine that is still at work so long after it was released is stopped all the same."""

STARTED_S = 60.0


@dataclass(frozen=True, slots=True)
class Stopped:
    """What was stopped when a cluster was taken down."""

    machines: int
    gone_before: tuple[str, ...]
    """What had ended by itself."""


class LocalProvider:
    """Acquires and releases machines of a cluster that is up."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder.absolute()
        self._clock = clock
        self._record = Acquisitions(self.folder / "acquisitions.jsonl")
        self._watcher: threading.Thread | None = None
        self._watching = threading.Lock()

    # the cluster

    @classmethod
    def up(
        cls, folder: Path, *, port: int = 0, classes: Sequence[VmClass] = (), usual: Sequence[VmClass] = CLASSES
    ) -> LocalProvider:
        """Start a cluster without machines; with port 0 its master takes any that is free."""
        made = cls(folder)
        known = {vm_class.name: vm_class for vm_class in (*usual, *classes)}
        for vm_class in known.values():
            _check_class(vm_class)
        _make(made.folder)
        with made._locked():
            made._refuse_if_up()
            if port and not is_free(HOST, port):
                message = f"port {port} of {HOST} is taken; give another with --port, or 0 for any that is free"
                raise InputError("PORT_TAKEN", message)
            port = port or free_port(HOST)
            web_port = free_port(HOST)
            log = made.folder / "master.log"
            log.unlink(missing_ok=True)
            process = start_master(HOST, port, web_port, made._mark(MASTER), log)
            stored = {
                "master": f"spark://{HOST}:{port}",
                "web": f"http://{HOST}:{web_port}",
                "process": process.as_dict(),
                "classes": [as_dict(vm_class) for vm_class in known.values()],
            }
            write_json(made.folder / "cluster.json", stored)
            try:
                made._wait_for_master(process, log)
            except BaseException:
                end(made._mark(MASTER))
                (made.folder / "cluster.json").unlink()
                raise
        return made

    def _refuse_if_up(self) -> None:
        stored = self._stored()
        if stored is None:
            return
        if Process(**stored["process"]).is_alive():
            message = f"the cluster in {self.folder} is up already, at {stored['master']}"
            raise InputError("CLUSTER_UP", f"{message}; 'headgate cluster acquire' adds machines to it")
        message = (
            f"the cluster in {self.folder} is half gone: its master (process {stored['process']['pid']}) has ended"
        )
        raise InputError("CLUSTER_HALF_GONE", f"{message}; run 'headgate cluster down' first")

    def _wait_for_master(self, process: Process, log: Path) -> None:
        until = time.monotonic() + STARTED_S
        while registered_hosts(self.web) is None:
            if not process.is_alive() or time.monotonic() > until:
                message = f"the cluster's master did not start: {last_words(log)}; all that it said is in {log}"
                raise HeadgateError("MASTER_DID_NOT_START", message)
            time.sleep(0.05)

    def down(self) -> Stopped:
        """Stop all machines and the master, whatever is left of them; what was recorded and logged stays."""
        with self._locked():
            stored = self._stored()
            if stored is None:
                raise InputError("NO_CLUSTER", self._no_cluster())
            gone = [] if Process(**stored["process"]).is_alive() else [MASTER]
            machines = [machine for machine in self._record.machines().values() if not machine.is_gone]
            processes = self._record.processes()
            for machine in machines:
                alive = machine.name in processes and processes[machine.name].is_alive()
                gone += [] if alive else [machine.name]
                self._stop(machine, MachineState.RELEASED if alive else MachineState.LOST)
            end(self._mark(MASTER))
            (self.folder / "cluster.json").unlink()
        return Stopped(len(machines), tuple(gone))

    @property
    def master(self) -> str:
        """The URL for ``--master``."""
        return str(self._checked()["master"])

    @property
    def web(self) -> str:
        """Where the master shows itself to browsers."""
        return str(self._checked()["web"])

    def is_up(self) -> bool:
        """Whether the master runs."""
        stored = self._stored()
        return stored is not None and Process(**stored["process"]).is_alive()

    # machines

    def classes(self) -> tuple[VmClass, ...]:
        return tuple(vm_class_of(stored) for stored in self._checked()["classes"])

    def define(self, vm_class: VmClass) -> None:
        """Add or replace a VM class."""
        _check_class(vm_class)
        with self._locked():
            stored = self._checked()
            kept = [each for each in stored["classes"] if each["name"] != vm_class.name]
            write_json(self.folder / "cluster.json", {**stored, "classes": [*kept, as_dict(vm_class)]})

    def limit(self, machines: int | None) -> None:
        """Give no more machines than that at a time, as clouds do that have a quota; none lifts the limit."""
        with self._locked():
            write_json(self.folder / "cluster.json", {**self._checked(), "machines_max": machines})

    def _refuse_above_limit(self) -> None:
        most = self._checked().get("machines_max")
        if most is not None and sum(not machine.is_gone for machine in self._record.machines().values()) >= most:
            raise InputError("NO_CAPACITY", f"the cluster in {self.folder} has no more machines: {most} are its limit")

    def acquire(self, vm_class: str, key: str | None = None) -> AcquiredMachine:
        with self._locked():
            known = None if key is None else self._record.of_key(key)
            if known is not None:
                return known
            chosen = self.find_class(vm_class)
            self._refuse_above_limit()
            if not self.is_up():
                message = f"the master of the cluster in {self.folder} has ended"
                raise InputError("CLUSTER_HALF_GONE", f"{message}; run 'headgate cluster down', then 'up' again")
            number = len(self._record.machines())
            name = f"{chosen.name}-{number + 1}"
            host = f"127.0.{1 + number // 250}.{1 + number % 250}"
            self._record.acquired(name, chosen, host, self._clock(), key)
            process = start_worker(chosen, host, self.master, self._home(name), self._mark(name))
            self._record.started(name, process, self._clock())
            if chosen.core_power < 1:
                self._slow_down(name, chosen)
            machine = self._record.machines()[name]
        self._watch()
        return machine

    def release(self, machine: str) -> None:
        with self._locked():
            acquired = self.find(machine)
            if acquired.state is not MachineState.DRAINING:
                # Spark's worker takes this signal for: end what you are doing, and take nothing new.
                self._record.processes()[acquired.name].send(signal.SIGPWR)
                self._record.became(acquired.name, MachineState.DRAINING, self._clock())
        self._watch()

    def list(self, *, gone: bool = False) -> tuple[AcquiredMachine, ...]:
        with self._locked():
            self._look()
            machines = self._record.machines().values()
        return tuple(machine for machine in machines if gone or not machine.is_gone)

    def wait_until_settled(self, patience_s: float = 90.0) -> tuple[AcquiredMachine, ...]:
        """Wait until no machine is starting or draining any more; returns those that there are."""
        until = time.monotonic() + patience_s
        while True:
            machines = self.list()
            if not any(machine.state in _UNDER_WAY for machine in machines) or time.monotonic() > until:
                return machines
            time.sleep(POLL_S)

    def log(self, machine: str) -> Path:
        """What a machine's worker prints."""
        return self._home(machine) / "worker.log"

    def process(self, machine: str) -> Process | None:
        """The worker process of a machine."""
        return self._record.processes().get(machine)

    def _look(self) -> None:
        """Check the machines, and record changes."""
        processes = self._record.processes()
        registered: set[str] | None = None
        for machine in self._record.machines().values():
            if machine.is_gone:
                continue
            process = processes.get(machine.name) or self._adopted(machine)
            draining = machine.state is MachineState.DRAINING
            if process is None or not process.is_alive():
                self._stop(machine, MachineState.RELEASED if draining else MachineState.LOST)
            elif draining and (not process.has_children() or self._drains_too_long(machine)):
                self._stop(machine, MachineState.RELEASED)
            elif machine.state is MachineState.STARTING:
                registered = registered if registered is not None else (registered_hosts(self.web) or set())
                if machine.host in registered:
                    self._record.became(machine.name, MachineState.READY, self._clock())

    def _adopted(self, machine: AcquiredMachine) -> Process | None:
        """The process of a machine whose starter was killed before it could record it."""
        process = oldest(self._mark(machine.name))
        if process is not None:
            self._record.started(machine.name, process, self._clock())
        return process

    def _drains_too_long(self, machine: AcquiredMachine) -> bool:
        since = self._record.changed_at(machine.name)
        return self._clock() - since > DRAINED_S

    def _stop(self, machine: AcquiredMachine, state: MachineState) -> None:
        end(self._mark(f"{machine.name} slow-down"))  # or it would stop what is to end
        end(self._mark(machine.name))
        shutil.rmtree(self._home(machine.name) / "local", ignore_errors=True)
        self._record.became(machine.name, state, self._clock())

    def _slow_down(self, name: str, kind: VmClass) -> None:
        given = [self._mark(name), str(kind.core_power), str(kind.cores)]
        command = [sys.executable, "-m", "headgate.machines.slow_down", *given]
        start(command, self._mark(f"{name} slow-down"), self._home(name) / "slow-down.log", os.environ)

    def _watch(self) -> None:
        """Have a thread look until nothing starts or drains: when a machine was ready is recorded as it happens."""
        with self._watching:
            if self._watcher is None or not self._watcher.is_alive():
                self._watcher = threading.Thread(target=self._watch_on, name="headgate-machines", daemon=True)
                self._watcher.start()

    def _watch_on(self) -> None:
        while self._stored() is not None and any(machine.state in _UNDER_WAY for machine in self.list()):
            time.sleep(POLL_S)

    def find_class(self, name: str) -> VmClass:
        """A VM class by its name."""
        return class_named(name, self.classes())

    def find(self, name: str) -> AcquiredMachine:
        """An existing machine, by name."""
        self._checked()
        known = {machine.name: machine for machine in self._record.machines().values() if not machine.is_gone}
        if name in known:
            return known[name]
        raise unknown("UNKNOWN_MACHINE", f"no machine '{name[:60]}' runs in {self.folder}", name, known)

    # the folder

    def _mark(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def _home(self, name: str) -> Path:
        return self.folder / "machines" / name

    def _stored(self) -> Any:
        try:
            return json.loads((self.folder / "cluster.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None

    def _checked(self) -> Any:
        stored = self._stored()
        if stored is None:
            raise InputError("NO_CLUSTER", self._no_cluster())
        return stored

    def _no_cluster(self) -> str:
        return f"no cluster is up in {self.folder}; start one with 'headgate cluster up', or name its folder with --dir"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One at a time, among processes and threads."""
        if not self.folder.is_dir():
            raise InputError("NO_CLUSTER", self._no_cluster())
        with (self.folder / "lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


_UNDER_WAY = (MachineState.STARTING, MachineState.DRAINING)


def class_named(name: str, classes: Sequence[VmClass]) -> VmClass:
    """A VM class among some, by its name."""
    known = {vm_class.name: vm_class for vm_class in classes}
    if name in known:
        return known[name]
    raise unknown("UNKNOWN_VM_CLASS", f"no VM class '{name[:60]}' is known", name, known)


def _check_class(vm_class: VmClass) -> None:
    if vm_class.core_power > 1:
        message = f"VM class '{vm_class.name}' has core speed {vm_class.core_power:g}"
        raise InputError("CANNOT_IMITATE", f"{message}; this machine can imitate slower cores than its own, at most 1")
    if vm_class.memory_bytes < 512 * MIB:
        message = f"VM class '{vm_class.name}' has {vm_class.memory_bytes / MIB:g} MiB of memory"
        raise InputError("CANNOT_IMITATE", f"{message}; Spark's executors need 512 MiB at least")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "lock").touch()
    except OSError as error:
        raise InputError("CANNOT_WRITE", f"cannot keep a cluster in {folder}: {os_reason(error)}") from None
