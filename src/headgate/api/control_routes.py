"""The routes of the controller: which policy decides, what was decided and why, and the engine's machines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request

from headgate.access.authority import Verb
from headgate.api.callers import Caller
from headgate.api.control_answers import (
    AcquireRequest,
    DecisionDetails,
    DecisionsAnswer,
    MachineAnswer,
    MachinesAnswer,
    PolicyAnswer,
    PolicyChosenAnswer,
    PolicyRequest,
    ReleasedMachine,
    ScaleAnswer,
    ScaleRequest,
)
from headgate.api.scopes import scope
from headgate.service.serve import ServedEngine

__all__ = ["add_control_routes"]

RequestId = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
Since = Annotated[float, Query(description="Only what was decided after this moment, in seconds since 1970.")]
Most = Annotated[int, Query(ge=1, le=1_000, description="At most so many, the newest.")]

MakeChange = Callable[..., Awaitable[Any]]


def add_control_routes(router: APIRouter, served: ServedEngine, change: MakeChange) -> None:
    """Add the routes; ``change`` makes a change once, however often it is asked for with one request id."""
    _add_reading(router, served)
    _add_changing(router, served, change)


def _add_reading(router: APIRouter, served: ServedEngine) -> None:
    @router.get("/policy", response_model=PolicyAnswer, openapi_extra=scope(Verb.READ))
    def policy(who: Caller) -> Any:
        """Show which policy decides, what it thought last, and what is being done."""
        return served.control_for(who).policy()

    @router.get("/decisions", response_model=DecisionsAnswer, openapi_extra=scope(Verb.READ))
    def decisions(who: Caller, since: Since = 0.0, limit: Most = 100) -> Any:
        """Show what was decided, and what became of it."""
        return {"decisions": served.control_for(who).decisions(since, limit)}

    @router.get("/decisions/{number}", response_model=DecisionDetails, openapi_extra=scope(Verb.READ))
    def why(
        number: Annotated[int, Path(ge=1)],
        who: Caller,
        again: Annotated[bool, Query(description="Make it again from its record.")] = False,
    ) -> Any:
        """Show why something was decided, its steps, and what came of it."""
        return served.control_for(who).why(number, again)

    @router.get("/machines", response_model=MachinesAnswer, openapi_extra=scope(Verb.READ))
    def machines(who: Caller, gone: Annotated[bool, Query(description="Also those that are gone.")] = False) -> Any:
        """Show the machines that the engine runs on."""
        return served.control_for(who).machines(gone)


def _add_changing(router: APIRouter, served: ServedEngine, change: MakeChange) -> None:
    @router.put("/policy", response_model=PolicyChosenAnswer, openapi_extra=scope(Verb.OPERATE))
    async def choose_policy(request: Request, body: PolicyRequest, who: Caller, request_id: RequestId = None) -> Any:
        """Let another policy decide, in another mode, or within other limits."""
        given = body.model_dump(include=body.model_fields_set)
        policy, mode = given.pop("policy", None), given.pop("mode", None)
        return await change(
            request, who, request_id, lambda _engine, _done: served.control_for(who).choose(policy, mode, given)
        )

    @router.post("/machines", response_model=MachineAnswer, openapi_extra=scope(Verb.OPERATE))
    async def acquire_machine(request: Request, body: AcquireRequest, who: Caller, request_id: RequestId = None) -> Any:
        """Acquire a machine."""
        return await change(
            request, who, request_id, lambda _engine, done: served.control_for(who).acquire(body.vm_class, done)
        )

    @router.delete("/machines/{machine}", response_model=ReleasedMachine, openapi_extra=scope(Verb.OPERATE))
    async def release_machine(request: Request, machine: str, who: Caller, request_id: RequestId = None) -> Any:
        """Release a machine after its current work."""
        return await change(request, who, request_id, lambda _engine, _done: served.control_for(who).release(machine))

    @router.put("/executors", response_model=ScaleAnswer, openapi_extra=scope(Verb.OPERATE))
    async def scale(request: Request, body: ScaleRequest, who: Caller, request_id: RequestId = None) -> Any:
        """Have so many executors."""
        return await change(
            request, who, request_id, lambda _engine, _done: served.control_for(who).scale(body.executors)
        )
