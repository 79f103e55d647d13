"""The normal form of what relational tasks make of a stream: which rows, and which columns.

A run of filters, projections and derived columns over one stream comes to a set of conjuncts that a row must meet and a
list of columns, each a term over the columns of that stream, the *base*. Two runs over one base with equal forms make
equal rows, in whatever order their authors wrote the steps. A form contains another when all rows and columns of the
other can be had from it.

The base is the last task that is not of these types, has several inputs or alternates, is confined to another circle,
has an error policy or time budget of its own, or an expression without a normal form. Its columns must be known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import ValidationError

from headgate.model.expression import parsed_expression
from headgate.model.names import Signature
from headgate.model.on_error import OnError
from headgate.model.schema import Schema
from headgate.model.stream import ByPredicate, Duplicate
from headgate.model.task import Task
from headgate.model.task_type import Inputs, TaskConfig
from headgate.model.work import RowExpression, Work
from headgate.sharing.change import RunningStream
from headgate.sharing.semantic.term import NotNormal, Term, column, conjuncts, kind, normal, normal_tree, try_cast
from headgate.tasks.registry import Registry
from headgate.tasks.relational import Cast, Derive, Drop, Filter, RangeFilter, Rename, Select
from headgate.tasks.windows import EventTimeWindow

__all__ = ["Known", "NormalForm", "WindowForm", "understand"]

Base = tuple[Signature, str]
"""The task and port whose rows the terms read."""

RELATIONAL = (Filter, RangeFilter, Select, Drop, Derive, Rename, Cast)


@dataclass(frozen=True, slots=True)
class NormalForm:
    """Rows of a base that meet all conjuncts, with these columns."""

    base: Base
    scope: str
    conjuncts: tuple[Term, ...]
    """In the order in which their authors wrote them."""

    columns: tuple[tuple[str, Term], ...]

    @property
    def key(self) -> tuple[Base, str, frozenset[Term], tuple[tuple[str, Term], ...]]:
        """Equal for forms that make equal rows."""
        return self.base, self.scope, frozenset(self.conjuncts), self.columns

    @property
    def terms(self) -> Mapping[str, Term]:
        """The term of each column, by folded name."""
        return {name.casefold(): term for name, term in self.columns}


@dataclass(frozen=True, slots=True)
class WindowForm:
    """Aggregates over windows: all but the aggregates themselves must be equal for one to serve the other."""

    group: tuple[object, ...]
    columns: tuple[tuple[str, Term], ...]
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a task's output."""

    schemas: Mapping[str, Schema | None] = field(default_factory=dict)
    form: NormalForm | None = None
    window: WindowForm | None = None


def understand(
    task: Task,
    scope: str,
    feeds: Sequence[RunningStream],
    known: Mapping[Signature, Known],
    registry: Registry,
) -> Known:
    """Find the columns and the normal form of a task, given those of the tasks that feed it."""
    options = _options(task, registry)
    if options is None or any(stream.feedback for stream in feeds):
        return Known({port.name: port.schema for port in task.ports.outputs} if task.ports else {})
    schemas = _schemas(task, options, feeds, known)
    if len(feeds) != 1 or task.on_error is not OnError.FAIL or task.time_budget_s is not None:
        return Known(schemas)  # whose policy would hold for what is left to do behind a wider stream?
    above = _input_form(feeds[0], scope, known)
    if above is None:
        return Known(schemas)
    try:
        if isinstance(options, RELATIONAL):
            form = _applied(above, options, registry[task.type].work)
            names = [name.casefold() for name, _ in form.columns]
            return Known(schemas, form) if len(set(names)) == len(names) else Known(schemas)
        if isinstance(options, EventTimeWindow):
            return Known(schemas, window=_window(above, options))
    except (NotNormal, ValueError):
        pass
    return Known(schemas)


def _options(task: Task, registry: Registry) -> TaskConfig | None:
    kind = registry.get(task.type)
    if kind is None or task.is_dynamic:
        return None
    try:
        return kind.config.model_validate(task.config.as_dict())
    except ValidationError:
        return None


