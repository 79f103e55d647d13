"""Run an engine in this process: start it, submit what it was given, follow it, stop it."""

from __future__ import annotations

import dataclasses
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.access.policy import AccessPolicy
from headgate.access.rules import TenantRules
from headgate.errors import InputError, missing_package, refused_write
from headgate.model.status import DataflowStatus, EngineCrash, FragmentStatus
from headgate.model.strategy import StrategyName
from headgate.service.control import ControlOptions
from headgate.service.load import Loaded
from headgate.service.principal_engine import PrincipalEngine
from headgate.service.restarts import SPARK_CRASHED
from headgate.service.submit import split_submission
from headgate.service.task_types import Registry
from headgate.store.files import scratch_of
from headgate.store.lock import StateLock
from headgate.store.secrets import SECRETS

if TYPE_CHECKING:
    from headgate.machines.local import LocalProvider
    from headgate.runtime.engine.engine import Engine

__all__ = [
    "EngineSettings",
    "RunLimits",
    "RunResult",
    "StateLock",
    "follow",
    "gone_condition",
    "limit_workers",
    "make_importable",
    "scratch_of",
    "spark_end",
    "start",
    "stop",
    "submit_given",
    "take_secrets",
]

PACKAGES = ("pyspark", "pyarrow", "pandas", "numpy", "sqlalchemy")
LOOK_EVERY_S, HOUSEKEEP_EVERY_S = 0.25, 1.0

Show = Callable[[Sequence[DataflowStatus], Sequence[FragmentStatus]], None]


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How to start an engine, and on which Spark."""

    state: Path
    registry: Registry
    master: str | None = None
    cluster: Path | None = None
    """The folder of a local cluster, in place of a master."""

    spark: Mapping[str, str] = field(default_factory=dict)
    trigger_s: float = 0.5
    time_budget_s: float = 60.0
    strategy: StrategyName | None = None
    semantic: bool = True
    price_per_h: Decimal = Decimal("0.10")
    access: AccessPolicy = field(default_factory=AccessPolicy)
    """Who may use the engine."""

    rules: TenantRules = field(default_factory=TenantRules)
    """What the dataflows of an owner may use."""

    control: ControlOptions = field(default_factory=ControlOptions)
    """How it decides by itself."""

    def provider(self) -> LocalProvider | None:
        """The local cluster to run on; raises :class:`InputError` if it is not up."""
        if self.cluster is None:
            return None
        if self.master is not None:
            raise InputError("TWO_MASTERS", "--master and --cluster both say where to run; leave one out")
        from headgate.machines.local import LocalProvider

        provider = LocalProvider(self.cluster)
        if not provider.is_up():
            message = f"no cluster is up in {self.cluster}; start one with 'headgate cluster up --dir {self.cluster}'"
            raise InputError("NO_CLUSTER", message)
        return provider


@dataclass(frozen=True, slots=True)
class RunLimits:
    """When a run ends by itself."""

    for_s: float | None = None
    until_idle: bool = False
    serve: bool = False
    """Keep running although there is nothing to run."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run went."""

    state: Path
    log: Path
    dataflows: Sequence[DataflowStatus]
    fragments: Sequence[FragmentStatus]

    @property
    def failed(self) -> bool:
        """Whether a dataflow is not well, or was paused after a crash loop."""
        unwell = any(flow.state == "degraded" or (flow.state == "paused" and flow.reason) for flow in self.dataflows)
        return unwell or any(fragment.failure for fragment in self.fragments)

    def as_dict(self, elapsed_s: float) -> dict[str, Any]:
        """The result for ``--json``."""
        return {
            "seconds": round(elapsed_s, 3),
            "failed": self.failed,
            "state": str(self.state),
            "log": str(self.log),
            "dataflows": [asdict(flow) for flow in self.dataflows],
            "fragments": [asdict(fragment) for fragment in self.fragments],
        }


def take_secrets(file: Path | None) -> None:
    """Read the secrets of this process, before it starts others, which are not to have them."""
    SECRETS.load(os.environ, file)


def limit_workers(variables: Mapping[str, str]) -> list[str]:
    """Let workers have what a project's settings say; returns what this system does not allow of it, as sentences."""
    from headgate.tasks.isolated.confinement import confinement_gaps
    from headgate.tasks.isolated.settings import IsolationSettings

    os.environ.update(variables)
    return confinement_gaps() if IsolationSettings.of().is_on else []


