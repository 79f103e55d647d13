"""The API as an application: its routes, and errors as problem documents."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from headgate import __version__
from headgate.access.authority import AccessRefused
from headgate.api.access_routes import access_routes
from headgate.api.callers import caller
from headgate.api.console_routes import console_routes
from headgate.api.event_routes import event_routes
from headgate.api.health_routes import health_routes
from headgate.api.identities import NOBODY, Identities, address_of
from headgate.api.limits import Limits
from headgate.api.metrics_routes import metrics_routes
from headgate.api.operation_routes import operation_routes
from headgate.api.page import Page, SecurityHeaders
from headgate.api.problems import CONTENT_TYPE, ProblemDocument, problem_of
from headgate.api.request_log import NoteRequest, RequestLog
from headgate.api.routes import action_of, change_routes, problem_response, read_routes
from headgate.api.sessions import Sessions
from headgate.errors import HeadgateError, InputError, refused_write
from headgate.service.metrics import EngineMetrics
from headgate.service.serve import ServedEngine

__all__ = ["Door", "application"]

DESCRIPTION = """Submit dataflows to a running engine, withdraw them, and see how they are doing.

Routes under `/v1` are stable. A refused request is answered with a problem document (RFC 9457) and changes nothing."""

CONDITIONS = {404: "UNKNOWN_ROUTE", 405: "METHOD_NOT_ALLOWED", 408: "REQUEST_TOO_SLOW", 413: "REQUEST_TOO_LARGE"}


@dataclass(frozen=True, slots=True)
class Door:
    """How the application is open to others than the Unix socket's."""

    sessions: Sessions = field(default_factory=Sessions)
    requests_per_s: float = 500.0
    """Of one caller from the network, at most."""

    page: Page = field(default_factory=Page)
    note: NoteRequest | None = None
    """Takes the facts of each request."""


def application(served: ServedEngine, door: Door | None = None) -> FastAPI:
    """The API of an engine."""
    door = door or Door()
    identities = Identities(served.policy, served.tokens, door.sessions, door.requests_per_s)
    app = FastAPI(
        title="Headgate",
        version=__version__,
        description=DESCRIPTION,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # its scripts would come from another host
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
        dependencies=[Depends(caller)],
        responses={"default": {"model": ProblemDocument, "description": "Refused; nothing has changed."}},
        exception_handlers={
            HeadgateError: _refused,
            RequestValidationError: _not_understood,
            HTTPException: _not_served,
            OSError: _not_written,
            Exception: _failed,
        },
    )
    app.openapi_version = "3.2.0"  # the first that describes event streams
    app.state.identities, app.state.refusals = identities, served.refusals
    app.include_router(health_routes(served))
    app.include_router(access_routes(served, identities))
    app.include_router(read_routes(served))
    app.include_router(change_routes(served))
    app.include_router(console_routes(served))
    app.include_router(event_routes(served))
    app.include_router(operation_routes(served))
    app.include_router(metrics_routes(served.metrics))
    app.router.default = door.page
    app.add_middleware(Limits)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(RequestLog, note=partial(_note, served.metrics, door.note))
    _describe_refusals(app)
    return app


def _note(metrics: EngineMetrics, log: NoteRequest | None, facts: dict[str, Any]) -> None:
    metrics.note_request(facts["method"], facts["route"], facts["status"], facts["seconds"])
    if log is not None:
        log(facts)


def _describe_refusals(app: FastAPI) -> None:
    """In the OpenAPI document, refusals have the media type of problem documents."""
    for operations in app.openapi()["paths"].values():
        for operation in operations.values():
            refusal = operation["responses"]["default"]
            [described] = refusal["content"].values()
            refusal["content"] = {CONTENT_TYPE: described}


def _response(error: HeadgateError, **more: Any) -> JSONResponse:
    return problem_response(problem_of(error) | more)


async def _refused(request: Request, error: Any) -> JSONResponse:
    if isinstance(error, AccessRefused):
        who = getattr(request.state, "principal", None) or replace(NOBODY, origin=address_of(request))
        request.app.state.refusals.note(who, action_of(request), error)
    return _response(error)


async def _not_understood(request: Request, error: Any) -> JSONResponse:
    """All that is wrong with a request, in place of FastAPI's own document."""
    del request
    faults = [
        {"condition": "BAD_REQUEST", "message": f"{'.'.join(map(str, fault['loc']))}: {fault['msg'].lower()}"}
        for fault in error.errors()
    ]
    message = f"The request cannot be understood: {'; '.join(fault['message'] for fault in faults[:3])}."
    return _response(InputError("BAD_REQUEST", message), errors=faults)


async def _not_served(request: Request, error: Any) -> JSONResponse:
    condition = CONDITIONS.get(error.status_code, "BAD_REQUEST")
    where = f"{request.method} {request.url.path[:100]}"
    return _response(InputError(condition, f"{where}: {str(error.detail).lower()}."))


async def _not_written(request: Request, error: Any) -> JSONResponse:
    refusal = refused_write(error)
    return await _failed(request, error) if refusal is None else _response(refusal)


async def _failed(request: Request, error: Any) -> JSONResponse:
    del request
    return _response(HeadgateError("INTERNAL", f"internal error: {type(error).__name__}: {error}"))
