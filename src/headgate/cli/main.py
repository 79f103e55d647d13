"""The ``headgate`` command: its commands, and the one place where errors become sentences and exit statuses."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from headgate import __version__
from headgate.cli.output import faults_to_stderr, sentence_to_stderr
from headgate.cli.root_options import ROOT_OPTIONS, RootOptions
from headgate.cli.settings import default_map
from headgate.errors import HeadgateError, InputError, InvalidDataflow, refused_write

__all__ = ["application", "main"]

BAD_INPUT, INTERNAL, INTERRUPTED = 2, 70, 130


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"headgate {__version__}")
        raise typer.Exit


def _root(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Settings; default: the nearest headgate.toml upwards."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="The service to speak to, in place of a state directory."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    del version
    ROOT_OPTIONS.set(RootOptions(config, url))
    if context.invoked_subcommand != "init":
        context.default_map = default_map(context.command.commands, config, sys.argv)  # type: ignore[attr-defined]


RENAMED = {
    "queue": "headgate size, with the same options",
    "capacity": "headgate plan: give it --rate, and the other options that capacity had",
}


def _refuse_old_name(arguments: Sequence[str]) -> None:
    for name in arguments[:1]:
        if name in RENAMED:
            raise InputError("RENAMED_COMMAND", f"headgate {name} is now {RENAMED[name]}")


FUNCTIONS = {"list": "list_dataflows", "dead-letters": "dead_letters"}
"""Functions that have another name than their command."""

COMMANDS = {
    **{"init": "init", "validate": "dataflow_files", "show": "dataflow_files", "convert": "dataflow_files"},
    **{"diff": "dataflow_files", "plan": "plan", "schema": "dataflow_files", "tasks": "tasks", "size": "size"},
    **{name: name for name in ("simulate", "experiment", "forecast", "run", "serve", "submit")},
    **{"withdraw": "engine", "status": "engine", "whoami": "access", "access": "access", "token": "token"},
    **dict.fromkeys(("switch", "pause", "resume", "redrive", "limit", "partitions", "level"), "steer"),
    **dict.fromkeys(("policy", "decisions", "why"), "policy"),
    **dict.fromkeys(("recommend", "replay"), "replay"),
    **dict.fromkeys(("machines", "scale"), "machines"),
    **{"bill": "state_directory", "top": "state_directory", "observations": "state_directory", "bench": "bench"},
    **{"list": "engine", "dead-letters": "state_directory", "traces": "traces", "cluster": "cluster"},
    **{"lineage": "lineage", "tail": "tail", "dev": "dev", "profile": "profile", "deploy": "deploy"},
}
"""The commands in the order of the help, each with the module of this package that has it."""


@cache
def application(names: tuple[str, ...] = tuple(COMMANDS)) -> typer.Typer:
    """The command line with some of its commands: a module is loaded only when its command is needed."""
    app = typer.Typer(
        name="headgate",
        help="Run many streaming dataflows on one Spark, as cheaply as their service levels allow.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name in names:
        command = getattr(import_module(f"headgate.cli.{COMMANDS[name]}"), FUNCTIONS.get(name, name))
        if isinstance(command, typer.Typer):
            app.add_typer(command)
        else:
            app.command(name=name, help=_one_line_paragraphs(command.__doc__ or ""))(command)
    return app


def _one_line_paragraphs(text: str) -> str:
    """A docstring without its line breaks, so that help fits any terminal."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def __getattr__(name: str) -> typer.Typer:
    if name == "app":
        return application()
    raise AttributeError(name)


def _needed(arguments: Sequence[str]) -> tuple[str, ...]:
    """The commands that a command line may reach."""
    if arguments[:1] == ["--version"]:
        return ()
    return (arguments[0],) if arguments and arguments[0] in COMMANDS else tuple(COMMANDS)


def main() -> None:
    """Run the command line; bad input ends with a sentence and status 2, never with a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What a terminal's encoding cannot show is escaped, as it is on standard error.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        _refuse_old_name(sys.argv[1:])
        application(_needed(sys.argv[1:]))()
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
        if (refusal := refused_write(error)) is not None:
            sentence_to_stderr(refusal.message)
            raise SystemExit(BAD_INPUT) from None
        if os.environ.get("HEADGATE_TRACEBACK"):
            raise
        message = f"internal error: {type(error).__name__}: {error}"
        sentence_to_stderr(f"{message}; this is a bug in Headgate, run again with HEADGATE_TRACEBACK=1 to see where")
        raise SystemExit(INTERNAL) from None
