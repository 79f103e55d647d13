"""A Spark cluster on this machine: start it, add and release machines, stop it."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from headgate.errors import BadValue, HeadgateError, InputError
from headgate.machines.local import CLASSES, LocalProvider, class_named
from headgate.machines.provider import AcquiredMachine, MachineState, machine_class
from headgate.machines.standalone import last_words
from headgate.model.cluster.vm_class import VmClass
from headgate.model.table import Table, TableColumn

__all__ = ["acquire", "cluster_facts", "cluster_table", "release", "start", "stop"]

MOST = 200
"""Machines that one command starts at most: a typing error must not bring the machine down."""

COLUMNS = (
    TableColumn("name", "machine"),
    TableColumn("state", "state"),
    TableColumn("cores", "cores"),
    TableColumn("memory_mib", "memory", "MiB", ".0f"),
    TableColumn("core_speed", "speed", form="g"),
    TableColumn("startup_s", "start-up", "s", ".1f"),
    TableColumn("cost", "cost", form=".5f"),
)


def start(folder: Path, port: int, machines: Sequence[str], classes: Sequence[str]) -> None:
    """Start a master and machines, all of them or none."""
    wanted = _counted(machines)
    own = [_vm_class(text) for text in classes]
    for name, _ in wanted:
        class_named(name, (*CLASSES, *own))
    provider = LocalProvider.up(folder, port=port, classes=own)
    try:
        _acquire(provider, wanted)
    except BaseException:
        provider.down()
        raise


def acquire(folder: Path, machines: Sequence[str], classes: Sequence[str]) -> None:
    """Add machines; Spark starts executors on them at once."""
    wanted = _counted(machines)
    provider = LocalProvider(folder)
    for text in classes:
        provider.define(_vm_class(text))
    _acquire(provider, wanted)


def release(folder: Path, machines: Sequence[str]) -> None:
    """Stop machines after their current work."""
    provider = LocalProvider(folder)
    for name in machines:
        provider.find(name)
    for name in machines:
        provider.release(name)
    provider.wait_until_settled()


def stop(folder: Path) -> tuple[int, tuple[str, ...]]:
    """Stop all machines and the master; answers how many machines, and what had already ended."""
    stopped = LocalProvider(folder).down()
    return stopped.machines - len([name for name in stopped.gone_before if name != "master"]), tuple(
        stopped.gone_before
    )


def cluster_facts(folder: Path, everything: bool = False) -> dict[str, Any]:
    """The master and the machines, with those that are gone if ``everything`` is asked for."""
    provider, now = LocalProvider(folder), time.time()
    machines = provider.list(gone=everything)
    up = provider.is_up()
    head = {"up": up, "master": provider.master if up else None, "web": provider.web if up else None}
    return {**head, "folder": str(provider.folder), "machines": [_facts(machine, now) for machine in machines]}


def cluster_table(facts: dict[str, Any]) -> Table:
    """The machines, and how to run on them."""
    rows = tuple(
        {**machine, "memory_mib": machine["memory_bytes"] / 2**20, "cost": Decimal(machine["cost"])}
        for machine in facts["machines"]
    )
    folder, here = Path(facts["folder"]), Path.cwd()
    shown = folder.relative_to(here) if folder.is_relative_to(here) else folder
    cores = sum(machine["cores"] for machine in facts["machines"] if machine["state"] == MachineState.READY.value)
    up = f"{facts['master']}: {cores} cores ready. Run on it with: headgate run ... --cluster {shown}"
    return Table("Machines", COLUMNS, rows, (up if facts["up"] else f"No master runs in {shown}.",))


def _acquire(provider: LocalProvider, wanted: Sequence[tuple[str, int]]) -> None:
    for name, _ in wanted:
        provider.find_class(name)
    names = [provider.acquire(name).name for name, count in wanted for _ in range(count)]
    provider.wait_until_settled()
    machines = {machine.name: machine for machine in provider.list(gone=True)}
    for name in names:
        if machines[name].state is not MachineState.READY:
            log = provider.log(name)
            message = f"machine {name} did not start: {last_words(log) or 'it printed nothing'}; its log is {log}"
            raise HeadgateError("MACHINE_DID_NOT_START", message)


def _facts(machine: AcquiredMachine, now: float) -> dict[str, Any]:
    return {
        "name": machine.name,
        "state": machine.state.value,
        "vm_class": machine.vm_class.name,
        "host": machine.host,
        "cores": machine.vm_class.cores,
        "memory_bytes": machine.vm_class.memory_bytes,
        "core_speed": machine.vm_class.core_power,
        "price_per_h": str(machine.vm_class.price_per_h),
        "acquired_at": machine.acquired_at,
        "startup_s": None if machine.startup_s is None else round(machine.startup_s, 3),
        "gone_at": machine.gone_at,
        "cost": str(machine.cost(now)),
    }


def _counted(texts: Sequence[str]) -> list[tuple[str, int]]:
    counts = []
    for text in texts:
        match = re.fullmatch(r"([^\s:=,]+)(?::(\d{1,3}))?", text)
        if match is None or int(match[2] or 1) < 1:
            raise InputError("BAD_MACHINES", f"{text[:60]!r} is not a VM class with a number, such as small or small:3")
        counts.append((match[1], int(match[2] or 1)))
    if sum(count for _, count in counts) > MOST:
        raise InputError("BAD_MACHINES", f"these are more than {MOST} machines; this is one machine")
    return counts


def _vm_class(text: str) -> VmClass:
    match = re.fullmatch(r"([^\s:=,]+)=(\d{1,4}),(\d{1,6})([mg]),(\d+(?:\.\d+)?)(?:,(\d+(?:\.\d+)?))?", text)
    if match is None:
        message = f"--class {text[:60]!r} is not NAME=CORES,MEMORY,PRICE or NAME=CORES,MEMORY,PRICE,SPEED"
        raise InputError("BAD_VM_CLASS", f"{message}, such as old=2,2g,0.05,0.5")
    unit = {"m": 2**20, "g": 2**30}[match[4]]
    try:
        return machine_class(match[1], int(match[2]), int(match[3]) * unit, Decimal(match[5]), float(match[6] or 1))
    except BadValue as error:
        raise InputError("BAD_VM_CLASS", f"--class {text[:60]!r}: {error}; expected {error.expected}") from None
