"""``headgate run``: dataflows in the foreground, until they are done, time is up or somebody presses Ctrl-C.

Meanwhile the engine listens on its control socket, so that other commands can change what runs.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from headgate.cli.output import known_types, notices_to_stderr, print_json
from headgate.cli.span import seconds
from headgate.cli.watch import Watch, watching
from headgate.errors import Fault, InputError, InvalidDataflow, missing_package, shorten
from headgate.machines.local import LocalProvider
from headgate.model.strategy import StrategyName
from headgate.service.load import Loaded, load
from headgate.service.submission import split_submission
from headgate.tasks.registry import Registry

if TYPE_CHECKING:
    from headgate.model.status import DataflowStatus, FragmentStatus
    from headgate.runtime.engine.engine import Engine

__all__ = ["run"]

FAILED, LEFT_AT_ONCE = 1, 130
SHOW_CURSOR = b"\x1b[?25h\n"

T = TypeVar("T")


def run(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="Dataflows as .yaml, .json, .xml or .py.")
    ] = None,
    state: Annotated[Path, typer.Option("--state", metavar="DIR", help="Where all that must survive is kept.")] = Path(
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
    replace: Annotated[
        bool, typer.Option("--replace", help="Put a changed file in the place of the running dataflow of its name.")
    ] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Wait for dataflows to be submitted, even when there is nothing to run.")
    ] = False,
    strategy: Annotated[
        StrategyName | None,
        typer.Option("--strategy", "-s", help="How changes are brought about; as before, at first hot, if left out."),
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Share equal tasks only, no wider streams.")] = False,
    price: Annotated[
        str, typer.Option("--price-per-hour", metavar="AMOUNT", help="What this machine costs an hour, in USD.")
    ] = "0.10",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")] = False,
) -> None:
    """Run dataflows in the foreground; Ctrl-C stops them, and the same command goes on where they were.

    Dataflows that the state directory knows go on too; without files, only they run. While it runs, headgate submit,
    withdraw, list and status reach it through its state directory. Exit status 0 after a clean stop, 1 if a dataflow is
    degraded at the end, 2 when what was handed over cannot be run.

    Examples: [bold]headgate run flows/*.yaml --until-idle[/bold], [bold]headgate run --serve --state here[/bold]
    """
    from headgate.api.application import application
    from headgate.api.server import serving
    from headgate.service.serve import ServedEngine

    registry = known_types()
    trigger_s, budget_s = seconds("--trigger", trigger), seconds("--time-budget", time_budget)
    limits = _Limits(None if duration is None else seconds("--for", duration), until_idle, serve)
    where = _where(master, cluster, conf or [])
    price_per_h = _amount(price)
    flows = _read(files or [], registry)
    _make_importable(files or [])
    with _stop_signals() as stop, watching(quiet=as_json) as watch:
        began = time.monotonic()
        settings = {"trigger_s": trigger_s, "time_budget_s": budget_s, "registry": registry, "price_per_h": price_per_h}
        settings |= {"strategy": strategy, "semantic": not exact}
        engine = _started(lambda: _engine(state, where, settings), stop, watch)
        try:
            _submit(engine, flows, replace, serve, watch)
            with serving(engine.state.path, application(ServedEngine(engine, registry))):
                watch.say(f"running after {time.monotonic() - began:.1f} s; what Spark says is in {engine.log}")
                _follow(engine, limits, stop, watch)
        except BaseException:
            engine.stop()
            raise
        outcome = _stopped(engine, watch)
    _tell(outcome, time.monotonic() - began, engine, watch, as_json)
    if outcome.failed:
        raise typer.Exit(FAILED)


@dataclass(frozen=True, slots=True)
class _Limits:
    for_s: float | None
    until_idle: bool
    serve: bool


@dataclass(frozen=True, slots=True)
class _Outcome:
    dataflows: Sequence[DataflowStatus]
    fragments: Sequence[FragmentStatus]

    @property
    def failed(self) -> bool:
        return any(flow.state == "degraded" for flow in self.dataflows) or any(f.failure for f in self.fragments)


def _read(files: Sequence[Path], registry: Registry) -> list[Loaded]:
    """The dataflows of some files; raises with the faults of all of them."""
    flows, faults = [], list[Fault]()
    for path in files:
        try:
            loaded = load(path, registry)
        except InvalidDataflow as error:
            faults += error.faults
            continue
        notices_to_stderr(loaded.notices)
        flows.append(loaded)
    if faults:
        raise InvalidDataflow(faults)
    return flows


def _make_importable(files: Sequence[Path]) -> None:
    """Let dataflows name functions of modules that lie here or beside them, in this process and in Spark's workers."""
    folders = list(dict.fromkeys(str(folder.absolute()) for folder in (Path(), *(file.parent for file in files))))
    sys.path[:0] = folders
    inherited = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    os.environ["PYTHONPATH"] = os.pathsep.join([*folders, *inherited])


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C (or TERM, or the end of the terminal) sets; the second leaves at once."""
    stop = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        del number, frame
        if stop.is_set():
            # What is under way is run again at the next start; Spark's process ends with this one.
            if sys.stdout.isatty():
                os.write(sys.stdout.fileno(), SHOW_CURSOR)  # which the live table hides
            os._exit(LEFT_AT_ONCE)
        stop.set()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True, slots=True)
class _Where:
    """On which Spark to run."""

    master: str
    settings: Mapping[str, str]
    provider: LocalProvider | None


def _where(master: str | None, cluster: Path | None, conf: Sequence[str]) -> _Where:
    settings = {}
    for text in conf:
        name, found, value = text.partition("=")
        if not found or not name.startswith("spark."):
            raise InputError("BAD_SETTING", f"--conf {text[:60]!r} is not NAME=VALUE, such as spark.executor.memory=2g")
        settings[name] = value
    if cluster is None:
        return _Where(master or "local[*]", settings, None)
    if master is not None:
        raise InputError("TWO_MASTERS", "--master and --cluster both say where to run; leave one out")
    provider = LocalProvider(cluster)
    if not provider.is_up():
        told = f"no cluster is up in {cluster}; start one with 'headgate cluster up --dir {cluster}'"
        raise InputError("NO_CLUSTER", told)
    return _Where(provider.master, settings, provider)


def _amount(text: str) -> Decimal:
    """An amount of money; raises :class:`InputError` for what is none."""
    try:
        found = Decimal(text)
    except InvalidOperation:
        found = Decimal(-1)
    if not found.is_finite() or not 0 <= found <= 1_000_000:
        told = f"--price-per-hour is {shorten(text)}: expected an amount such as 0.10, at least 0"
        raise InputError("BAD_PRICE", told)
    return found


def _engine(state: Path, where: _Where, settings: Mapping[str, Any]) -> Engine:
    from headgate.runtime.engine.engine import Engine

    return Engine(state, master=where.master, settings=where.settings, provider=where.provider, **settings)


def _started(start: Callable[[], Engine], stop: threading.Event, watch: Watch) -> Engine:
    def meanwhile() -> None:
        watch.wait(
            "starting Spark, to stop it then; Ctrl-C again leaves at once" if stop.is_set() else "starting Spark"
        )

    try:
        return _aside(start, meanwhile)
    except ModuleNotFoundError as error:
        if error.name not in ("pyspark", "pyarrow", "pandas", "numpy", "sqlalchemy"):
            raise
        raise missing_package("NO_SPARK", "running", error, "spark") from None


def _aside(work: Callable[[], T], meanwhile: Callable[[], None]) -> T:
    """Do something in another thread and wait for it.

    Spark takes Ctrl-C for itself when it is started in the main thread, and a thread that waits shows nothing.
    """
    done: list[T] = []
    raised: list[BaseException] = []

    def do() -> None:
        try:
            done.append(work())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    while thread.is_alive():
        meanwhile()
        thread.join(0.1)
    if raised:
        raise raised[0]
    return done[0]


def _submit(engine: Engine, flows: Sequence[Loaded], replace: bool, serve: bool, watch: Watch) -> None:
    todo = split_submission(engine.shared.running, [one.signed for one in flows], replace)
    if not flows and not engine.dataflows and not serve:
        known = f"no file was given, and {engine.state.path} knows of no dataflow"
        told = f"nothing to run: {known}; give a file, or wait for submissions with --serve"
        raise InputError("NOTHING_TO_RUN", told)
    if todo.new or todo.replacing:
        _aside(lambda: engine.submit(*todo.new, *todo.replacing, replace=replace), lambda: watch.wait("submitting"))


def _follow(engine: Engine, limits: _Limits, stop: threading.Event, watch: Watch) -> None:
    """Watch the engine until it is time to stop."""
    until = None if limits.for_s is None else time.monotonic() + limits.for_s
    idle = threading.Event()
    if limits.until_idle:
        threading.Thread(target=_wait_until_idle, args=(engine, idle), daemon=True).start()
    kept_house = 0.0
    while not stop.is_set() and not idle.is_set() and (until is None or time.monotonic() < until):
        if time.monotonic() - kept_house >= 1.0:
            engine.housekeep()
            kept_house = time.monotonic()
        dataflows, fragments = engine.status()
        watch.show(dataflows, fragments)
        if not limits.serve and fragments and all(fragment.failure for fragment in fragments) and not engine.mendable():
            watch.say("every fragment has failed; nothing is left to run")
            return
        left_s = 0.25 if until is None else min(0.25, max(0.0, until - time.monotonic()))
        stop.wait(left_s)


def _wait_until_idle(engine: Engine, idle: threading.Event) -> None:
    try:
        engine.wait_until_idle(despite_failures=True)
    finally:
        # Also when the engine was stopped meanwhile: then nobody waits for this any more.
        idle.set()


def _stopped(engine: Engine, watch: Watch) -> _Outcome:
    """Stop the engine; how things were at that moment, with all rows that came out until the very end."""
    before, fragments = engine.status()
    watch.show(before, fragments)  # what has changed since the last look is told too
    _aside(engine.stop, lambda: watch.wait("stopping after the epochs under way; Ctrl-C again leaves at once"))
    after = {flow.name: flow.rows_out for flow in engine.status()[0]}
    return _Outcome([dataclasses.replace(flow, rows_out=after[flow.name]) for flow in before], fragments)


def _tell(outcome: _Outcome, elapsed_s: float, engine: Engine, watch: Watch, as_json: bool) -> None:
    if not as_json:
        watch.summary(outcome.dataflows, outcome.fragments, elapsed_s)
        return
    facts: dict[str, Any] = {
        "seconds": round(elapsed_s, 3),
        "failed": outcome.failed,
        "state": str(engine.state.path),
        "log": str(engine.log),
        "dataflows": [asdict(flow) for flow in outcome.dataflows],
        "fragments": [asdict(fragment) for fragment in outcome.fragments],
    }
    print_json(facts)
