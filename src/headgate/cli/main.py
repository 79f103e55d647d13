"""The ``headgate`` command: its commands, and the one place where errors become sentences and exit statuses."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from headgate import __version__
from headgate.cli.bench import bench
from headgate.cli.bill import bill
from headgate.cli.cluster import cluster
from headgate.cli.convert import convert
from headgate.cli.dead_letters import dead_letters
from headgate.cli.diff import diff
from headgate.cli.experiment import experiment
from headgate.cli.forecast import forecast
from headgate.cli.init import init
from headgate.cli.listing import list_dataflows
from headgate.cli.observations import observations
from headgate.cli.output import faults_to_stderr, sentence_to_stderr
from headgate.cli.plan import plan
from headgate.cli.run import run
from headgate.cli.schema import schema
from headgate.cli.settings import default_map
from headgate.cli.show import show
from headgate.cli.simulate import simulate
from headgate.cli.size import size
from headgate.cli.status import status
from headgate.cli.submit import submit
from headgate.cli.tasks import tasks
from headgate.cli.top import top
from headgate.cli.traces import traces
from headgate.cli.validate import validate
from headgate.cli.withdraw import withdraw
from headgate.errors import HeadgateError, InputError, InvalidDataflow

__all__ = ["app", "main"]

BAD_INPUT, INTERNAL, INTERRUPTED = 2, 70, 130

app = typer.Typer(
    name="headgate",
    help="Run many streaming dataflows on one Spark, as cheaply as their service levels allow.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"headgate {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Settings; default: the nearest headgate.toml upwards."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    del version
    if context.invoked_subcommand != "init":
        context.default_map = default_map(context.command.commands, config)  # type: ignore[attr-defined]


RENAMED = {
    "queue": "headgate size, with the same options",
    "capacity": "headgate plan: give it --rate, and the other options that capacity had",
}


def _refuse_old_name(arguments: Sequence[str]) -> None:
    for name in arguments[:1]:
        if name in RENAMED:
            raise InputError("RENAMED_COMMAND", f"headgate {name} is now {RENAMED[name]}")


ABOUT_FILES = (init, validate, show, convert, diff, plan, schema, tasks, size, simulate, experiment, forecast)
ABOUT_ENGINES = (run, submit, withdraw, status, bill, top, observations)
for command in (*ABOUT_FILES, *ABOUT_ENGINES, bench):
    app.command()(command)
app.command(name="list")(list_dataflows)
app.command(name="dead-letters")(dead_letters)
app.add_typer(traces)
app.add_typer(cluster)


def main() -> None:
    """Run the command line; bad input ends with a sentence and status 2, never with a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What a terminal's encoding cannot show is escaped, as it is on standard error.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        _refuse_old_name(sys.argv[1:])
        app()
    except InvalidDataflow as error:
        faults_to_stderr(error.faults)
        raise SystemExit(BAD_INPUT) from None
    except HeadgateError as error:
        sentence_to_stderr(error.message)
        raise SystemExit(BAD_INPUT) from None
    except BrokenPipeError:
        # The reader of our output has closed the pipe; the interpreter must not complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:
        if os.environ.get("HEADGATE_TRACEBACK"):
            raise
        message = f"internal error: {type(error).__name__}: {error}"
        sentence_to_stderr(f"{message}; this is a bug in Headgate, run again with HEADGATE_TRACEBACK=1 to see where")
        raise SystemExit(INTERNAL) from None
