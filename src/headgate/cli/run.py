"""``headgate run``: run dataflows in the foreground, until they are done, time is up or somebody presses Ctrl-C.

Meanwhile the engine serves its API, so that other commands can change what runs.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.background import in_background, stop_signals
from headgate.cli.engine_link import EngineLink
from headgate.cli.engine_options import (
    ClusterFolder,
    Conf,
    EngineState,
    Exact,
    Files,
    Master,
    PolicyModeOption,
    PolicyName,
    Price,
    Replace,
    Strategy,
    TimeBudget,
    Trigger,
    engine_settings,
)
from headgate.cli.output import JsonAtEnd, known_types, print_json, read_dataflows, seconds
from headgate.cli.run_display import RunDisplay, print_summary, run_display
from headgate.cli.supervisor import supervised
from headgate.model.status import DataflowStatus, FragmentStatus
from headgate.service.load import Loaded
from headgate.service.run import EngineSettings, RunLimits, RunResult, make_importable

if TYPE_CHECKING:
    from headgate.api.application import Door
    from headgate.api.network import NetworkListener
    from headgate.service.serve import ServedEngine

__all__ = ["run", "run_engine"]

FAILED = 1


def run(
    files: Files = None,
    state: EngineState = Path(".headgate"),
    master: Master = None,
    cluster: ClusterFolder = None,
    conf: Conf = None,
    trigger: Trigger = "500ms",
    time_budget: TimeBudget = "60s",
    duration: Annotated[
        str | None, typer.Option("--for", metavar="SPAN", help="Stop after this time, such as 60s or 5min.")
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Stop when all that the sources have is processed.")
    ] = False,
    replace: Replace = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Wait for dataflows to be submitted, even when there is nothing to run.")
    ] = False,
    strategy: Strategy = None,
    exact: Exact = False,
    price: Price = "0.10",
    policy: PolicyName = None,
    mode: PolicyModeOption = None,
    as_json: JsonAtEnd = False,
) -> None:
    """Run dataflows in the foreground; Ctrl-C stops them, and the same command resumes them.

    Dataflows of the state directory are resumed too; without files, only they run. While it runs, headgate submit,
    withdraw, list and status reach it through its state directory. Exit status 0 after a clean stop, 1 if a dataflow is
    degraded at the end, 2 if the dataflows cannot be run.

    Examples: [bold]headgate run flows/*.yaml --until-idle[/bold], [bold]headgate run --serve --state here[/bold]
    """
    registry = known_types()
    settings = engine_settings(
        registry,
        state,
        master,
        cluster,
        conf,
        trigger,
        time_budget,
        strategy,
        exact=exact,
        price=price,
        policy=policy,
        mode=mode,
    )
    limits = RunLimits(None if duration is None else seconds("--for", duration), until_idle, serve)
    loaded = read_dataflows(files or [], registry)
    make_importable(files or [])
    began = time.monotonic()
    with supervised(settings.state) as link, stop_signals(link.stopping), run_display(quiet=as_json) as display:
        result = run_engine(settings, loaded, limits, replace, link, display)
    elapsed_s = time.monotonic() - began
    if as_json:
        print_json(result.as_dict(elapsed_s))
    else:
        print_summary(result.dataflows, result.fragments, elapsed_s)
    if result.failed:
        raise typer.Exit(FAILED)


def run_engine(
    settings: EngineSettings,
    loaded: Sequence[Loaded],
    limits: RunLimits,
    replace: bool,
    link: EngineLink,
    display: RunDisplay,
    network: Sequence[NetworkListener] = (),
    door: Door | None = None,
    served_now: Callable[[ServedEngine], None] = lambda _: None,
) -> RunResult:
    """Start an engine, submit what it was given, serve its API, and stop it when it is time."""
    from headgate.api.application import application
    from headgate.api.callers import running_user
    from headgate.api.server import serving
    from headgate.service.control import control_loop
    from headgate.service.run import follow, start, stop, submit_given
    from headgate.service.serve import ServedEngine
    from headgate.service.throttling import Throttle

    def starting() -> None:
        later = ", to stop it then; Ctrl-C again ends it at once" if link.stopping.is_set() else ""
        display.wait(f"starting Spark{later}")

    def show(dataflows: Sequence[DataflowStatus], fragments: Sequence[FragmentStatus]) -> None:
        link.saw(fragments)
        throttle.look()
        display.show(dataflows, fragments)

    began, provider = time.monotonic(), settings.provider()
    with link.reporting():
        engine = in_background(lambda: start(settings, provider, link.lock, link.crash), starting)
    try:
        with link.reporting():
            control = dataclasses.replace(settings.control, given=settings.control.given and link.served_at is None)
            loop = control_loop(engine, control, settings.trigger_s, settings.price_per_h)
            served = ServedEngine(engine, settings.registry, settings.access, settings.rules, loop)
            throttle = Throttle(engine, settings.rules, settings.trigger_s)
            mine = served.acting_for(running_user(settings.access))
            if link.served_at is None:  # what was changed since the first engine served must not be undone
                submit = partial(submit_given, mine, loaded, replace, limits.serve)
                in_background(submit, lambda: display.wait("submitting dataflows"))
            with (
                loop,
                serving(engine.state.path, application(served, door), link.listener, network),
                link.serving(),
                closing(served),
            ):
                served_now(served)
                display.say(f"running after {time.monotonic() - began:.1f} s; Spark's log is {engine.log}")
                reason = follow(engine, link.limits(limits), link.stopping, show)
                if reason is not None:
                    display.say(reason)
    except BaseException:
        engine.stop()
        raise
    waiting = "stopping after the epochs under way; Ctrl-C again ends it at once"
    return in_background(lambda: stop(engine, display.show), lambda: display.wait(waiting))