def _schemas(
    task: Task, options: TaskConfig, feeds: Sequence[RunningStream], known: Mapping[Signature, Known]
) -> Mapping[str, Schema | None]:
    entering: dict[str, list[Schema | None]] = {}
    for stream in feeds:
        schema = known[stream.source].schemas.get(stream.source_port) if stream.source in known else None
        entering.setdefault(stream.target_port, []).append(schema)
    made: dict[str, Schema | None] = dict(options.outputs(Inputs(entering)))
    ports = task.ports.outputs if task.ports else ()
    declared: dict[str, Schema | None] = {port.name: port.schema for port in ports if port.schema}
    return made | declared


def _input_form(stream: RunningStream, scope: str, known: Mapping[Signature, Known]) -> NormalForm | None:
    """The form of what enters a task: the form of the task before it, or that task as a base."""
    if not isinstance(stream.routing, Duplicate | ByPredicate) or stream.source not in known:
        return None
    before = known[stream.source]
    form = before.form if before.form is not None and before.form.scope == scope else None
    if form is None:
        schema = before.schemas.get(stream.source_port)
        if schema is None:
            return None
        columns = tuple((one.name, column(one.name.casefold(), one.type)) for one in schema.columns)
        form = NormalForm((stream.source, stream.source_port), scope, (), columns)
    if isinstance(stream.routing, ByPredicate):
        try:
            form = _filtered(form, stream.routing.where)
        except NotNormal:
            return None
    return form


def _applied(form: NormalForm, options: TaskConfig, work: Work | None) -> NormalForm:
    """What a relational task makes of a form, by the same expressions that the runtime uses."""
    assert isinstance(work, RowExpression)
    names = [name for name, _ in form.columns]
    does = work.sql(options, names)
    if does.condition is not None:
        form = _filtered(form, does.condition)
    if does.columns is None:
        return form
    terms = form.terms
    if isinstance(options, Cast):
        casts = {name.casefold(): kind for name, kind in options.columns.items()}
        made = [
            (name, try_cast(terms[name.casefold()], casts[name.casefold()]))
            if name.casefold() in casts
            else (name, terms[name.casefold()])
            for name, _ in does.columns
        ]
    else:
        made = [(name, normal(expression, terms)) for name, expression in does.columns]
    return replace(form, columns=tuple(made))


def _filtered(form: NormalForm, where: str) -> NormalForm:
    added = conjuncts(normal(where, form.terms))
    return replace(form, conjuncts=tuple(dict.fromkeys((*form.conjuncts, *added))))


_AGGREGATES = {"Min": "min", "Max": "max", "Count": "count", "Avg": "avg", "Sum": "sum"}


def _window(form: NormalForm, options: EventTimeWindow) -> WindowForm:
    terms = form.terms
    keys = tuple((name, terms[name.casefold()]) for name in options.key)
    group = (
        form.base,
        form.scope,
        frozenset(form.conjuncts),
        terms[options.time.casefold()],
        options.kind,
        options.size,
        options.slide,
        options.late_by,
        keys,
    )
    columns = tuple((name, _aggregate(expression, terms)) for name, expression in options.columns.items())
    return WindowForm(group, columns, options.key)


def _aggregate(text: str, terms: Mapping[str, Term]) -> Term:
    """An aggregate that cannot overflow: count, min and max of anything, sum and mean of floating-point numbers."""
    tree = parsed_expression(text)
    name = _AGGREGATES.get(type(tree).__name__)
    extra = {key for key, value in tree.args.items() if value} - {"this", "big_int"}
    if name is None or extra:
        raise NotNormal("an aggregate")
    if name == "count" and type(tree.this).__name__ == "Star":
        return ("count",)
    inner = normal_tree(tree.this, terms)
    if name in ("sum", "avg") and kind(inner) != "double":
        raise NotNormal("a sum that may overflow")
    return (name, inner)
