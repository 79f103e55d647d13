"""``headgate run``: run dataflows in the foreground, until they are done, time is up or somebody presses Ctrl-C.

Meanwhile the engine serves its API, so that other commands can change what runs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.background import in_background, stop_signals
from headgate.cli.engine_link import EngineLink
from headgate.cli.output import JsonAtEnd, known_types, print_json, read_dataflows, seconds
from headgate.cli.run_display import RunDisplay, print_summary, run_display
from headgate.cli.settings import given_tables
from headgate.cli.supervisor import supervised
from headgate.errors import InputError, shorten
from headgate.model.status import DataflowStatus, FragmentStatus
from headgate.model.strategy import StrategyName
from headgate.service.load import Loaded
from headgate.service.run import EngineSettings, RunLimits, RunResult, make_importable, take_secrets

__all__ = ["run"]

FAILED = 1


def run(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="Dataflows as .yaml, .json, .xml or .py.")
    ] = None,
    state: Annotated[Path, typer.Option("--state", metavar="DIR", help="Where the engine keeps its state.")] = Path(
        ".headgate"
    ),
    master: Annotated[
        str | None,
        typer.Option(
            "--master", metavar="URL", help="The Spark to run on: local[*] (the default), spark://, yarn, k8s://."
        ),
    ] = None,
    cluster: Annotated[
        Path | None,
        typer.Option(
            "--cluster", metavar="DIR", help="Run on the cluster that 'headgate cluster up' has started there."
        ),
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark's; may be repeated.")
    ] = None,
    trigger: Annotated[str, typer.Option("--trigger", metavar="SPAN", help="How often micro-batches begin.")] = "500ms",
    time_budget: Annotated[
        str,
        typer.Option(
            "--time-budget", metavar="SPAN", help="How long a task may take for a micro-batch if it does not say."
        ),
    ] = "60s",
    duration: Annotated[
        str | None, typer.Option("--for", metavar="SPAN", help="Stop after this time, such as 60s or 5min.")
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Stop when all that the sources have is processed.")
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Update running dataflows of the same names.")] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Wait for dataflows to be submitted, even when there is nothing to run.")
    ] = False,
    strategy: Annotated[
        StrategyName | None,
        typer.Option("--strategy", "-s", help="How changes are applied; by default as before, at first hot."),
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Share equal tasks only, no wider streams.")] = False,
    price: Annotated[
        str, typer.Option("--price-per-hour", metavar="AMOUNT", help="What this machine costs an hour, in USD.")
    ] = "0.10",
    as_json: JsonAtEnd = False,
) -> None:
    """Run dataflows in the foreground; Ctrl-C stops them, and the same command resumes them.

    Dataflows of the state directory are resumed too; without files, only they run. While it runs, headgate submit,
    withdraw, list and status reach it through its state directory. Exit status 0 after a clean stop, 1 if a dataflow is
    degraded at the end, 2 if the dataflows cannot be run.

    Examples: [bold]headgate run flows/*.yaml --until-idle[/bold], [bold]headgate run --serve --state here[/bold]
    """
    registry, tables = known_types(), given_tables()
    settings = EngineSettings(
        state,
        registry,
        master,
        cluster,
        _spark_settings(conf or []),
        seconds("--trigger", trigger),
        seconds("--time-budget", time_budget),
        strategy,
        not exact,
        _amount(price),
        tables.access.policy(),
        tables.rules(),
    )
    take_secrets(tables.secrets.file)
    limits = RunLimits(None if duration is None else seconds("--for", duration), until_idle, serve)
    loaded = read_dataflows(files or [], registry)
    make_importable(files or [])
    began = time.monotonic()
    with supervised(settings.state) as link, stop_signals(link.stopping), run_display(quiet=as_json) as display:
        result = _run(settings, loaded, limits, replace, link, display)
    elapsed_s = time.monotonic() - began
    if as_json:
        print_json(result.as_dict(elapsed_s))
    else:
        print_summary(result.dataflows, result.fragments, elapsed_s)
    if result.failed:
        raise typer.Exit(FAILED)


def _run(
    settings: EngineSettings,
    loaded: Sequence[Loaded],
    limits: RunLimits,
    replace: bool,
    link: EngineLink,
    display: RunDisplay,
) -> RunResult:
    from headgate.api.application import application
    from headgate.api.callers import running_user
    from headgate.api.server import serving
    from headgate.service.run import follow, start, stop, submit_given
    from headgate.service.serve import ServedEngine

    def starting() -> None:
        later = ", to stop it then; Ctrl-C again ends it at once" if link.stopping.is_set() else ""
        display.wait(f"starting Spark{later}")

    def show(dataflows: Sequence[DataflowStatus], fragments: Sequence[FragmentStatus]) -> None:
        link.saw(fragments)
        display.show(dataflows, fragments)

    began, provider = time.monotonic(), settings.provider()
    with link.reporting():
        engine = in_background(lambda: start(settings, provider, link.lock, link.without_newest), starting)
    try:
        with link.reporting():
            served = ServedEngine(engine, settings.registry, settings.access, settings.rules)
            mine = served.acting_for(running_user(settings.access))
            if link.served_at is None:  # what was changed since the first engine served must not be undone
                submit = partial(submit_given, mine, loaded, replace, limits.serve)
                in_background(submit, lambda: display.wait("submitting dataflows"))
            with serving(engine.state.path, application(served), link.listener), link.serving():
                display.say(f"running after {time.monotonic() - began:.1f} s; Spark's log is {engine.log}")
                reason = follow(engine, link.limits(limits), link.stopping, show)
                if reason is not None:
                    display.say(reason)
    except BaseException:
        engine.stop()
        raise
    waiting = "stopping after the epochs under way; Ctrl-C again ends it at once"
    return in_background(lambda: stop(engine, display.show), lambda: display.wait(waiting))


def _spark_settings(given: Sequence[str]) -> dict[str, str]:
    settings = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            raise InputError("BAD_SETTING", f"--conf {text[:60]!r} is not NAME=VALUE, such as spark.executor.memory=2g")
        settings[name] = value
    return settings


def _amount(text: str) -> Decimal:
    """An amount of money; raises :class:`InputError` if it is none."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or not 0 <= amount <= 1_000_000:
        message = f"--price-per-hour is {shorten(text)}: expected an amount such as 0.10, at least 0"
        raise InputError("BAD_PRICE", message)
    return amount
