"""``headgate cluster``: a Spark cluster on this machine, of real worker processes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import JsonAtEnd, print_answer, sentence_to_stderr
from headgate.errors import counted
from headgate.service import cluster as use_cases

__all__ = ["cluster"]

FOLDER = Path(".headgate-cluster")

cluster = typer.Typer(
    name="cluster",
    no_args_is_help=True,
    help="Start and stop a Spark cluster on this machine: a real worker process for each machine of a VM class.",
    rich_markup_mode="rich",
)

Folder = Annotated[Path, typer.Option("--dir", metavar="DIR", help="The folder of the cluster, with its logs.")]
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
    port: Annotated[int, typer.Option(help="The master's port; 0 takes any free one.", min=0, max=65535)] = 7077,
    classes: Classes = None,
    as_json: JsonAtEnd = False,
) -> None:
    """Start a master and some machines; they keep running when the command has ended.

    Example: [bold]headgate cluster up medium:3 --class "old=2,2g,0.05,0.5"[/bold]
    """
    use_cases.start(folder, port, machines or ["small:3"], classes or [])
    _show(folder, as_json)


@cluster.command()
def acquire(
    machines: Annotated[list[str], typer.Argument(metavar="CLASS[:N]...", help="Machines to add.")],
    folder: Folder = FOLDER,
    classes: Classes = None,
    as_json: JsonAtEnd = False,
) -> None:
    """Add machines; Spark starts executors on them at once.

    Example: [bold]headgate cluster acquire medium:2[/bold]
    """
    use_cases.acquire(folder, machines, classes or [])
    _show(folder, as_json)


@cluster.command()
def release(
    machines: Annotated[list[str], typer.Argument(metavar="MACHINE...", help="Names as 'list' shows them.")],
    folder: Folder = FOLDER,
    as_json: JsonAtEnd = False,
) -> None:
    """Stop machines after their current work.

    Example: [bold]headgate cluster release small-2[/bold]
    """
    use_cases.release(folder, machines)
    _show(folder, as_json)


@cluster.command("list")
def list_(
    folder: Folder = FOLDER,
    everything: Annotated[bool, typer.Option("--all", help="Also those that are gone.")] = False,
    as_json: JsonAtEnd = False,
) -> None:
    """List the machines, how long they took to start and what they have cost."""
    _show(folder, as_json, everything)


@cluster.command()
def down(folder: Folder = FOLDER) -> None:
    """Stop all machines and the master, whatever is left of them; logs and the record of machines stay."""
    count, gone_before = use_cases.stop(folder)
    for name in gone_before:
        sentence_to_stderr(f"{name} had already ended; its log is in {folder}")
    typer.echo(f"stopped {counted(count, 'machine')}; logs and the record of machines are in {folder}")


def _show(folder: Path, as_json: bool, everything: bool = False) -> None:
    facts = use_cases.cluster_facts(folder, everything)
    print_answer(facts, [use_cases.cluster_table(facts)], as_json)
