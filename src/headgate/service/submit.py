"""Submit dataflows to a running engine: all of them or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headgate.documents.check import check
from headgate.documents.located import Located
from headgate.errors import Fault, InvalidDataflow
from headgate.service.engine import RunningEngine
from headgate.service.facts import submission_facts, withdrawal_facts
from headgate.service.serve import Acknowledger, acknowledging
from headgate.service.submission import split_submission
from headgate.sharing.applied import Applied
from headgate.sharing.deduplicate import SignedDataflow, deduplicate
from headgate.tasks.registry import Registry

__all__ = ["applied_facts", "submit"]


def submit(
    engine: RunningEngine,
    documents: Sequence[Mapping[str, Any]],
    registry: Registry,
    replace: bool = False,
    acknowledge: Acknowledger | None = None,
) -> Mapping[str, Any]:
    """Submit dataflows as documents; answers what each reuses and adds, and which fragments the change affects.

    Each is checked and signed here, once. One that already runs exactly as given is left as it is. What ``acknowledge``
    makes of the answer becomes durable with the change. Raises :class:`~headgate.errors.InputError` for a dataflow that
    is not valid, a name that is taken and for what Spark refuses; nothing has changed then.
    """
    todo = split_submission(engine.shared.running, _signed(documents, registry), replace)
    given = (*todo.new, *todo.replacing)
    about = {**engine.about(), "continued": [signed.name for signed in todo.continued]}
    if not given:
        return {**about, "submitted": [], "withdrawn": [], "fragments": {"touched": [], "started": [], "restarted": []}}

    answer = acknowledging(acknowledge, lambda applied: {**about, **applied_facts(applied)})
    applied = engine.submit(*given, replace=replace, acknowledge=answer)
    return {**about, **applied_facts(applied)}


def applied_facts(applied: Applied) -> dict[str, Any]:
    """What submissions and withdrawals have changed."""
    return {
        "snapshot": applied.snapshot,
        "submitted": [submission_facts(submission) for submission in applied.submissions],
        "withdrawn": [withdrawal_facts(change) for change in applied.withdrawals],
        "fragments": {
            "touched": list(applied.touched),
            "started": list(applied.started),
            "restarted": list(applied.restarted),
        },
    }


def _signed(documents: Sequence[Mapping[str, Any]], registry: Registry) -> list[SignedDataflow]:
    flows, faults = [], list[Fault]()
    for document in documents:
        try:
            flows.append(deduplicate(check(Located(document, "request", lambda: None), registry).dataflow))
        except InvalidDataflow as error:
            faults += error.faults
    if faults:
        raise InvalidDataflow(faults)
    return flows
