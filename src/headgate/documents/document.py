"""The one document that every format holds: its fields, their rules, and the JSON Schema that editors use.

Formats turn their text into this shape and back; :mod:`headgate.documents.check` turns the shape into a
:class:`~headgate.model.dataflow.Dataflow`, and :func:`to_document` goes the other way.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from headgate.errors import BadValue, shorten
from headgate.model.dataflow import DEFAULT_OWNER, Dataflow
from headgate.model.names import NAME_PATTERN, NAME_RULE, is_name
from headgate.model.on_error import OnError
from headgate.model.service_level import ServiceLevel
from headgate.model.share import Share
from headgate.model.span import seconds_of, span_text
from headgate.model.start import Start
from headgate.model.stream import ByKey, ByPredicate, Stream
from headgate.model.task import Alternate, Gather, Port, Ports, Task
from headgate.model.task_type import ColumnName, Expression, SchemaText
from headgate.tasks.registry import Registry

__all__ = [
    "AlternateDocument",
    "DataflowDocument",
    "InputDocument",
    "PortDocument",
    "PortsDocument",
    "ServiceLevelDocument",
    "TaskDocument",
    "json_schema",
    "number",
    "to_document",
]

SCHEMA_ID = "urn:headgate:dataflow:1"


def _named(text: str) -> str:
    if not is_name(text):
        raise BadValue(f"{shorten(text)} is not a name", NAME_RULE)
    return text


def _clean(text: str) -> str:
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise ValueError("text with half a surrogate pair, which is not Unicode")
    return text


def _checked_budget(text: str) -> str:
    seconds = seconds_of(text)
    if seconds is None or not 0.001 <= seconds <= 86_400:
        raise BadValue(f"{shorten(text)} is not a time budget", "a span from 1ms to 1d, such as 500ms, 10s, 5min")
    return text


def _checked_start(text: str) -> str:
    return str(Start.parse(text))


def _as_written(amount: Decimal) -> Decimal:
    return Decimal(str(number(amount)))


Name = Annotated[str, AfterValidator(_named), Field(json_schema_extra={"pattern": NAME_PATTERN})]
Text = Annotated[str, AfterValidator(_clean), Field(max_length=100_000)]
Budget = Annotated[str, AfterValidator(_checked_budget)]
StartText = Annotated[str, AfterValidator(_checked_start)]
Money = Annotated[Decimal, Field(ge=0, le=10**30), AfterValidator(_as_written)]
"""An amount that is compared, never billed: as precise as a floating-point number."""


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ServiceLevelDocument(_Document):
    """What a dataflow needs and what it may cost."""

    throughput_min: float = Field(
        0.8, gt=0, le=1, description="Least relative throughput: output over achievable output."
    )
    throughput_tolerance: float = Field(
        0.05, ge=0, lt=1, description="How far throughput may stray before anything is changed."
    )
    latency_max_s: PositiveFloat | None = Field(
        None, description="Mean seconds from a message's arrival to its sink, at most."
    )
    latency_min_s: PositiveFloat | None = Field(None, description="Below so many seconds, resources may go.")
    budget_per_h: Money | None = Field(None, description="The most that the dataflow may cost in an hour.")
    break_even_at_best_per_h: Money | None = Field(
        None, description="Cost per hour at which the best alternates just pay."
    )
    break_even_at_worst_per_h: Money | None = Field(
        None, description="Cost per hour at which the worst alternates just pay."
    )
    processors_max: PositiveInt | None = Field(
        None, le=1_000_000, description="The most processors that the dataflow may use."
    )
    time_within_min: float = Field(
        0.99, ge=0, le=1, description="Share of a month in which throughput and latency are to be met."
    )

    @model_validator(mode="after")
    def _consistent(self) -> ServiceLevelDocument:
        self.value()
        return self

    def value(self) -> ServiceLevel:
        return ServiceLevel(**{name: getattr(self, name) for name in type(self).model_fields})


class InputDocument(_Document):
    """A stream into a task, written at the task that reads it."""

    from_: str = Field(alias="from", min_length=1, max_length=300, description="The task that feeds it, or task:port.")
    to: Name | None = Field(None, description="The input port; needed only where the task has several.")
    where: Expression | None = Field(None, description="Take only the rows for which this SQL predicate holds.")
    key: tuple[ColumnName, ...] | None = Field(
        None, min_length=1, description="Keep rows of equal key together, in order."
    )
    feedback: bool = Field(False, description="Whether this stream closes a loop.")

    @model_validator(mode="after")
    def _one_routing(self) -> InputDocument:
        if self.where is not None and self.key is not None:
            raise ValueError("where and key are two ways of routing; give one of them")
        return self


def _input(value: object) -> object:
    return {"from": value} if isinstance(value, str) else value


class PortDocument(_Document):
    """An input or output that the dataflow's author names (tasks of type python, sql and opaque)."""

    name: Name
    columns: SchemaText | None = Field(None, description="What the rows look like, such as 'id string, v double'.")
    gather: Gather = Field(Gather.INTERLEAVE, description="Whether several streams into it are mixed or joined.")


