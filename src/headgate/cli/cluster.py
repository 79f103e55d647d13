"""``headgate cluster``: a Spark cluster on this machine, of real worker processes."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli.output import print_json, sentence_to_stderr
from headgate.errors import BadValue, HeadgateError, InputError
from headgate.machines.local import CLASSES, LocalProvider, class_named
from headgate.machines.provider import AcquiredMachine, MachineState, machine_class
from headgate.machines.standalone import last_words
from headgate.model.cluster.vm_class import VmClass

__all__ = ["cluster"]

FOLDER = Path(".headgate-cluster")
MOST = 200
"""Machines that one command starts at most: a slip must not bring the machine down."""

cluster = typer.Typer(
    name="cluster",
    no_args_is_help=True,
    help="Start and stop a Spark cluster on this machine: a real worker process for each machine of a VM class.",
    rich_markup_mode="rich",
)

Folder = Annotated[Path, typer.Option("--dir", metavar="DIR", help="Where the cluster is kept, with its logs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")]
Classes = Annotated[
    list[str] | None,
    typer.Option("--class", metavar="NAME=CORES,MEMORY,PRICE[,SPEED]", help="A VM class of your own."),
]


@cluster.command()
def up(
    machines: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CLASS[:N]]...", help="Machines to start with; small:3 if left out."),
    ] = None,
    folder: Folder = FOLDER,
    port: Annotated[int, typer.Option(help="The master's port; 0 takes any that is free.", min=0, max=65535)] = 7077,
    classes: Classes = None,
    as_json: AsJson = False,
) -> None:
    """Start a master and some machines; they run on when the command has ended.

    Example: [bold]headgate cluster up medium:3 --class "old=2,2g,0.05,0.5"[/bold]
    """
    wanted = _counted(machines or ["small:3"])
    own = [_vm_class(text) for text in classes or []]
    for name, _ in wanted:
        class_named(name, (*CLASSES, *own))
    provider = LocalProvider.up(folder, port=port, classes=own)
    typer.echo(f"master at {provider.master} (for browsers at {provider.web})", err=True)
    try:
        _acquire(provider, wanted)
    except BaseException:
        provider.down()
        raise
    _tell(provider, as_json)


@cluster.command()
def acquire(
    machines: Annotated[list[str], typer.Argument(metavar="CLASS[:N]...", help="Machines to add.")],
    folder: Folder = FOLDER,
    classes: Classes = None,
    as_json: AsJson = False,
) -> None:
    """Add machines; Spark puts executors onto them at once.

    Example: [bold]headgate cluster acquire medium:2[/bold]
    """
    wanted = _counted(machines)
    provider = LocalProvider(folder)
    for text in classes or []:
        provider.define(_vm_class(text))
    _acquire(provider, wanted)
    _tell(provider, as_json)


@cluster.command()
def release(
    machines: Annotated[list[str], typer.Argument(metavar="MACHINE...", help="Names as 'list' shows them.")],
    folder: Folder = FOLDER,
    as_json: AsJson = False,
) -> None:
    """Let machines end what they are doing, then stop them.

    Example: [bold]headgate cluster release small-2[/bold]
    """
    provider = LocalProvider(folder)
    for name in machines:
        provider.find(name)
    for name in machines:
        provider.release(name)
    provider.wait_until_settled()
    _tell(provider, as_json)


@cluster.command("list")
def list_(
    folder: Folder = FOLDER,
    everything: Annotated[bool, typer.Option("--all", help="Also those that are gone.")] = False,
    as_json: AsJson = False,
) -> None:
    """Tell which machines there are, how long they took to start and what they have cost."""
    _tell(LocalProvider(folder), as_json, everything)


@cluster.command()
def down(folder: Folder = FOLDER) -> None:
    """Stop all machines and the master, whatever is left of them; logs and the record of acquisitions stay."""
    stopped = LocalProvider(folder).down()
    for name in stopped.gone_before:
        sentence_to_stderr(f"{name} had ended by itself; its log is in {folder}")
    count = stopped.machines - len([name for name in stopped.gone_before if name != "master"])
    typer.echo(f"stopped {count} machine{'s' if count != 1 else ''}; logs and acquisitions are kept in {folder}")


def _acquire(provider: LocalProvider, wanted: Sequence[tuple[str, int]]) -> None:
    for name, _ in wanted:
        provider.find_class(name)
    names = [provider.acquire(name).name for name, count in wanted for _ in range(count)]
    provider.wait_until_settled()
    found = {machine.name: machine for machine in provider.list(gone=True)}
    for name in names:
        if found[name].state is not MachineState.READY:
            log = provider.log(name)
            told = f"machine {name} did not start: {last_words(log) or 'it said nothing'}; all that it said is in {log}"
            raise HeadgateError("MACHINE_DID_NOT_START", told)


def _tell(provider: LocalProvider, as_json: bool, everything: bool = False) -> None:
    machines, now = provider.list(gone=everything), time.time()
    up_now = provider.is_up()
    if as_json:
        facts = {"up": up_now, "master": provider.master if up_now else None, "folder": str(provider.folder)}
        print_json({**facts, "machines": [_facts(machine, now) for machine in machines]})
        return
    if up_now:
        cores = sum(machine.vm_class.cores for machine in machines if machine.state is MachineState.READY)
        typer.echo(
            f"{provider.master}: {cores} cores ready; run on it with: headgate run ... --cluster {_shown(provider)}"
        )
    else:
        typer.echo(f"no master runs in {_shown(provider)}")
    if machines:
        typer.echo(f"{'machine':<12} {'state':<9} {'cores':>5} {'memory':>9} {'speed':>5} {'start-up':>9} {'cost':>9}")
    for machine in machines:
        size, startup = machine.vm_class, machine.startup_s
        started = "-" if startup is None else f"{startup:.1f} s"
        memory = f"{size.memory_bytes / 2**20:.0f} MiB"
        cost = f"{machine.cost(now):.5f}"
        line = f"{machine.name:<12} {machine.state:<9} {size.cores:>5} {memory:>9} {size.core_power:>5g} {started:>9}"
        typer.echo(f"{line} {cost:>9}")


def _shown(provider: LocalProvider) -> Path:
    here = Path.cwd()
    return provider.folder.relative_to(here) if provider.folder.is_relative_to(here) else provider.folder


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
    found = []
    for text in texts:
        match = re.fullmatch(r"([^\s:=,]+)(?::(\d{1,3}))?", text)
        if match is None or int(match[2] or 1) < 1:
            raise InputError("BAD_MACHINES", f"{text[:60]!r} is not a VM class with a number, such as small or small:3")
        found.append((match[1], int(match[2] or 1)))
    if sum(count for _, count in found) > MOST:
        raise InputError("BAD_MACHINES", f"these are more than {MOST} machines; this is one machine")
    return found


def _vm_class(text: str) -> VmClass:
    match = re.fullmatch(r"([^\s:=,]+)=(\d{1,4}),(\d{1,6})([mg]),(\d+(?:\.\d+)?)(?:,(\d+(?:\.\d+)?))?", text)
    if match is None:
        told = f"--class {text[:60]!r} is not NAME=CORES,MEMORY,PRICE or NAME=CORES,MEMORY,PRICE,SPEED"
        raise InputError("BAD_VM_CLASS", f"{told}, such as old=2,2g,0.05,0.5")
    unit = {"m": 2**20, "g": 2**30}[match[4]]
    try:
        return machine_class(match[1], int(match[2]), int(match[3]) * unit, Decimal(match[5]), float(match[6] or 1))
    except BadValue as error:
        raise InputError("BAD_VM_CLASS", f"--class {text[:60]!r}: {error}; expected {error.expected}") from None
