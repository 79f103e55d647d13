"""Routes that only read: status, observations, the bill. None of them waits for a change."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from headgate.api.answers import BillAnswer, DataflowDetails, EngineAnswer, EngineStatus, Listing, Observations
from headgate.service.bill import bill_facts
from headgate.service.observations import latest
from headgate.service.serve import ServedEngine
from headgate.service.status import listing, status

__all__ = ["read_routes"]

Since = Annotated[float, Query(description="Only what ended after this moment, in seconds since 1970.")]
Most = Annotated[int, Query(ge=1, le=1_000, description="At most so many, the newest.")]


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