def _port(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


PortItem = Annotated[PortDocument, BeforeValidator(_port)]


class PortsDocument(_Document):
    """The ports of a user-defined task."""

    inputs: tuple[PortItem, ...] = Field((), max_length=256, description="Where rows come in.")
    outputs: tuple[PortItem, ...] = Field((), max_length=256, description="Where rows go out.")

    @model_validator(mode="after")
    def _some(self) -> PortsDocument:
        if not self.inputs and not self.outputs:
            raise ValueError("neither inputs nor outputs; leave ports out if the usual ones will do")
        return self


class AlternateDocument(_Document):
    """One interchangeable way to do a task."""

    name: Name | None = Field(None, description="What to call it; its type if left out.")
    type: str = Field(min_length=1, max_length=512, description="A task type; headgate tasks lists them.")
    config: dict[str, Any] = Field(default_factory=dict, description="The options of that type.")
    value: float = Field(1.0, gt=0, description="Its value relative to the other alternates; only the ratio counts.")
    cost_s: float | None = Field(None, ge=0, description="Core-seconds per message on the reference core, if known.")
    selectivity: float | None = Field(None, ge=0, description="Messages out per message in, if known.")


class TaskDocument(_Document):
    """One step: either a type with its config, or several alternates."""

    id: Name
    type: str | None = Field(None, min_length=1, max_length=512, description="A task type; headgate tasks lists them.")
    config: dict[str, Any] | None = Field(None, description="The options of that type.")
    cost_s: float | None = Field(None, ge=0, description="Core-seconds per message on the reference core, if known.")
    selectivity: float | None = Field(None, ge=0, description="Messages out per message in, if known.")
    alternates: tuple[AlternateDocument, ...] | None = Field(
        None, min_length=1, description="Interchangeable ways to do the task."
    )
    ports: PortsDocument | None = Field(None, description="Named ports of a user-defined task.")
    share: Share | None = Field(None, description="With whom it may be shared; as the dataflow says if left out.")
    on_error: OnError = Field(OnError.FAIL, description="What becomes of a row for which it raises.")
    time_budget: Budget | None = Field(
        None, description="The most time it may take for a micro-batch, such as 5s; over it, it is stopped."
    )
    publish: Name | None = Field(None, description="The name by which other dataflows may read what it puts out.")
    inputs: tuple[Annotated[InputDocument, BeforeValidator(_input)], ...] = Field(
        (), description="The streams it reads."
    )

    @model_validator(mode="after")
    def _one_form(self) -> TaskDocument:
        short = [name for name in ("type", "config", "cost_s", "selectivity") if getattr(self, name) is not None]
        if self.alternates is not None and short:
            raise ValueError(f"{' and '.join(short)} beside alternates; a task has the one or the other")
        if self.alternates is None and self.type is None:
            raise ValueError("neither type nor alternates; a task needs one of them")
        return self

    @property
    def time_budget_s(self) -> float | None:
        """The budget in seconds, to the millisecond."""
        seconds = None if self.time_budget is None else seconds_of(self.time_budget)
        return None if seconds is None else round(seconds, 3)


class DataflowDocument(_Document):
    """A dataflow: tasks, the streams between them, its owner and its service level."""

    version: Literal[1] = Field(1, description="Version of this format.")
    name: Name | None = Field(None, description="What to call the dataflow; the file's name if left out.")
    owner: Name = Field(DEFAULT_OWNER, description="Whose it is, and who pays.")
    description: Text = Field("", description="What it is for.")
    service_level: ServiceLevelDocument = Field(
        ServiceLevelDocument(), description="What it needs and what it may cost."
    )
    share: Share = Field(Share.ANYONE, description="With whom its tasks may be shared, unless they say otherwise.")
    start: StartText | None = Field(
        None,
        description="From where it reads: earliest, now, a time, an age such as 6h, or 'with NAME'; files from the "
        "earliest and other sources from now if left out.",
    )
    tasks: list[Any] = Field(description="The steps, in any order.", min_length=1)


def to_document(dataflow: Dataflow) -> dict[str, Any]:
    """Turn a dataflow into a document, leaving out what is default; the inverse of reading it."""
    document: dict[str, Any] = {"version": 1, "name": dataflow.name}
    if dataflow.owner != DEFAULT_OWNER:
        document["owner"] = dataflow.owner
    if dataflow.description:
        document["description"] = dataflow.description
    level = _service_level(dataflow.service_level)
    if level:
        document["service_level"] = level
    if dataflow.share is not Share.ANYONE:
        document["share"] = dataflow.share.value
    if dataflow.start is not None:
        document["start"] = str(dataflow.start)
    feeds: dict[str, list[Stream]] = {}
    for stream in dataflow.streams:
        feeds.setdefault(stream.target, []).append(stream)
    document["tasks"] = [_task(task, feeds.get(task.id, [])) for task in dataflow.tasks]
    return document


def number(value: float | Decimal) -> int | float:
    """A number in its shortest form: 1 rather than 1.0.

    >>> number(2.0), number(Decimal("0.10"))
    (2, 0.1)
    """
    if isinstance(value, int):
        return value
    plain = float(value)
    return int(plain) if plain.is_integer() else plain


def _service_level(level: ServiceLevel) -> dict[str, Any]:
    default = ServiceLevel()
    names = ServiceLevelDocument.model_fields
    return {name: number(getattr(level, name)) for name in names if getattr(level, name) != getattr(default, name)}


def _task(task: Task, feeds: list[Stream]) -> dict[str, Any]:
    document: dict[str, Any] = {"id": task.id}
    only = task.alternates[0]
    if not task.is_dynamic and only.name == only.type and only.value == 1.0:
        document |= _work(only)
    else:
        document["alternates"] = [_alternate(alternate) for alternate in task.alternates]
    if task.ports is not None:
        document["ports"] = _ports(task.ports)
    if task.share is not None:
        document["share"] = task.share.value
    if task.on_error is not OnError.FAIL:
        document["on_error"] = task.on_error.value
    if task.time_budget_s is not None:
        document["time_budget"] = span_text(task.time_budget_s)
    if task.publish:
        document["publish"] = task.publish
    if feeds:
        document["inputs"] = [_feed(stream) for stream in feeds]
    return document


def _alternate(alternate: Alternate) -> dict[str, Any]:
    named = {"name": alternate.name} if alternate.name != alternate.type else {}
    valued = {"value": number(alternate.value)} if alternate.value != 1.0 else {}
    return named | _work(alternate) | valued


def _work(alternate: Alternate) -> dict[str, Any]:
    work: dict[str, Any] = {"type": alternate.type}
    if alternate.config:
        work["config"] = alternate.config.as_dict()
    if alternate.cost_s is not None:
        work["cost_s"] = number(alternate.cost_s)
    if alternate.selectivity is not None:
        work["selectivity"] = number(alternate.selectivity)
    return work


def _ports(ports: Ports) -> dict[str, Any]:
    both = {
        "inputs": [_port_item(port) for port in ports.inputs],
        "outputs": [_port_item(port) for port in ports.outputs],
    }
    return {name: items for name, items in both.items() if items}


def _port_item(port: Port) -> dict[str, Any] | str:
    columns = {} if port.schema is None else {"columns": str(port.schema)}
    gather = {} if port.gather is Gather.INTERLEAVE else {"gather": port.gather.value}
    return {"name": port.name} | columns | gather if columns or gather else port.name


def _feed(stream: Stream) -> dict[str, Any] | str:
    source = f"{stream.source}:{stream.source_port}"
    feed: dict[str, Any] = {"from": source.removesuffix(":out")}
    if stream.target_port != "in":
        feed["to"] = stream.target_port
    if isinstance(stream.routing, ByPredicate):
        feed["where"] = stream.routing.where
    if isinstance(stream.routing, ByKey):
        feed["key"] = list(stream.routing.columns)
    if stream.feedback:
        feed["feedback"] = True
    return feed if len(feed) > 1 else str(feed["from"])


def json_schema(registry: Registry) -> dict[str, Any]:
    """The JSON Schema of a dataflow document, with the options of every registered task type, for editors."""
    schema = DataflowDocument.model_json_schema()
    definitions: dict[str, Any] = schema.setdefault("$defs", {})
    for model in (TaskDocument, AlternateDocument, InputDocument, PortDocument, PortsDocument):
        part = model.model_json_schema(ref_template="#/$defs/{model}")
        definitions |= part.pop("$defs", {})
        definitions[model.__name__] = part
    for name, task_type in registry.items():
        part = task_type.config.model_json_schema(ref_template=f"#/$defs/{name}.{{model}}")
        definitions |= {f"{name}.{inner}": value for inner, value in part.pop("$defs", {}).items()}
        definitions[f"config.{name}"] = part | {"description": task_type.summary}
    for holder in ("TaskDocument", "AlternateDocument"):
        definition = definitions[holder]
        definition["properties"]["type"] |= {"examples": sorted(registry)}
        definition["allOf"] = [
            {
                "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
                "then": {"properties": {"config": {"$ref": f"#/$defs/config.{name}"}}},
            }
            for name in registry
        ]
    definitions["TaskDocument"]["properties"]["inputs"]["items"] = _or_text("InputDocument", "task or task:port")
    for side in ("inputs", "outputs"):
        definitions["PortsDocument"]["properties"][side]["items"] = _or_text("PortDocument", "name of a port")
    schema["properties"]["tasks"]["items"] = {"$ref": "#/$defs/TaskDocument"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **schema,
        "title": "Headgate dataflow",
    }


def _or_text(model: str, description: str) -> dict[str, Any]:
    return {"anyOf": [{"type": "string", "description": description}, {"$ref": f"#/$defs/{model}"}]}
