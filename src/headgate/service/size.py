"""Size a network of operators from a file of rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from headgate.documents import read_located
from headgate.documents.check.pydantic_faults import model_of
from headgate.documents.located import Located
from headgate.documents.sizing_document import MicroBatchDocument, OperatorDocument, SizingDocument
from headgate.errors import Fault, Infeasible, InputError, InvalidDataflow, nearest, unknown
from headgate.model.table import Table, TableColumn
from headgate.queueing.batch_sizing import assign_flow, is_proved, min_flow
from headgate.queueing.network import Network, Route
from headgate.queueing.predict import OperatorPrediction, predict
from headgate.queueing.sizing import assign_processors, check_percentile, min_processors
from headgate.queueing.spark_flow import BatchCosts, SparkFlow, predict_flow, stages_s
from headgate.queueing.station import StationModel
from headgate.queueing.traffic import solve_traffic
from headgate.report.latency import draw_latency

__all__ = [
    "MODELS",
    "Sized",
    "SizingRequest",
    "latency_picture",
    "load_request",
    "size",
    "sizing_tables",
    "what_if",
]

MICRO_BATCH = "micro-batch"
MODELS = ("mmk", "ggk", "ggk-refined", MICRO_BATCH)
_POINTS = 25
MOST_PROCESSORS = 4_096
"""Up to which the fewest are looked for in micro-batches."""


@dataclass(frozen=True)
class SizingRequest:
    """A network of operators, and the limit that an allocation must keep."""

    name: str
    network: Network
    model: str
    processors: int | None
    latency_max_s: float | None
    percentile: float | None
    now: tuple[int | None, ...]
    """The processors that each operator has now, where the file has them."""

    micro_batch: MicroBatchDocument


@dataclass(frozen=True, slots=True)
class Sized:
    """An allocation and what is predicted of it."""

    rows: tuple[OperatorPrediction, ...]
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


def load_request(path: Path) -> SizingRequest:
    """Read a sizing file (YAML or JSON); raises :class:`~headgate.errors.InvalidDataflow` with every fault."""
    located = read_located(path, ("yaml", "json"))
    faults = list(located.faults)
    document = model_of(SizingDocument, located.value, located, faults)
    listed = document.operators if document else _operators_of(located.value)
    read = (
        model_of(OperatorDocument, given, located, faults, ["operators", place], _name_of(given))
        for place, given in enumerate(listed)
    )
    operators = [operator for operator in read if operator is not None]
    faults += _faults_between(located, listed)
    if faults or document is None:
        raise InvalidDataflow(faults)
    values = tuple(operator.value() for operator in operators)
    routes = tuple(Route(each.name, target, mean) for each in operators for target, mean in each.to.items())
    return SizingRequest(
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
    operators = value.get("operators") if isinstance(value, dict) else None
    return operators if isinstance(operators, list) else []


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
                message = f"sends to '{target[:60]}', which is not an operator"
                wanted = f"one of {', '.join(known[:12])}"
                faults.append(Fault("UNKNOWN_TASK", message, where, name, wanted, nearest(target, known)))
    return faults


def size(request: SizingRequest) -> Sized:
    """The least latency of a number of processors, or the fewest processors for a latency."""
    limit_s = request.latency_max_s
    if (request.processors is None) == (limit_s is None):
        what = "neither processors nor a latency is" if limit_s is None else "both processors and a latency are"
        remedy = "give one of them, in the file (processors, latency_max_s) or as an option"
        raise InputError("NOTHING_ASKED", f"{what} given; {remedy}")
    if request.model == MICRO_BATCH:
        check_percentile(request.percentile)
        flow = _flow(request)
        if request.processors is not None:
            allocation = assign_flow(flow, request.processors, request.percentile)
        else:
            allocation = min_flow(flow, limit_s or 0.0, request.percentile, MOST_PROCESSORS)
        return replace(_batched(request, allocation), exact=is_proved(flow, allocation, request.processors))
    model = StationModel(request.model)
    if request.processors is not None:
        sizing = assign_processors(request.network, request.processors, model, request.percentile)
    else:
        sizing = min_processors(request.network, limit_s or 0.0, model, request.percentile)
    return replace(_predicted(request, sizing.allocation), exact=sizing.exact)


def what_if(
    request: SizingRequest, allocation: Sequence[int], processors: Mapping[str, int], rate_factor: float = 1.0
) -> Sized:
    """Predict latency with other numbers of processors for some operators, or with other rates from outside.

    An allocation that cannot keep up has an infinite latency.
    """
    for name in processors:
        if name not in request.network.index:
            raise unknown("UNKNOWN_OPERATOR", f"there is no operator '{name[:60]}'", name, request.network.names)
    operators = tuple(
        replace(operator, arrival_rate_per_s=operator.arrival_rate_per_s * rate_factor)
        for operator in request.network.operators
    )
    changed = replace(request, network=Network(operators, request.network.routes))
    chosen = [processors.get(name, k) for name, k in zip(request.network.names, allocation, strict=True)]
    for operator, k in zip(operators, chosen, strict=True):
        if operator.speeds and k > len(operator.speeds):
            message = f"operator '{operator.name}' has speeds for {len(operator.speeds)} processors, and {k} are given"
            raise Infeasible("TOO_FEW_PROCESSORS", message, {"operator": operator.name})
    return (_batched if request.model == MICRO_BATCH else _predicted)(changed, tuple(chosen))


def latency_picture(request: SizingRequest, sized: Sized, ending: str) -> bytes:
    """Latency against processors, about the number that was chosen; ``ending`` is that of the file."""
    curve: list[Sized] = []
    top = max(sized.processors + 4, round(1.5 * sized.processors))
    step = max(1, (top - len(sized.rows)) // _POINTS)
    for processors in sorted({*range(top, len(sized.rows) - 1, -step), sized.processors}):
        try:
            each = size(replace(request, processors=processors, latency_max_s=None))
        except Infeasible:
            continue
        # More processors than are of use are left over: the curve ends there.
        if not curve or each.processors > curve[-1].processors:
            curve.append(each)
    # Just above the least that keeps up latencies may be absurdly long and hide the rest.
    near = [each for each in curve if each.mean_s < 50 * curve[-1].mean_s or each == sized]
    points = [(each.processors, each.mean_s, each.p95_s, each.p99_s) for each in near]
    split = ":".join(map(str, sized.allocation)) if len(sized.rows) <= 6 else ""
    title = f"{request.name}, {request.network.external_rate_per_s:g} tuples/s"
    # The limit belongs to one of the three curves; another percentile has none.
    drawn = {None: sized.mean_s, 0.95: sized.p95_s, 0.99: sized.p99_s}
    target = request.latency_max_s if request.percentile in drawn else None
    chosen = (sized.processors, drawn.get(request.percentile, sized.mean_s))
    return draw_latency(title, points, chosen, split, target, ending)


def _predicted(request: SizingRequest, allocation: tuple[int, ...]) -> Sized:
    prediction = predict(request.network, allocation, StationModel(request.model))
    p95_s, p99_s = prediction.percentile_s(0.95), prediction.percentile_s(0.99)
    return Sized(prediction.operators, prediction.mean_s, p95_s, p99_s, _cost(request, allocation))


def _flow(request: SizingRequest) -> SparkFlow:
    """All operators as stages of one fragment, with a fragment more for each route that leads back."""
    given = request.micro_batch
    costs = BatchCosts(given.fixed_s, given.stage_s, given.task_s)
    return SparkFlow.of(request.network, costs, given.trigger_s)


def _batched(request: SizingRequest, allocation: tuple[int, ...]) -> Sized:
    flow = _flow(request)
    prediction = predict_flow(flow, allocation)
    traffic = solve_traffic(request.network)
    mean_s, interval_s = float(prediction.mean_s[0]), float(prediction.intervals_s[0])
    took = dict.fromkeys(request.network.names, float("inf"))
    if mean_s < float("inf"):
        source = flow.fragments[0]
        times = stages_s(flow, source, prediction.allocations, flow.rate_per_s * prediction.intervals_s)[:, 0]
        took |= {request.network.names[at]: float(time) for (at, _), time in zip(source.stages, times, strict=True)}
    rows = tuple(
        OperatorPrediction(each.name, k, rate, rate / each.service_rate_per_s / k, visits, took[each.name])
        for each, k, rate, visits in zip(
            request.network.operators, allocation, traffic.rates_per_s.tolist(), traffic.visits.tolist(), strict=True
        )
    )
    p95_s, p99_s = (float(prediction.percentile_s(p)[0]) for p in (0.95, 0.99))
    return Sized(rows, mean_s, p95_s, p99_s, _cost(request, allocation), trigger_s=interval_s)


def _cost(request: SizingRequest, allocation: Sequence[int]) -> float:
    return float(sum(o.price * k for o, k in zip(request.network.operators, allocation, strict=True)))


_SCENARIO = TableColumn("scenario", "scenario")
_OPERATORS = (
    _SCENARIO,
    TableColumn("operator", "operator"),
    TableColumn("processors", "processors"),
    TableColumn("arrival_rate_per_s", "rate", "tuples/s", ".4g"),
    TableColumn("utilisation", "busy", form=".0%"),
    TableColumn("sojourn_s", "time in operator", "s", ".4g"),
)
_LATENCIES = tuple(TableColumn(f"{name}_s", name, "s", ".4g") for name in ("mean", "p95", "p99"))


def sizing_tables(request: SizingRequest, answers: Mapping[str, Sized], changes: str = "") -> tuple[Table, Table]:
    """Compare allocations, and list the operators of each; latency is unknown where an operator cannot keep up."""
    goals = {"now": "as it is", "sized": _goal(request), "what if": changes}
    priced = any(each.cost != each.processors for each in answers.values())
    batched = any(each.trigger_s is not None for each in answers.values())
    columns = (
        _SCENARIO,
        TableColumn("goal", "goal"),
        TableColumn("processors", "processors"),
        *([TableColumn("cost", "price", form="g")] if priced else []),
        *([TableColumn("trigger_s", "batch every", "s", ".4g")] if batched else []),
        *_LATENCIES,
        TableColumn("exact", "proved best"),
    )
    rows = tuple(
        {
            **{column.key: getattr(each, column.key, None) for column in columns},
            **{"scenario": name, "goal": goals[name], "exact": each.exact if name == "sized" else None},
        }
        for name, each in answers.items()
    )
    operators = tuple(
        {"scenario": name, "operator": row.name, **asdict(row)} for name, each in answers.items() for row in each.rows
    )
    behind = [name for name, each in answers.items() if each.mean_s == float("inf")]
    rate = f"{request.name}: {request.network.external_rate_per_s:g} tuples/s from outside, model {request.model}."
    notes = (rate, *(f"Scenario '{name}' cannot keep up with its input." for name in behind))
    return Table("Scenarios", columns, rows, notes), Table("Operators", _OPERATORS, operators)


def _goal(request: SizingRequest) -> str:
    what = "mean latency" if request.percentile is None else f"p{100 * request.percentile:g} latency"
    if request.processors is not None:
        return f"least {what} of {request.processors} processors"
    prices = {operator.price for operator in request.network.operators}
    return f"{'fewest' if len(prices) == 1 else 'cheapest'} processors for a {what} of {request.latency_max_s:g} s"
