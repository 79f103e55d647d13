"""Commands that change how tasks are run: ``switch``, ``partitions``, ``limit``, ``level``, ``pause`` and so on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli.engine import ask
from headgate.cli.output import AsJson, State, print_answer, print_json, seconds
from headgate.errors import InputError, counted, printable, shorten
from headgate.service.live_figures import levels_table

__all__ = ["level", "limit", "partitions", "pause", "redrive", "resume", "switch"]

NONE = "none"

Name = Annotated[str, typer.Argument(metavar="DATAFLOW", help="A running dataflow.")]
Task = Annotated[str, typer.Argument(metavar="TASK", help="One of its tasks.")]


def switch(
    dataflow: Name,
    task: Task,
    alternate: Annotated[
        str | None, typer.Argument(metavar="[ALTERNATE]", help="One of the task's alternates, by its name.")
    ] = None,
    release: Annotated[bool, typer.Option("--release", help="Let policies choose again for the task.")] = False,
    state: State = Path(".headgate"),
    as_json: AsJson = False,
) -> None:
    """Make another alternate of a task active, for all dataflows that share the task, from the next micro-batch on.

    It holds: no policy chooses for the task until you release it.

    Examples: [bold]headgate switch hot smooth moving_average[/bold], [bold]headgate switch hot smooth --release[/bold]
    """
    if (alternate is None) != release:
        raise InputError("NOTHING_TO_SWITCH", "name the alternate to switch to, or give --release without one")
    if alternate is None:
        answer = ask(state, lambda client: client.release_task(dataflow, task), "releasing")
        _print(answer, as_json, f"{dataflow}: policies may choose how {task} is done")
        return
    answer = ask(state, lambda client: client.switch(dataflow, task, alternate), "switching")
    _print(answer, as_json, f"{dataflow}: {task} is done by {alternate}")


def pause(name: Name, state: State = Path(".headgate"), as_json: AsJson = False) -> None:
    """Pause a dataflow: its sinks get no rows, and its keyed tasks lose their state, until it is resumed.

    Its sources are still read, so that it goes on with current rows.

    Example: [bold]headgate pause hot --state here[/bold]
    """
    answer = ask(state, lambda client: client.pause(name), "pausing")
    _print(answer, as_json, f"{name} is paused; 'headgate resume {name}' lets it go on")


def resume(name: Name, state: State = Path(".headgate"), as_json: AsJson = False) -> None:
    """Resume a paused dataflow, with the rows that come from now on.

    Example: [bold]headgate resume hot --state here[/bold]
    """
    _print(ask(state, lambda client: client.resume(name), "resuming"), as_json, f"{name} goes on")


def redrive(dataflow: Name, task: Task, state: State = Path(".headgate"), as_json: AsJson = False) -> None:
    """Offer the rows that failed to the task that refused them again, each exactly once.

    They go through the task as it is now and all behind it, so replace the dataflow first, or remove the cause. What
    it refuses again becomes a dead letter anew. To look at the rows or keep them: headgate dead-letters --export.

    Example: [bold]headgate redrive hot parse --state here[/bold]
    """
    answer = ask(state, lambda client: client.redrive(dataflow, task), "redriving")
    if as_json:
        print_json(answer)
        return
    again = f"; {counted(answer['refused'], 'row')} failed again" if answer["refused"] else ", and none failed"
    typer.echo(f"{counted(answer['rows'], 'row')} went through {printable(answer['task'])}{again}")


def limit(
    dataflow: Name,
    task: Task,
    rows: Annotated[str, typer.Argument(metavar="ROWS", help="At most so many rows a micro-batch, or none.")],
    state: State = Path(".headgate"),
    as_json: AsJson = False,
) -> None:
    """Limit how many rows a source or stateful task takes per micro-batch, for all dataflows that share it.

    What comes beyond waits at the source. The word none in place of a number lifts the limit.

    Example: [bold]headgate limit hot readings 5000 --state here[/bold]
    """
    most = _count("ROWS", rows)
    answer = ask(state, lambda client: client.limit(dataflow, task, most), "setting the limit")
    done = "has no limit" if most is None else f"takes at most {counted(most, 'row')} a micro-batch"
    _print(answer, as_json, f"{dataflow}: {task} {done}")


def level(
    name: Name,
    latency: Annotated[
        str | None, typer.Option("--latency", metavar="SPAN", help="Mean latency at most, such as 2s; or none.")
    ] = None,
    latency_min: Annotated[
        str | None, typer.Option("--latency-min", metavar="SPAN", help="Below it resources may go; or none.")
    ] = None,
    throughput: Annotated[
        float | None, typer.Option("--throughput", help="Least relative throughput, such as 0.8.")
    ] = None,
    tolerance: Annotated[float | None, typer.Option("--tolerance", help="How far throughput may stray.")] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="AMOUNT", help="The most that it may cost an hour; or none.")
    ] = None,
    processors: Annotated[
        str | None, typer.Option("--processors", metavar="COUNT", help="The most processors; or none.")
    ] = None,
    time_within: Annotated[
        float | None, typer.Option("--time-within", help="Share of a month in which it is to be met, such as 0.99.")
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Return to what its author wrote.")] = False,
    state: State = Path(".headgate"),
    as_json: AsJson = False,
) -> None:
    """Change the service level of a running dataflow, or show it and for how long it was met.

    What is not named stays. Policies act on it from their next decision on; it holds until the dataflow is withdrawn or
    replaced, also after a restart.

    Examples: [bold]headgate level hot --latency 2s --throughput 0.9[/bold], [bold]headgate level hot[/bold]
    """
    given = {
        "latency_max_s": _or_none(latency, lambda text: seconds("--latency", text)),
        "latency_min_s": _or_none(latency_min, lambda text: seconds("--latency-min", text)),
        "throughput_min": throughput,
        "throughput_tolerance": tolerance,
        "budget_per_h": _or_none(budget, str),
        "processors_max": _or_none(processors, lambda text: _count("--processors", text)),
        "time_within_min": time_within,
    }
    changes = {field: None if value == NONE else value for field, value in given.items() if value is not None}
    if reset and changes:
        raise InputError("LEVEL_AND_RESET", "give --reset alone: it returns to what the author wrote")
    if reset or changes:
        ask(state, lambda client: client.set_level(name, None if reset else changes), "changing the service level")
    answer = ask(state, lambda client: client.status(name), "asking")
    print_answer(answer, [levels_table(answer["dataflows"])], as_json)


def partitions(
    dataflow: Name,
    task: Task,
    count: Annotated[str, typer.Argument(metavar="COUNT", help="Partitions, or none for those of the task's input.")],
    state: State = Path(".headgate"),
    as_json: AsJson = False,
) -> None:
    """Set on how many partitions a task runs, from the next micro-batch on.

    Example: [bold]headgate partitions hot smooth 8 --state here[/bold]
    """
    wanted = _count("COUNT", count)
    answer = ask(state, lambda client: client.repartition(dataflow, task, wanted), "setting the partitions")
    done = "as many partitions as its input" if wanted is None else counted(wanted, "partition")
    _print(answer, as_json, f"{dataflow}: {task} runs on {done}")


def _or_none(text: str | None, read: Callable[[str], object]) -> object:
    """What an option says: nothing if it is not given, and the word none for no limit."""
    return text if text is None or text == NONE else read(text)


def _count(argument: str, text: str) -> int | None:
    """A whole number, or nothing for the word none."""
    if text == "none":
        return None
    if not (text.isascii() and text.isdigit()):
        raise InputError("BAD_NUMBER", f"{argument} is {shorten(text)}: expected a whole number, or none")
    return int(text)


def _print(answer: dict[str, Any], as_json: bool, sentence: str) -> None:
    if as_json:
        print_json(answer)
    else:
        typer.echo(printable(f"{sentence} (snapshot {answer['snapshot']})."))
