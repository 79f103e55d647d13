"""The options of commands that start an engine, and the settings that they make."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.output import seconds, sentence_to_stderr
from headgate.cli.policy import Mode
from headgate.cli.settings import given_tables
from headgate.errors import InputError, shorten
from headgate.model.strategy import StrategyName
from headgate.service.control import control_options
from headgate.service.run import EngineSettings, limit_workers, take_secrets

if TYPE_CHECKING:
    from headgate.service.task_types import Registry

__all__ = [
    "ClusterFolder",
    "Conf",
    "EngineState",
    "Exact",
    "Files",
    "Master",
    "PolicyModeOption",
    "PolicyName",
    "Price",
    "Replace",
    "Strategy",
    "TimeBudget",
    "Trigger",
    "engine_settings",
]

Files = Annotated[
    list[Path] | None, typer.Argument(metavar="[FILE]...", help="Dataflows as .yaml, .json, .xml or .py.")
]
EngineState = Annotated[Path, typer.Option("--state", metavar="DIR", help="Where the engine keeps its state.")]
Master = Annotated[
    str | None,
    typer.Option(
        "--master", metavar="URL", help="The Spark to run on: local[*] (the default), spark://, yarn, k8s://."
    ),
]
ClusterFolder = Annotated[
    Path | None,
    typer.Option("--cluster", metavar="DIR", help="Run on the cluster that 'headgate cluster up' has started there."),
]
Conf = Annotated[
    list[str] | None, typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark's; may be repeated.")
]
Trigger = Annotated[str, typer.Option("--trigger", metavar="SPAN", help="How often micro-batches begin.")]
TimeBudget = Annotated[
    str,
    typer.Option(
        "--time-budget", metavar="SPAN", help="How long a task may take for a micro-batch if it does not say."
    ),
]
Replace = Annotated[bool, typer.Option("--replace", help="Update running dataflows of the same names.")]
Strategy = Annotated[
    StrategyName | None,
    typer.Option("--strategy", "-s", help="How changes are applied; by default as before, at first hot."),
]
Exact = Annotated[bool, typer.Option("--exact", help="Share equal tasks only, no wider streams.")]
Price = Annotated[
    str, typer.Option("--price-per-hour", metavar="AMOUNT", help="What this machine costs an hour, in USD.")
]

PolicyName = Annotated[
    str | None, typer.Option("--policy", metavar="NAME", help="The policy that decides; by default as before.")
]
PolicyModeOption = Annotated[
    Mode | None, typer.Option("--mode", help="off, recommend or auto; by default as before, at first off.")
]


def engine_settings(
    registry: Registry,
    state: Path,
    master: str | None,
    cluster: Path | None,
    conf: Sequence[str] | None,
    trigger: str,
    time_budget: str,
    strategy: StrategyName | None,
    *,
    exact: bool,
    price: str,
    policy: str | None = None,
    mode: Mode | None = None,
) -> EngineSettings:
    """How to start an engine; its secrets are read now. Raises :class:`InputError` for an option that is of no use."""
    tables = given_tables()
    take_secrets(tables.secrets.file)
    for gap in limit_workers(tables.worker_variables()):
        sentence_to_stderr(gap)
    return EngineSettings(
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
        control_options(tables.control, policy, None if mode is None else mode.value),
    )


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
