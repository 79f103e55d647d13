"""``headgate dev``: a Kafka broker and a PostgreSQL server on this machine, for trials and examples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import JsonAtEnd, print_answer, sentence_to_stderr, step_to_stderr
from headgate.errors import counted
from headgate.service import dev as use_cases

__all__ = ["dev"]

FOLDER = Path(".headgate-dev")

dev = typer.Typer(
    name="dev",
    no_args_is_help=True,
    help="Start and stop a Kafka broker and a PostgreSQL server on this machine, for trials and examples.",
    rich_markup_mode="rich",
)

Folder = Annotated[Path, typer.Option("--dir", metavar="DIR", help="The folder of the data and the logs.")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help="Its port; 0 takes any free one.")]


@dev.command()
def fetch() -> None:
    """Fetch what the services need, into a cache beside the virtual environment; 'up' does it too."""
    step_to_stderr("fetching the Kafka broker (45 MB), unless it is there")
    for reason in use_cases.fetch():
        sentence_to_stderr(reason)


@dev.command()
def up(
    services: Annotated[
        list[str] | None, typer.Argument(metavar="[SERVICE]...", help="kafka, postgres; both if left out.")
    ] = None,
    folder: Folder = FOLDER,
    kafka_port: Port = None,
    postgres_port: Port = None,
    as_json: JsonAtEnd = False,
) -> None:
    """Start the services; they keep running when the command has ended.

    Example: [bold]headgate dev up kafka --kafka-port 9092[/bold]
    """
    wanted = {"kafka": kafka_port, "postgres": postgres_port}
    ports = {name: port for name, port in wanted.items() if port is not None}
    _show(use_cases.start(folder, tuple(services or ()), ports), as_json)


@dev.command()
def down(folder: Folder = FOLDER) -> None:
    """Stop the services; their data stays in the folder."""
    stopped = use_cases.stop(folder)
    typer.echo(f"{counted(stopped, 'service')} stopped; the data is in {folder}")


@dev.command()
def status(folder: Folder = FOLDER, as_json: JsonAtEnd = False) -> None:
    """Show the services and their addresses."""
    _show(use_cases.status(folder), as_json)


def _show(answer: list[dict[str, object]], as_json: bool) -> None:
    print_answer({"services": answer}, [use_cases.services_table(answer)], as_json)
