"""The routes of long work: what-ifs on the past, their progress and result, and what a policy recommends now."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Response

from headgate.access.authority import ENGINE, Verb, check_access
from headgate.api.callers import Caller
from headgate.api.operation_answers import OperationAnswer, OperationsAnswer, RecommendationAnswer, WhatIfQuestion
from headgate.api.scopes import scope
from headgate.service.serve import ServedEngine

__all__ = ["operation_routes"]

RequestId = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
Operation = Annotated[str, Path(description="Its id.", max_length=100)]


def operation_routes(served: ServedEngine) -> APIRouter:
    """The routes of long work. What the past has cost is for those who may see all bills."""
    router, operations = APIRouter(prefix="/v1"), served.operations

    @router.post("/what-ifs", response_model=OperationAnswer, status_code=202, openapi_extra=scope(Verb.OPERATE))
    def start_what_if(body: WhatIfQuestion, who: Caller, response: Response, request_id: RequestId = None) -> Any:
        """Start to simulate the past under other policies, rates and prices; the result comes in the operation."""
        check_access(who, Verb.OPERATE)
        facts = operations.what_if(who.name, body.model_dump(), request_id)
        response.headers["Location"] = f"/v1/operations/{facts['id']}"
        return facts

    @router.get("/operations", response_model=OperationsAnswer, openapi_extra=scope(Verb.INSPECT))
    def list_operations(who: Caller) -> Any:
        """List long work, newest first, without results."""
        check_access(who, Verb.INSPECT, ENGINE)
        return {"operations": operations.listing()}

    @router.get("/operations/{operation}", response_model=OperationAnswer, openapi_extra=scope(Verb.INSPECT))
    def get_operation(operation: Operation, who: Caller) -> Any:
        """Show how far long work is, and its result when it is done."""
        check_access(who, Verb.INSPECT, ENGINE)
        return operations.get(operation)

    @router.delete("/operations/{operation}", response_model=OperationAnswer, openapi_extra=scope(Verb.OPERATE))
    def cancel_operation(operation: Operation, who: Caller) -> Any:
        """End long work; what has ended stays as it is."""
        check_access(who, Verb.OPERATE)
        return operations.cancel(operation)

    @router.get("/recommendation", response_model=RecommendationAnswer, openapi_extra=scope(Verb.READ))
    def recommendation(
        who: Caller, policy: Annotated[str, Query(description="Which policy is asked.", max_length=100)] = "exact"
    ) -> Any:
        """Show what a policy would do now, and why. Nothing is changed."""
        return served.recommend(who, policy)

    return router
