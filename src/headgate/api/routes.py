"""The routes: those that change what runs may carry a request id, which makes them safe to send again."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from headgate.api.answers import (
    AlternateRequest,
    BillAnswer,
    Changed,
    DataflowDetails,
    EngineAnswer,
    EngineStatus,
    LimitRequest,
    Listing,
    Observations,
    PartitionsRequest,
    SubmissionRequest,
    WithdrawalRequest,
)
from headgate.api.problems import CONTENT_TYPE, problem_of
from headgate.errors import HeadgateError
from headgate.service.bill import bill_facts
from headgate.service.engine import listing, status
from headgate.service.observations import latest
from headgate.service.serve import Acknowledger, Answer, ServedEngine, acknowledging
from headgate.service.submit import submit, withdraw

__all__ = ["change_routes", "problem_response", "read_routes"]

RequestId = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="An id of your choice, such as a UUID. The same id sent again gets the same answer for a day.",
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
        self, request: Request, request_id: str | None, change: Callable[[Acknowledger | None], Mapping[str, Any]]
    ) -> JSONResponse:
        def answer(acknowledge: Acknowledger | None) -> Answer:
            try:
                return 200, change(acknowledge)
            except HeadgateError as error:
                problem = problem_of(error)
                return problem["status"], problem

        asked = b"%s %s " % (request.method.encode(), str(request.url).encode()) + await request.body()
        fingerprint = hashlib.blake2b(asked, digest_size=16).hexdigest()
        async with self._lock:
            if request_id is None:
                status, body = await run_in_threadpool(answer, None)
            else:
                status, body = await run_in_threadpool(self._served.once, request_id, fingerprint, answer)
        return JSONResponse(body) if status == 200 else problem_response(body)


def problem_response(problem: Mapping[str, Any]) -> JSONResponse:
    """A problem document as a response."""
    headers = {"Retry-After": "5"} if problem["status"] == 503 else None
    return JSONResponse(problem, problem["status"], headers, media_type=CONTENT_TYPE)


def change_routes(served: ServedEngine) -> APIRouter:
    """The routes that change what an engine runs."""
    router, change, engine = APIRouter(prefix="/v1"), _Changes(served), served.engine

    @router.post("/dataflows", response_model=Changed)
    async def submit_dataflows(request: Request, body: SubmissionRequest, request_id: RequestId = None) -> Any:
        """Submit dataflows, all of them or none."""
        act = partial(submit, engine, body.dataflows, served.registry, body.replace)
        return await change(request, request_id, act)

    @router.post("/withdrawals", response_model=Changed)
    async def withdraw_dataflows(request: Request, body: WithdrawalRequest, request_id: RequestId = None) -> Any:
        """Withdraw dataflows, all of them or none; tasks that others share keep running."""
        return await change(request, request_id, partial(withdraw, engine, body.dataflows))

    @router.delete("/dataflows/{dataflow}", response_model=Changed)
    async def withdraw_dataflow(request: Request, dataflow: str, request_id: RequestId = None) -> Any:
        """Withdraw one dataflow."""
        return await change(request, request_id, partial(withdraw, engine, [dataflow]))

    @router.post("/dataflows/{dataflow}/pause", response_model=EngineAnswer)
    async def pause_dataflow(request: Request, dataflow: str, request_id: RequestId = None) -> Any:
        """Pause a dataflow: its sinks get no rows until it is resumed."""
        return await change(request, request_id, _then_about(partial(engine.pause, dataflow)))

    @router.post("/dataflows/{dataflow}/resume", response_model=EngineAnswer)
    async def resume_dataflow(request: Request, dataflow: str, request_id: RequestId = None) -> Any:
        """Resume a paused dataflow."""
        return await change(request, request_id, _then_about(partial(engine.resume, dataflow)))

    @router.put("/dataflows/{dataflow}/tasks/{task}/limit", response_model=EngineAnswer)
    async def limit_task(
        request: Request, dataflow: str, task: str, body: LimitRequest, request_id: RequestId = None
    ) -> Any:
        """Limit how many rows a source or stateful task takes per trigger, for all dataflows that share it."""
        return await change(request, request_id, _then_about(partial(engine.limit, dataflow, task, body.rows)))

    @router.put("/dataflows/{dataflow}/tasks/{task}/alternate", response_model=EngineAnswer)
    async def switch_alternate(
        request: Request, dataflow: str, task: str, body: AlternateRequest, request_id: RequestId = None
    ) -> Any:
        """Make another alternate of a task active, for all dataflows that share it."""
        return await change(request, request_id, _then_about(partial(engine.switch, dataflow, task, body.alternate)))

    @router.post("/dataflows/{dataflow}/tasks/{task}/release", response_model=EngineAnswer)
    async def release_task(request: Request, dataflow: str, task: str, request_id: RequestId = None) -> Any:
        """Let policies choose again how a task is done, for which a person has chosen."""
        return await change(request, request_id, _then_about(partial(engine.release_task, dataflow, task)))

    @router.put("/dataflows/{dataflow}/tasks/{task}/partitions", response_model=EngineAnswer)
    async def set_partitions(
        request: Request, dataflow: str, task: str, body: PartitionsRequest, request_id: RequestId = None
    ) -> Any:
        """Set on how many partitions a task runs."""
        act = _then_about(partial(engine.repartition, dataflow, task, body.partitions))
        return await change(request, request_id, act)

    def _then_about(act: Callable[..., None]) -> Callable[[Acknowledger | None], Mapping[str, Any]]:
        def answer(acknowledge: Acknowledger | None) -> Mapping[str, Any]:
            about = engine.about()
            act(acknowledge=acknowledging(acknowledge, lambda applied: {**about, "snapshot": applied.snapshot}))
            return engine.about()

        return answer

    return router


def read_routes(served: ServedEngine) -> APIRouter:
    """The routes that read what an engine runs and has measured."""
    router, engine = APIRouter(prefix="/v1"), served.engine

    @router.get("/engine", response_model=EngineAnswer)
    def engine_facts() -> Any:
        """Which engine this is."""
        return engine.about()

    @router.get("/dataflows", response_model=Listing)
    def list_dataflows() -> Any:
        """List the dataflows, in the order of submission."""
        return listing(engine)

    @router.get("/dataflows/{dataflow}", response_model=DataflowDetails)
    def dataflow_status(dataflow: str) -> Any:
        """Show one dataflow, and who shares its tasks."""
        return status(engine, dataflow)

    @router.get("/status", response_model=EngineStatus)
    def engine_status() -> Any:
        """Show all dataflows and fragments."""
        return status(engine)

    @router.get("/observations", response_model=Observations)
    def observations(since: Since = 0.0, limit: Most = 1) -> Any:
        """Read what was measured: rates, cost per row, latency, batches, workers."""
        return {"observations": latest(served.state, since, limit)}

    @router.get("/bill", response_model=BillAnswer)
    def bill(owner: Annotated[str | None, Query(description="Only what this owner pays.")] = None) -> Any:
        """Show who pays what."""
        return bill_facts(served.state, owner)

    return router
