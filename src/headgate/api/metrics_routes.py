"""The route that Prometheus reads."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse

from headgate.access.authority import Verb
from headgate.api.callers import Caller
from headgate.api.scopes import scope
from headgate.service.metrics import EngineMetrics

__all__ = ["metrics_routes"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics_routes(metrics: EngineMetrics) -> APIRouter:
    """The route that Prometheus reads."""
    router = APIRouter()

    @router.get("/metrics", response_class=PlainTextResponse, openapi_extra=scope(Verb.READ))
    def read_metrics(who: Caller) -> Response:
        """Read the metrics, in the text format of Prometheus."""
        del who
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    return router
