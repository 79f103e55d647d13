"""Which aggregate a call is, for the types of its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.errors import InputError
from headgate.tasks.chains.aggregate_text import AggregateCall
from headgate.tasks.chains.aggregates.bags import Collected, MostFrequent, OfDistinct, Percentile
from headgate.tasks.chains.aggregates.base import Aggregate
from headgate.tasks.chains.aggregates.extremes import Arrival, Extreme, ExtremeBy
from headgate.tasks.chains.aggregates.moments import Comoments, Moments
from headgate.tasks.chains.aggregates.sketches import ApproxDistinct, ApproxPercentile
from headgate.tasks.chains.aggregates.sums import Average, Counted, Sum, number_type
from headgate.tasks.heavy import pa

__all__ = ["aggregate_of"]

_MOMENTS = frozenset(("stddev_samp", "stddev_pop", "var_samp", "var_pop", "skewness", "kurtosis"))
_COMOMENTS = frozenset(("corr", "covar_pop", "covar_samp"))


def aggregate_of(call: AggregateCall, kinds: Sequence[Any]) -> Aggregate:
    """The aggregate of a call whose arguments have these Arrow types."""
    if call.distinct:
        bag = Collected(kinds[0], distinct=True)
        inner = aggregate_of(AggregateCall(call.function, call.arguments), kinds)
        return OfDistinct(bag, inner, 0 if call.function == "count" else None)
    match call.function:
        case "count":
            return Counted()
        case "sum":
            return Sum(number_type(kinds[0], "sum"))
        case "avg":
            return Average(number_type(kinds[0], "avg"))
        case "min" | "max":
            return Extreme(_ordered(kinds[0], call.function), call.function == "max")
        case "min_by" | "max_by":
            return ExtremeBy(kinds[0], _ordered(kinds[1], call.function), call.function == "max_by")
        case "first" | "last":
            return Arrival(kinds[0], call.function == "last", bool(call.constants[0]))
        case "collect_list" | "collect_set":
            return Collected(kinds[0], call.function == "collect_set")
        case "mode":
            return MostFrequent(Collected(_ordered(kinds[0], "mode"), distinct=False))
        case "approx_count_distinct":
            return ApproxDistinct(*(float(error) for error in call.constants if not isinstance(error, tuple)))
        case "percentile" | "median":
            number_type(kinds[0], call.function)
            return Percentile(Collected(kinds[0], distinct=False), *_shares(call))
        case "approx_percentile":
            return _approx_percentile(call, kinds[0])
        case function if function in _MOMENTS:
            number_type(kinds[0], function)
            return Moments(function)
        case function if function in _COMOMENTS:
            for kind in kinds:
                number_type(kind, function)
            return Comoments(function)
    raise InputError("TASK_REFUSED", f"aggregate '{call.function}' is not computed")


def _ordered(kind: Any, function: str) -> Any:
    """A type that has an order; others are refused."""
    types = pa.types
    if types.is_struct(kind):
        for field in kind:
            _ordered(field.type, function)
    elif types.is_nested(kind):
        raise InputError(
            "TASK_REFUSED", f"'{function}' of {kind} is not computed; take a field of it, or to_json of it"
        )
    return kind


def _shares(call: AggregateCall) -> tuple[tuple[float, ...], bool]:
    wanted = call.constants[0]
    shares = wanted if isinstance(wanted, tuple) else (float(wanted),)
    if not all(0 <= share <= 1 for share in shares):
        raise InputError("TASK_REFUSED", f"'{call.function}' of {wanted}; take shares from 0.0 to 1.0")
    return shares, isinstance(wanted, tuple)


def _approx_percentile(call: AggregateCall, kind: Any) -> Aggregate:
    types = pa.types
    if types.is_nested(kind) or types.is_string(kind) or types.is_binary(kind) or types.is_boolean(kind):
        raise InputError("TASK_REFUSED", f"'approx_percentile' of {kind} is not computed; cast it to a number")
    accuracy = call.constants[1] if len(call.constants) > 1 else 10_000
    if isinstance(accuracy, tuple) or not 1 <= accuracy <= 50_000:
        raise InputError("TASK_REFUSED", f"'approx_percentile' with accuracy {accuracy}; take 1 to 50,000")
    return ApproxPercentile(kind, *_shares(call), int(accuracy))
