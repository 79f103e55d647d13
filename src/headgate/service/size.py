"""Size a network of operators from a file of rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from headgate.documents import read_located
from headgate.documents.check.pydantic_faults import complaints
from headgate.documents.located import Located
from headgate.documents.sizing_document import MicroBatchDocument, OperatorDocument, SizingDocument
from headgate.errors import Fault, Infeasible, InputError, InvalidDataflow, nearest, unknown
from headgate.queueing.batch_sizing import assign_batches, min_batches
from headgate.queueing.microbatch import Fragment, MicroBatches, Stage, predict_batches, stage_s
from headgate.queueing.network import Network, Route
from headgate.queueing.predict import predict
from headgate.queueing.sizing import assign_processors, min_processors
from headgate.queueing.station import Model
from headgate.queueing.traffic import solve_traffic
from headgate.report.latency import LatencyPoint, draw_latency

__all__ = ["Asked", "Row", "Sized", "latency_picture", "load_asked", "size", "what_if"]

MICRO_BATCH = "micro-batch"
_POINTS = 25


@dataclass(frozen=True)
class Asked:
    """A network and what is asked of it."""

    name: str
    network: Network
    model: str
    processors: int | None
    latency_max_s: float | None
    percentile: float | None
    now: tuple[int | None, ...]
    """The processors that each operator has now, where the file tells."""

    micro_batch: MicroBatchDocument


@dataclass(frozen=True, slots=True)
class Row:
    """One operator of an answer."""

    name: str
    processors: int
    arrival_rate_per_s: float
    utilisation: float
    sojourn_s: float


@dataclass(frozen=True, slots=True)
class Sized:
    """An allocation and what is predicted of it."""

    rows: tuple[Row, ...]
    mean_s: float
    p95_s: float
    p99_s: float
    cost: float
    exact: bool = True
    trigger_s: float | None = None

    @property
    def processors(self) -> int:
        return sum(row.processors for row in self.rows)

    @property
    def allocation(self) -> tuple[int, ...]:
        return tuple(row.processors for row in self.rows)


def load_asked(path: Path) -> Asked:
    """Read a sizing file (YAML or JSON); raises :class:`~headgate.errors.InvalidDataflow` with every fault."""
    located = read_located(path, ("yaml", "json"))
    faults = list(located.faults)
    document = None
    try:
        document = SizingDocument.model_validate(located.value)
    except ValidationError as error:
        faults += complaints(error, SizingDocument, located)
    listed = document.operators if document else _operators_of(located.value)
    operators: list[OperatorDocument] = []
    for place, given in enumerate(listed):
        try:
            operators.append(OperatorDocument.model_validate(given))
        except ValidationError as error:
            faults += complaints(error, OperatorDocument, located, ["operators", place], _name_of(given))
    faults += _faults_between(located, listed)
    if faults or document is None:
        raise InvalidDataflow(faults)
    values = tuple(operator.value() for operator in operators)
    routes = tuple(Route(each.name, target, mean) for each in operators for target, mean in each.to.items())
    return Asked(
        document.name or path.stem,
        Network(values, routes),
        document.model,
        document.processors,
        document.latency_max_s,
        document.percentile,
        tuple(operator.processors for operator in operators),
        document.micro_batch,
    )


def _operators_of(value: object) -> Sequence[object]:
    found = value.get("operators") if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _name_of(given: object) -> str | None:
    name = given.get("name") if isinstance(given, dict) else None
    return name if isinstance(name, str) else None


def _faults_between(located: Located, operators: Sequence[object]) -> list[Fault]:
    """Faults that no operator has by itself: names given twice, routes that lead nowhere."""
    faults = []
    known = list(dict.fromkeys(name for given in operators if (name := _name_of(given)) is not None))
    for place, given in enumerate(operators):
        name = _name_of(given)
        if name is not None and name in map(_name_of, operators[:place]):
            where = located.place(["operators", place, "name"])
            message = f"another operator is called '{name[:60]}' too"
            faults.append(Fault("DUPLICATE_ID", message, where, name, "each name once"))
        routes = given.get("to") if isinstance(given, dict) else None
        for target in routes if isinstance(routes, dict) else ():
            if target not in known:
                where = located.place(["operators", place, "to", target])
                message = f"sends to '{target[:60]}', which is not there"
                wanted = f"one of {', '.join(known[:12])}"
                faults.append(Fault("UNKNOWN_TASK", message, where, name, wanted, nearest(target, known)))
    return faults


def size(asked: Asked) -> Sized:
    """The allocation that is asked for: the least latency of so many processors, or the fewest for a latency."""
    if (asked.processors is None) == (asked.latency_max_s is None):
        message = "nothing is asked for" if asked.processors is None else "both processors and a latency are asked for"
        raise InputError(
            "NOTHING_ASKED", f"{message}; give one of processors and latency_max_s, in the file or as an option"
        )
    if asked.model == MICRO_BATCH:
        batches = _batches(asked)
        if asked.processors is not None:
            found = assign_batches(batches, asked.processors, asked.percentile)
        else:
            assert asked.latency_max_s is not None
            found = min_batches(batches, asked.latency_max_s, asked.percentile)
        return replace(_batched(asked, found.allocation, found.trigger_s), exact=found.exact)
    model = Model(asked.model)
    if asked.processors is not None:
        sizing = assign_processors(asked.network, asked.processors, model, asked.percentile)
    else:
        assert asked.latency_max_s is not None
        sizing = min_processors(asked.network, asked.latency_max_s, model, asked.percentile)
    return replace(_predicted(asked, sizing.allocation), exact=sizing.exact)


def what_if(asked: Asked, allocation: Sequence[int], processors: Mapping[str, int], rate_factor: float = 1.0) -> Sized:
    """What is predicted with other numbers of processors for some operators, or with other rates from outside.

    An allocation that cannot keep up has an infinite latency.
    """
    for name in processors:
        if name not in asked.network.index:
            raise unknown("UNKNOWN_OPERATOR", f"there is no operator '{name[:60]}'", name, asked.network.names)
    operators = tuple(
        replace(operator, arrival_rate_per_s=operator.arrival_rate_per_s * rate_factor)
        for operator in asked.network.operators
    )
    changed = replace(asked, network=Network(operators, asked.network.routes))
    chosen = [processors.get(name, k) for name, k in zip(asked.network.names, allocation, strict=True)]
    for operator, k in zip(operators, chosen, strict=True):
        if operator.speeds and k > len(operator.speeds):
            message = f"'{operator.name}' is asked to have {k} processors and its speeds tell of {len(operator.speeds)}"
            raise Infeasible("TOO_FEW_PROCESSORS", message, {"operator": operator.name})
    if asked.model == MICRO_BATCH:
        return _batched(changed, tuple(chosen), asked.micro_batch.trigger_s)
    return _predicted(changed, tuple(chosen))


def latency_picture(asked: Asked, sized: Sized, ending: str) -> bytes:
    """Latency against processors, about the number that was chosen; ``ending`` is .svg or .png."""
    found: list[Sized] = []
    top = max(sized.processors + 4, round(1.5 * sized.processors))
    step = max(1, (top - len(sized.rows)) // _POINTS)
    for processors in sorted({*range(top, len(sized.rows) - 1, -step), sized.processors}):
        try:
            each = size(replace(asked, processors=processors, latency_max_s=None))
        except Infeasible:
            continue
        # More processors than are of use are left over: the curve ends there.
        if not found or each.processors > found[-1].processors:
            found.append(each)
    # Just above the least that keeps up latencies may be absurdly long and hide the rest.
    points = [_point(each) for each in found if each.mean_s < 50 * found[-1].mean_s or each == sized]
    split = ":".join(map(str, sized.allocation)) if len(sized.rows) <= 6 else ""
    title = f"{asked.name}, {asked.network.external_rate_per_s:g} tuples/s"
    # Of the three curves the one that was asked about; another percentile has none.
    drawn = {None: sized.mean_s, 0.95: sized.p95_s, 0.99: sized.p99_s}
    target = asked.latency_max_s if asked.percentile in drawn else None
    chosen = (sized.processors, drawn.get(asked.percentile, sized.mean_s))
    return draw_latency(title, points, chosen, split, target, ending)


def _point(sized: Sized) -> LatencyPoint:
    return LatencyPoint(sized.processors, sized.mean_s, sized.p95_s, sized.p99_s)


def _predicted(asked: Asked, allocation: tuple[int, ...]) -> Sized:
    found = predict(asked.network, allocation, Model(asked.model))
    rows = tuple(
        Row(each.name, each.processors, each.arrival_rate_per_s, each.utilisation, each.sojourn_s)
        for each in found.operators
    )
    return Sized(rows, found.mean_s, found.percentile_s(0.95), found.percentile_s(0.99), _cost(asked, allocation))


def _batches(asked: Asked) -> MicroBatches:
    """All operators as stages of one fragment; a tuple that comes by often counts as often."""
    traffic = solve_traffic(asked.network)
    cost = asked.micro_batch
    stages = tuple(
        Stage(
            operator.name,
            1 / operator.service_rate_per_s,
            operator.service_scv,
            float(visits),
            cost.stage_s,
            cost.task_s,
            0.0,
            operator.processors_min,
            operator.most,
            operator.price,
        )
        for operator, visits in zip(asked.network.operators, traffic.visits, strict=True)
    )
    return MicroBatches(traffic.external_rate_per_s, (Fragment(asked.name, stages, cost.fixed_s),), cost.trigger_s)


def _batched(asked: Asked, allocation: tuple[int, ...], trigger_s: float) -> Sized:
    batches = replace(_batches(asked), trigger_s=trigger_s)
    found = predict_batches(batches, allocation)
    rates = solve_traffic(asked.network).rates_per_s
    rows = tuple(
        Row(
            stage.name,
            k,
            float(rate),
            float(rate) * stage.service_s / k,
            float(stage_s(stage, k, batches.rate_per_s * found.intervals_s[0]))
            if found.mean_s < float("inf")
            else float("inf"),
        )
        for stage, k, rate in zip(batches.stages, allocation, rates, strict=True)
    )
    tails = (found.percentile_s(0.95), found.percentile_s(0.99)) if found.mean_s < float("inf") else (float("inf"),) * 2
    interval = found.intervals_s[0]
    return Sized(rows, found.mean_s, *tails, _cost(asked, allocation), trigger_s=interval)


def _cost(asked: Asked, allocation: Sequence[int]) -> float:
    return float(sum(o.price * k for o, k in zip(asked.network.operators, allocation, strict=True)))
