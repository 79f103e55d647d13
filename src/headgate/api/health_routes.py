"""The routes that say whether the service lives, and which it is."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from headgate import __version__
from headgate.access.authority import Verb
from headgate.api.access_answers import Health, VersionAnswer
from headgate.api.callers import Caller
from headgate.api.scopes import scope
from headgate.service.serve import ServedEngine

__all__ = ["API_VERSION", "health_routes"]

API_VERSION = "1"


def health_routes(served: ServedEngine) -> APIRouter:
    """The routes that say whether the service lives, and which it is."""
    router, began = APIRouter(), time.time()

    @router.get("/livez", response_model=Health, openapi_extra=scope(None))
    async def alive() -> Any:
        """Say that the service is alive, also while an engine is being started."""
        return {"ready": True}

    @router.get("/readyz", response_model=Health, responses={503: {"model": Health}}, openapi_extra=scope(None))
    def ready() -> Any:
        """Say whether the engine can do its work, and what it lacks if not."""
        health = served.health(began)
        return health if health["ready"] else JSONResponse(health, 503, headers={"Retry-After": "5"})

    @router.get("/v1/version", response_model=VersionAnswer, openapi_extra=scope(Verb.READ))
    async def version(who: Caller) -> Any:
        """Say which version serves."""
        del who
        return {"version": __version__, "api": API_VERSION}

    return router