def make_importable(files: Sequence[Path]) -> None:
    """Let dataflows use functions of modules here or beside them, in this process and in Spark's workers."""
    folders = list(dict.fromkeys(str(folder.absolute()) for folder in (Path(), *(file.parent for file in files))))
    sys.path[:0] = folders
    inherited = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    os.environ["PYTHONPATH"] = os.pathsep.join([*folders, *inherited])


def gone_condition() -> str:
    """The condition of an engine whose Spark process has ended: whether it was killed, or crashed by itself."""
    from headgate.runtime.spark_internals.process import spark_crashed

    return SPARK_CRASHED if spark_crashed() else "SPARK_GONE"


def spark_end(patience_s: float = 0.0) -> str | None:
    """How the Spark process of this one has ended; ``None`` while it lives, or if there is none."""
    if "pyspark" not in sys.modules:
        return None
    from headgate.runtime.spark_internals.process import spark_end

    until = time.monotonic() + patience_s
    while (ended := spark_end()) is None and time.monotonic() < until:
        time.sleep(0.02)
    return ended


def start(
    settings: EngineSettings,
    provider: LocalProvider | None,
    lock: StateLock | None = None,
    crash: EngineCrash | None = None,
) -> Engine:
    """Start an engine, which continues what its state directory holds.

    ``lock`` is the directory's, if this process has it; ``crash`` is how the one before it has ended,
    if a dataflow may be the cause.
    """
    try:
        from headgate.runtime.engine.engine import Engine

        return Engine(
            lock or settings.state,
            crash=crash,
            master=provider.master if provider else settings.master or "local[*]",
            settings=settings.spark,
            provider=provider,
            trigger_s=settings.trigger_s,
            time_budget_s=settings.time_budget_s,
            registry=settings.registry,
            strategy=settings.strategy,
            semantic=settings.semantic,
            price_per_h=settings.price_per_h,
        )
    except ModuleNotFoundError as error:
        if error.name not in PACKAGES:
            raise
        raise missing_package("NO_SPARK", "running", error, "spark") from None


def submit_given(engine: PrincipalEngine, loaded: Sequence[Loaded], replace: bool, serve: bool) -> None:
    """Submit the dataflows that a run was given, as far as they do not run yet."""
    todo = split_submission(engine.shared.running, [one.signed for one in loaded], replace)
    if not loaded and not engine.dataflows and not serve:
        message = (
            f"nothing to run: {engine.about()['state']} has no dataflows; give a file, or wait for some with --serve"
        )
        raise InputError("NOTHING_TO_RUN", message)
    if todo.new or todo.replacing:
        engine.submit(*todo.new, *todo.replacing, replace=replace)


def follow(engine: Engine, limits: RunLimits, stopping: threading.Event, show: Show) -> str | None:
    """Look after an engine until it is time to stop; answers why it stopped by itself, if it did so early."""
    until = None if limits.for_s is None else time.monotonic() + limits.for_s
    idle = threading.Event()
    if limits.until_idle:
        threading.Thread(target=_wait_until_idle, args=(engine, idle), daemon=True).start()
    housekept = 0.0
    while not stopping.is_set() and not idle.is_set() and (until is None or time.monotonic() < until):
        if time.monotonic() - housekept >= HOUSEKEEP_EVERY_S:
            try:
                engine.housekeep()
            except OSError as error:
                if refused_write(error) is None:
                    raise
            housekept = time.monotonic()
        dataflows, fragments = engine.status()
        show(dataflows, fragments)
        if not limits.serve and fragments and all(fragment.failure for fragment in fragments) and not engine.mendable():
            return "Every fragment has failed. Nothing is left to run."
        left_s = LOOK_EVERY_S if until is None else max(0.0, until - time.monotonic())
        stopping.wait(min(LOOK_EVERY_S, left_s))
    return None


def _wait_until_idle(engine: Engine, idle: threading.Event) -> None:
    try:
        engine.wait_until_idle(despite_failures=True)
    finally:
        # Also when the engine was stopped meanwhile: then nobody waits for this any more.
        idle.set()


def stop(engine: Engine, show: Show) -> RunResult:
    """Stop an engine after the epochs under way; answers its last state, with the rows that came out until the end."""
    before, fragments = engine.status()
    show(before, fragments)
    engine.stop()
    after = {flow.name: flow.rows_out for flow in engine.status()[0]}
    flows = [dataclasses.replace(flow, rows_out=after[flow.name]) for flow in before]
    return RunResult(engine.state.path, engine.log, flows, fragments)
