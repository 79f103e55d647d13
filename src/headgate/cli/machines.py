"""``headgate machines`` and ``scale``: what a running engine runs on, and changes of it by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.engine import ask
from headgate.cli.output import AsCsv, AsJson, State, print_answer
from headgate.errors import counted, printable

__all__ = ["machines", "scale"]

machines = typer.Typer(
    name="machines",
    help="Show the machines of a running engine, or acquire and release some by hand.",
    rich_markup_mode="rich",
    invoke_without_command=True,
)


@machines.callback()
def show(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Also those that are gone.")] = False,
    state: State = Path(".headgate"),
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show the machines of a running engine, what they cost, and which decision asked for them.

    Example: [bold]headgate machines --all[/bold]
    """
    if context.invoked_subcommand is not None:
        return
    from headgate.service.engine_machines import machines_table

    answer = ask(state, lambda client: client.machines(gone=everything), "asking")
    print_answer(answer, [machines_table(answer)], as_json, as_csv)


@machines.command()
def acquire(
    vm_class: Annotated[str, typer.Argument(metavar="CLASS", help="A VM class of the engine's provider.")],
    state: State = Path(".headgate"),
    as_json: AsJson = False,
) -> None:
    """Acquire a machine; executors come onto it when it is ready.

    Example: [bold]headgate machines acquire medium[/bold]
    """
    answer = ask(state, lambda client: client.acquire(vm_class), "asking for a machine")
    _print(answer, as_json, f"{answer['name']} is {answer['state']}")


@machines.command()
def release(
    machine: Annotated[str, typer.Argument(metavar="MACHINE", help="A name that 'headgate machines' shows.")],
    state: State = Path(".headgate"),
    as_json: AsJson = False,
) -> None:
    """Release a machine after its current work.

    Example: [bold]headgate machines release medium-2[/bold]
    """
    answer = ask(state, lambda client: client.release(machine), "releasing")
    _print(answer, as_json, f"{answer['name']} ends what it is doing, and goes")


def scale(
    executors: Annotated[int, typer.Argument(metavar="EXECUTORS", help="How many there should be.", min=1, max=10_000)],
    state: State = Path(".headgate"),
    as_json: AsJson = False,
) -> None:
    """Have so many executors on the machines that there are; surplus ones end their tasks and leave.

    Example: [bold]headgate scale 4[/bold]
    """
    answer = ask(state, lambda client: client.scale(executors), "scaling")
    _print(answer, as_json, f"{counted(answer['executors'], 'executor')} are asked for")


def _print(answer: dict[str, object], as_json: bool, sentence: str) -> None:
    if as_json:
        print_answer(answer, (), as_json)
    else:
        typer.echo(printable(f"{sentence}."))
