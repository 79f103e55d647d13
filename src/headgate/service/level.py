"""Changing what was agreed for a dataflow while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from headgate.documents.document import ServiceLevelDocument
from headgate.errors import InputError
from headgate.model.service_level import ServiceLevel
from headgate.service.engine import RunningEngine
from headgate.sharing.applied import Acknowledge

__all__ = ["changed_level", "set_level"]


def set_level(
    engine: RunningEngine, name: str, changes: Mapping[str, Any] | None, acknowledge: Acknowledge | None = None
) -> None:
    """Change some limits of a running dataflow, or return to those of its author; all of them or none.

    Raises :class:`InputError` for what cannot be agreed upon; nothing has changed then.
    """
    engine.shared.running.find(name)
    if changes is None:
        engine.set_level(name, None, acknowledge)
        return
    now = next(flow.service_level for flow in engine.dataflows if flow.name == name)
    engine.set_level(name, changed_level(now, changes), acknowledge)


def changed_level(level: ServiceLevel, changes: Mapping[str, Any]) -> ServiceLevel:
    """A service level with other limits, checked as those of a file are; ``None`` removes a limit.

    >>> changed_level(ServiceLevel(), {"latency_max_s": 2.0}).latency_max_s
    2.0
    >>> changed_level(ServiceLevel(), {"throughput_min": 1.5})
    Traceback (most recent call last):
        ...
    headgate.errors.InputError: throughput_min: input should be less than or equal to 1 (given: 1.5)
    """
    if not changes:
        raise InputError("NO_LEVEL", "no limit is given that is to change; name one, such as latency_max_s")
    names = ServiceLevelDocument.model_fields
    fields = {name: getattr(level, name) for name in names} | dict(changes)
    usual = {name: field.default for name, field in names.items()}
    required = {name: usual[name] for name, value in fields.items() if value is None and usual[name] is not None}
    try:
        return ServiceLevelDocument.model_validate(fields | required).value()
    except ValidationError as error:
        reasons = "; ".join(_reason(dict(fault)) for fault in error.errors(include_url=False))
        raise InputError("BAD_LEVEL", reasons, {"changes": {k: str(v) for k, v in changes.items()}}) from None


def _reason(fault: Mapping[str, Any]) -> str:
    place = ".".join(map(str, fault["loc"]))
    message = fault["msg"].removeprefix("Value error, ")
    return f"{place}: {message[:1].lower()}{message[1:]} (given: {fault['input']})" if place else message
