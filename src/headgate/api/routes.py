"""The routes: those that change what runs may carry a request id, which makes them safe to send again."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from headgate.access.authority import Verb, check_access
from headgate.api.answers import (
    AlternateRequest,
    BillAnswer,
    Changed,
    DataflowDetails,
    DeadLettersAnswer,
    EngineAnswer,
    EngineStatus,
    LevelRequest,
    LimitRequest,
    Listing,
    Observations,
    PartitionsRequest,
    SubmissionRequest,
    WithdrawalRequest,
)
from headgate.api.callers import Caller
from headgate.api.control_routes import add_control_routes
from headgate.api.problems import CONTENT_TYPE, problem_of
from headgate.api.scopes import scope
from headgate.errors import HeadgateError
from headgate.model.redrive_result import RedriveResult
from headgate.service.bill import bill_facts, bill_span
from headgate.service.console.preview import check_snapshot
from headgate.service.engine import listing, status
from headgate.service.level import set_level
from headgate.service.observations import earliest, history, latest
from headgate.service.principal_engine import PrincipalEngine, check_bill
from headgate.service.serve import Acknowledge, Acknowledger, Answer, ServedEngine, acknowledging
from headgate.service.submit import submit, withdraw

__all__ = ["action_of", "change_routes", "problem_response", "read_routes"]

RequestId = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="An id of your choice, such as a UUID. The same id sent again gets the same answer for a day.",
    ),
]

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        pattern=r'^"plan-\d{1,18}"$',
        description="The ETag of a preview: refused if another plan snapshot runs by now.",
    ),
]

Since = Annotated[float, Query(description="Only what ended after this moment, in seconds since 1970.")]
Most = Annotated[int, Query(ge=1, le=1_000, description="At most so many, the newest.")]


class _Changes:
    """Makes changes one at a time; those that wait hold no thread."""

    def __init__(self, served: ServedEngine) -> None:
        self._served = served
        self._lock = asyncio.Lock()

    async def __call__(
        self,
        request: Request,
        who: Caller,
        request_id: str | None,
        change: Callable[[PrincipalEngine, Acknowledger | None], Mapping[str, Any]],
    ) -> JSONResponse:
        engine = self._served.acting_for(who)

        def answer(acknowledge: Acknowledger | None) -> Answer:
            try:
                return 200, change(engine, acknowledge)
            except HeadgateError as error:
                self._served.refusals.note(who, action_of(request), error)
                problem = problem_of(error)
                return problem["status"], problem

        # With the name of who asks: an answer is for nobody else, whoever guesses its id.
        asked = f"{who.name}\0{request.method} {request.url} ".encode() + await request.body()
        fingerprint = hashlib.blake2b(asked, digest_size=16).hexdigest()
        async with self._lock:
            if request_id is None:
                status, body = await run_in_threadpool(answer, None)
            else:
                status, body = await run_in_threadpool(self._served.once, request_id, fingerprint, answer)
        return JSONResponse(body) if status == 200 else problem_response(body)


def action_of(request: Request) -> str:
    """What a request asks for, as the audit has it."""
    return f"{request.method} {request.url.path}"


def problem_response(problem: Mapping[str, Any]) -> JSONResponse:
    """A problem document as a response."""
    waits = {503: {"Retry-After": "5"}, 429: {"Retry-After": "1"}, 401: {"WWW-Authenticate": "Bearer"}}
    headers = waits.get(problem["status"])
    return JSONResponse(problem, problem["status"], headers, media_type=CONTENT_TYPE)


def change_routes(served: ServedEngine) -> APIRouter:
    """The routes that change what an engine runs."""
    router, change = APIRouter(prefix="/v1"), _Changes(served)

    @router.post("/dataflows", response_model=Changed, openapi_extra=scope(Verb.SUBMIT))
    async def submit_dataflows(
        request: Request,
        body: SubmissionRequest,
        who: Caller,
        request_id: RequestId = None,
        if_match: IfMatch = None,
    ) -> Any:
        """Submit dataflows, all of them or none."""

        def act(engine: PrincipalEngine, acknowledge: Acknowledger | None) -> Mapping[str, Any]:
            check_snapshot(if_match, engine.about()["snapshot"])
            partial_too = body.allow_partial
            return submit(engine, body.dataflows, served.registry, body.replace, acknowledge, allow_partial=partial_too)

        return await change(request, who, request_id, act)

    @router.post("/withdrawals", response_model=Changed, openapi_extra=scope(Verb.CHANGE))
    async def withdraw_dataflows(
        request: Request, body: WithdrawalRequest, who: Caller, request_id: RequestId = None
    ) -> Any:
        """Withdraw dataflows, all of them or none; tasks that others share keep running."""
        return await change(request, who, request_id, partial(_withdraw, body.dataflows))

    @router.delete("/dataflows/{dataflow}", response_model=Changed, openapi_extra=scope(Verb.CHANGE))
    async def withdraw_dataflow(request: Request, dataflow: str, who: Caller, request_id: RequestId = None) -> Any:
        """Withdraw one dataflow."""
        return await change(request, who, request_id, partial(_withdraw, [dataflow]))

    @router.post("/dataflows/{dataflow}/pause", response_model=EngineAnswer, openapi_extra=scope(Verb.CHANGE))
    async def pause_dataflow(request: Request, dataflow: str, who: Caller, request_id: RequestId = None) -> Any:
        """Pause a dataflow: its sinks get no rows until it is resumed."""
        act = _then_about(lambda engine, applied: engine.pause(dataflow, applied))
        return await change(request, who, request_id, act)

    @router.post("/dataflows/{dataflow}/resume", response_model=EngineAnswer, openapi_extra=scope(Verb.CHANGE))
    async def resume_dataflow(request: Request, dataflow: str, who: Caller, request_id: RequestId = None) -> Any:
        """Resume a paused dataflow."""
        act = _then_about(lambda engine, applied: engine.resume(dataflow, applied))
        return await change(request, who, request_id, act)

    @router.patch("/dataflows/{dataflow}/level", response_model=EngineAnswer, openapi_extra=scope(Verb.CHANGE))
    async def change_level(
        request: Request, dataflow: str, body: LevelRequest, who: Caller, request_id: RequestId = None
    ) -> Any:
        """Change limits of a dataflow while it runs; what is left out stays."""
        changes = body.model_dump(exclude_unset=True)
        act = _then_about(lambda engine, applied: set_level(engine, dataflow, changes, applied))
        return await change(request, who, request_id, act)

    @router.delete("/dataflows/{dataflow}/level", response_model=EngineAnswer, openapi_extra=scope(Verb.CHANGE))
    async def reset_level(request: Request, dataflow: str, who: Caller, request_id: RequestId = None) -> Any:
        """Return to the limits that the dataflow was submitted with."""
        act = _then_about(lambda engine, applied: set_level(engine, dataflow, None, applied))
        return await change(request, who, request_id, act)

    @router.put(
        "/dataflows/{dataflow}/tasks/{task}/limit", response_model=EngineAnswer, openapi_extra=scope(Verb.CHANGE)
    )
    async def limit_task(
        request: Request, dataflow: str, task: str, body: LimitRequest, who: Caller, request_id: RequestId = None
    ) -> Any:
        """Limit how many rows a source or stateful task takes per trigger, for all dataflows that share it."""
        act = _then_about(lambda engine, applied: engine.limit(dataflow, task, body.rows, applied))
        return await change(request, who, request_id, act)

    @router.put(
        "/dataflows/{dataflow}/tasks/{task}/alternate", response_model=EngineAnswer, openapi_extra=scope(Verb.CHANGE)
    )
    async def switch_alternate(
        request: Request, dataflow: str, task: str, body: AlternateRequest, who: Caller, request_id: RequestId = None
    ) -> Any:
        """Make another alternate of a task active, for all dataflows that share it."""
        act = _then_about(lambda engine, applied: engine.switch(dataflow, task, body.alternate, applied))
        return await change(request, who, request_id, act)

    @router.post(
        "/dataflows/{dataflow}/tasks/{task}/release", response_model=EngineAnswer, openapi_extra=scope(Verb.CHANGE)
    )
    async def release_task(
        request: Request, dataflow: str, task: str, who: Caller, request_id: RequestId = None
    ) -> Any:
        """Let policies choose again how a task is done, for which a person has chosen."""
        act = _then_about(lambda engine, applied: engine.release_task(dataflow, task, applied))
        return await change(request, who, request_id, act)

    @router.put(
        "/dataflows/{dataflow}/tasks/{task}/partitions", response_model=EngineAnswer, openapi_extra=scope(Verb.CHANGE)
    )
    async def set_partitions(
        request: Request, dataflow: str, task: str, body: PartitionsRequest, who: Caller, request_id: RequestId = None
    ) -> Any:
        """Set on how many partitions a task runs."""
        act = _then_about(lambda engine, applied: engine.repartition(dataflow, task, body.partitions, applied))
        return await change(request, who, request_id, act)

    @router.post(
        "/dataflows/{dataflow}/tasks/{task}/redrive", response_model=RedriveResult, openapi_extra=scope(Verb.CHANGE)
    )
    async def redrive_letters(
        request: Request, dataflow: str, task: str, who: Caller, request_id: RequestId = None
    ) -> Any:
        """Offer the rows that failed to the task that refused them again, each exactly once; say what came of it."""
        return await change(request, who, request_id, partial(_redrive, dataflow, task))

    add_control_routes(router, served, change)
    return router


def _withdraw(names: list[str], engine: PrincipalEngine, acknowledge: Acknowledger | None) -> Mapping[str, Any]:
    return withdraw(engine, names, acknowledge)


def _redrive(dataflow: str, task: str, engine: PrincipalEngine, acknowledge: Acknowledger | None) -> Mapping[str, Any]:
    noted = None if acknowledge is None else lambda result: [acknowledge(_redriven(result))]
    return _redriven(engine.redrive(dataflow, task, noted))


def _redriven(result: RedriveResult) -> dict[str, Any]:
    return {**asdict(result), "dataflows": list(result.dataflows)}


def _then_about(
    act: Callable[[PrincipalEngine, Acknowledge | None], None],
) -> Callable[[PrincipalEngine, Acknowledger | None], Mapping[str, Any]]:
    """A change that is answered with which engine made it."""

    def answer(engine: PrincipalEngine, acknowledge: Acknowledger | None) -> Mapping[str, Any]:
        about = engine.about()
        act(engine, acknowledging(acknowledge, lambda applied: {**about, "snapshot": applied.snapshot}))
        return engine.about()

    return answer


def read_routes(served: ServedEngine) -> APIRouter:
    """The routes that read what an engine runs and has measured."""
    router = APIRouter(prefix="/v1")

    @router.get("/engine", response_model=EngineAnswer, openapi_extra=scope(Verb.READ))
    def engine_facts(who: Caller) -> Any:
        """Which engine this is."""
        return served.acting_for(who).about()

    @router.get("/dataflows", response_model=Listing, openapi_extra=scope(Verb.READ))
    def list_dataflows(who: Caller) -> Any:
        """List the dataflows, in the order of submission."""
        return listing(served.acting_for(who))

    @router.get("/dataflows/{dataflow}", response_model=DataflowDetails, openapi_extra=scope(Verb.READ))
    def dataflow_status(dataflow: str, who: Caller) -> Any:
        """Show one dataflow, and who shares its tasks."""
        return status(served.acting_for(who), dataflow)

    @router.get("/status", response_model=EngineStatus, openapi_extra=scope(Verb.READ))
    def engine_status(who: Caller) -> Any:
        """Show all dataflows and fragments, and who is over a quota."""
        engine = served.acting_for(who)
        return {**status(engine), "over_quota": engine.over_quota()}

    @router.get("/observations", response_model=Observations, openapi_extra=scope(Verb.READ))
    def observations(
        who: Caller,
        since: Since = 0.0,
        limit: Most = 1,
        oldest: Annotated[bool, Query(description="The oldest ones in place of the newest.")] = False,
    ) -> Any:
        """Read what was measured: rates, cost per row, latency, batches, workers."""
        check_access(who, Verb.READ)
        measured = earliest(served.state, since, limit) if oldest else latest(served.state, since, limit)
        return {"observations": measured}

    @router.get("/history", response_model=Observations, openapi_extra=scope(Verb.READ))
    def past(
        who: Caller,
        start: Annotated[float, Query(allow_inf_nan=False, description="In seconds since 1970.")],
        end: Annotated[float, Query(allow_inf_nan=False, description="In seconds since 1970.")],
        resolution: Annotated[float, Query(ge=1.0, allow_inf_nan=False, description="Seconds of a step.")] = 60.0,
    ) -> Any:
        """Read what was measured in a span of time: an observation for each step, with its figures."""
        check_access(who, Verb.READ)
        return {"observations": history(served.state, start, end, resolution)}

    @router.get("/dead-letters", response_model=DeadLettersAnswer, openapi_extra=scope(Verb.INSPECT))
    def dead_letters(
        who: Caller,
        dataflow: Annotated[str | None, Query(description="Only those of tasks that this dataflow uses.")] = None,
        task: Annotated[str | None, Query(description="Only those of this task.")] = None,
    ) -> Any:
        """Show the rows for which tasks raised, with the errors: those of the dataflows that you may inspect."""
        return {"dead_letters": served.acting_for(who).dead_letters(served.state, dataflow, task)}

    @router.get("/bill", response_model=BillAnswer, openapi_extra=scope(Verb.INSPECT))
    def bill(
        who: Caller,
        owner: Annotated[str | None, Query(description="Only what this owner pays.")] = None,
        since: Annotated[float | None, Query(description="From this moment on, in seconds since 1970.")] = None,
        until: Annotated[float | None, Query(description="Up to this moment, in seconds since 1970.")] = None,
        period_s: Annotated[float | None, Query(gt=0, description="Machines are charged in whole periods.")] = None,
    ) -> Any:
        """Show who pays what."""
        check_bill(who, owner)
        return bill_facts(served.state, owner, bill_span(since, until, period_s))

    return router
