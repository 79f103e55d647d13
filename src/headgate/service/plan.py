"""What would happen if dataflows were submitted: what is reused and added, whom it touches, and everyone's bill."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from headgate.billing.bill import Bill, draw_up
from headgate.billing.placement import machines
from headgate.billing.usage import Customer, Interval, Prices
from headgate.documents import FORMATS, read_located
from headgate.documents.check.pydantic_faults import model_of
from headgate.errors import InputError, InvalidDataflow
from headgate.model.dataflow import Dataflow
from headgate.model.names import DataflowName, Owner
from headgate.model.strategy import StrategyName
from headgate.model.task import Task
from headgate.runtime.engine.snapshot import Snapshot
from headgate.runtime.engine.source_starts import asked_of
from headgate.runtime.engine.starting import Assumed, beginning_of, joining
from headgate.runtime.file_source.oldest import oldest_ns
from headgate.sharing.deduplicate import deduplicate
from headgate.sharing.published import with_streams
from headgate.sharing.shared_set import FROM_THE_EARLIEST, HowStarted, SharedSet, StartTaken, Submission
from headgate.sharing.strategies import GroupSteps, Units, deploy
from headgate.tasks.registry import Registry

__all__ = [
    "BillChange",
    "Planned",
    "PlannedChanges",
    "PlannedSubmission",
    "StrategyName",
    "dataflow_files",
    "plan",
    "read_prices",
]

HOUR_S = 3_600


@dataclass(frozen=True, slots=True)
class PlannedSubmission:
    """One dataflow: how it would be merged, what would have to be done, and who would notice."""

    dataflow: Dataflow
    """As its author wrote it, without duplicates."""

    submission: Submission
    steps: GroupSteps
    interrupted: frozenset[DataflowName]
    """The dataflows whose tasks would be stopped and launched again."""

    start: StartTaken = FROM_THE_EARLIEST


@dataclass(frozen=True, slots=True)
class BillChange:
    """What a dataflow pays an hour, before and after; ``None`` while it is not there."""

    dataflow: DataflowName
    owner: Owner
    before: Decimal | None
    after: Decimal
    alone: Decimal

    @property
    def change(self) -> Decimal:
        return self.after - (self.before or Decimal())


@dataclass(frozen=True, slots=True)
class Planned:
    """All that would happen, in the order of submission."""

    submissions: tuple[PlannedSubmission, ...]
    bills: tuple[BillChange, ...]
    total_before: Decimal
    total_after: Decimal
    prices: Prices


@dataclass(frozen=True, slots=True)
class PlannedChanges:
    """What a plan changes after its dataflows are submitted: (dataflow, task, alternate or partitions)."""

    alternates: tuple[tuple[str, str, str], ...] = ()
    partitions: tuple[tuple[str, str, int], ...] = ()

    def sentences(self) -> list[str]:
        """The changes for people."""
        chosen = [f"{flow}: task {task} uses alternate {name}" for flow, task, name in self.alternates]
        return chosen + [f"{flow}: task {task} runs on {count} partitions" for flow, task, count in self.partitions]


def plan(
    running: Sequence[Dataflow],
    given: Sequence[Dataflow],
    registry: Registry,
    *,
    strategy: StrategyName = StrategyName.HOT,
    semantic: bool = True,
    prices: Prices | None = None,
) -> Planned:
    """Submit dataflows to a set that exists only here; raises :class:`InputError` for a name that is taken."""
    prices = prices or Prices()
    shared, deployment = SharedSet(registry, semantic and strategy is not StrategyName.NONE), Units()
    there: list[Dataflow] = []
    for dataflow in running:
        made = with_streams(dataflow, lambda: there)
        shared, deployment, _ = _submitted(shared, deployment, dataflow, made, strategy)
        there.append(dataflow)
    base = Snapshot(shared, stored=dict.fromkeys((flow.name for flow in running), ""), strategy=strategy)
    before = _bill(shared, deployment, [*running], prices)
    submissions = []
    for dataflow in given:
        merged, taken = _started(base, shared, with_streams(dataflow, lambda: there))
        shared, deployment, planned = _submitted(shared, deployment, dataflow, merged, strategy)
        submissions.append(replace(planned, start=taken))
        there.append(dataflow)
    after = _bill(shared, deployment, [*running, *given], prices)
    paid = {line.dataflow: line.cost for line in before.lines} if before else {}
    bills = tuple(
        BillChange(line.dataflow, line.owner, paid.get(line.dataflow), line.cost, line.alone)
        for line in (after.lines if after else ())
    )
    totals = [bill.total if bill else Decimal("0.00") for bill in (before, after)]
    return Planned(tuple(submissions), bills, totals[0], totals[1], prices)


class _AllRead(Assumed):
    """Sources that have read all there is."""

    def oldest_ns(self, task: Task) -> int | None:
        return oldest_ns(task)


def _started(base: Snapshot, shared: SharedSet, dataflow: Dataflow) -> tuple[Dataflow, StartTaken]:
    """How a dataflow is merged, and from where it reads; all that runs has done so from the beginning."""
    plain = deduplicate(dataflow)
    asked = asked_of(plain, shared.registry)
    pending = replace(base, shared=shared)
    beginning = beginning_of(asked, base, pending, time.time(), _AllRead(2**63))
    if not beginning.late:
        return beginning.signed.dataflow, beginning.taken
    _, submission = shared.submit(beginning.signed)
    whole = replace(base, since=dict.fromkeys(base.shared.running.tasks.as_dict(), 1))
    signatures = {**submission.written, **{task: known for known, task in submission.change.names.items()}}
    beginning = joining(beginning, asked, whole, submission.dataflow, signatures)
    taken = replace(beginning.taken, how=HowStarted.CATCH_UP) if beginning.late else beginning.taken
    return beginning.signed.dataflow, taken


def _submitted(
    shared: SharedSet, deployment: Units, dataflow: Dataflow, merged: Dataflow, strategy: StrategyName
) -> tuple[SharedSet, Units, PlannedSubmission]:
    registry = shared.registry
    shared, submission = shared.submit(merged, dataflow)
    deployment, steps = deploy(strategy, deployment, submission.change, shared.running)
    stopped = (task for unit in steps.stopped for task in unit.active)
    interrupted = {name for task in stopped for name in shared.running.users(task)} - {dataflow.name}
    if strategy is StrategyName.NONE:  # it runs as if nothing else did
        _, submission = SharedSet(registry, semantic=False).submit(dataflow)
    return shared, deployment, PlannedSubmission(dataflow, submission, steps, frozenset(interrupted))


def _bill(shared: SharedSet, deployment: Units, dataflows: Iterable[Dataflow], prices: Prices) -> Bill | None:
    customers = [Customer(flow.name, flow.owner, len(flow.tasks)) for flow in dataflows]
    if not customers:
        return None
    hour = Interval(datetime(2000, 1, 1), HOUR_S, machines(deployment, shared.running, prices))
    return draw_up([hour], customers, prices, unit=Decimal("0.0001"))


def dataflow_files(places: Iterable[Path]) -> list[Path]:
    """Files as they are, and for a folder the dataflow files in it, by name."""
    endings = {ending for many in FORMATS.values() for ending in many}
    files: list[Path] = []
    for place in places:
        if place.is_dir():
            inside = sorted(path for path in place.iterdir() if path.suffix.lower() in endings and path.is_file())
            if not inside:
                message = f"{place} holds no dataflow; expected files that end in {', '.join(sorted(endings))}"
                raise InputError("NO_DATAFLOWS", message, {"folder": str(place)})
            files += inside
        else:
            files.append(place)
    return files


class _PricesDocument(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    price_per_h: Decimal = Field(Decimal("0.10"), ge=0, max_digits=15, decimal_places=6)
    workers_per_vm: int = Field(1, ge=1, le=10_000)
    tasks_per_worker: int = Field(8, ge=1, le=100_000)
    currency: str = Field("USD", pattern=r"^[A-Z]{3}$")


def read_prices(path: Path) -> Prices:
    """Read prices from a YAML or JSON file; raises :class:`InvalidDataflow` with every fault."""
    located = read_located(path, ("yaml", "json"))
    faults = list(located.faults)
    document = model_of(_PricesDocument, located.value, located, faults)
    if faults or document is None:
        raise InvalidDataflow(faults)
    return Prices(**document.model_dump())
