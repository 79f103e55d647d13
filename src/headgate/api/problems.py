"""Errors as RFC 9457 problem documents, and back: the triple of condition, message and parameters, with all faults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from headgate.errors import Fault, HeadgateError, Infeasible, InputError, InvalidDataflow, Place

__all__ = ["CONTENT_TYPE", "ProblemDocument", "ProblemFault", "error_of", "problem_of", "status_of"]

CONTENT_TYPE = "application/problem+json"

STATUSES = {
    "BAD_REQUEST": 400,
    "NOT_AUTHENTICATED": 401,
    "NOT_ALLOWED": 403,
    "FOREIGN_PAGE": 403,
    "UNKNOWN_ROUTE": 404,
    "UNKNOWN_DATAFLOW": 404,
    "UNKNOWN_TASK": 404,
    "UNKNOWN_ALTERNATE": 404,
    "UNKNOWN_OWNER": 404,
    "UNKNOWN_DECISION": 404,
    "UNKNOWN_MACHINE": 404,
    "UNKNOWN_TOKEN": 404,
    "UNKNOWN_OPERATION": 404,
    "NO_DEAD_LETTERS": 404,
    "NOTHING_TO_BILL": 404,
    "SNAPSHOT_GONE": 404,
    "METHOD_NOT_ALLOWED": 405,
    "REQUEST_TOO_SLOW": 408,
    "DATAFLOW_CHANGED": 409,
    "NAME_TAKEN": 409,
    "PLAN_STALE": 412,
    "TOKEN_EXISTS": 409,
    "REQUEST_TOO_LARGE": 413,
    "TOO_MANY_REQUESTS": 429,
    "ENGINE_STARTING": 503,
    "ENGINE_STOPPED": 503,
    "REDRIVE_BUSY": 503,
    "OPERATIONS_BUSY": 503,
    "NO_ROOM": 507,
}
"""The HTTP status of a condition; others have 422 if the request can be mended, and 500 if not."""


class ProblemFault(BaseModel):
    """One fault of a dataflow, or of a request."""

    condition: str
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    task: str | None = None
    expected: str | None = None
    nearest: str | None = None


class ProblemDocument(BaseModel):
    """Why a request was refused: a problem document (RFC 9457)."""

    type: str = Field(description="/problems/ and the condition.")
    title: str
    status: int
    detail: str = Field(description="The message: a sentence for people.")
    condition: str = Field(description="A stable name that programs may test.")
    parameters: dict[str, Any]
    errors: list[ProblemFault] = Field(description="All faults of a dataflow or request.")


def status_of(error: HeadgateError) -> int:
    """The HTTP status of an error."""
    return STATUSES.get(error.condition, 422 if isinstance(error, InputError | Infeasible) else 500)


def problem_of(error: HeadgateError) -> dict[str, Any]:
    """An error as a problem document.

    >>> problem = problem_of(InputError("UNKNOWN_DATAFLOW", "no dataflow 'a'"))
    >>> problem["type"], problem["title"], problem["status"], problem["detail"]
    ('/problems/UNKNOWN_DATAFLOW', 'Unknown dataflow', 404, "no dataflow 'a'")
    """
    faults = error.faults if isinstance(error, InvalidDataflow) else ()
    return ProblemDocument(
        type=f"/problems/{error.condition}",
        title=error.condition.replace("_", " ").capitalize(),
        status=status_of(error),
        detail=error.message,
        condition=error.condition,
        parameters=error.parameters,
        errors=[ProblemFault.model_validate(fault.as_dict()) for fault in faults],
    ).model_dump(mode="json", fallback=str)


def error_of(problem: Mapping[str, Any]) -> HeadgateError:
    """The error that a problem document was made of."""
    known = ProblemDocument.model_validate(problem)
    if known.condition == "INVALID_DATAFLOW":
        return InvalidDataflow(_fault(fault) for fault in known.errors)
    kind = HeadgateError if known.status >= 500 and known.condition not in STATUSES else InputError
    return kind(known.condition, known.detail, known.parameters)


def _fault(fault: ProblemFault) -> Fault:
    place = Place(fault.file, fault.line, fault.column)
    return Fault(fault.condition, fault.message, place, fault.task, fault.expected, fault.nearest)
