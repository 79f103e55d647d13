"""The API in this process, without a socket."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from headgate.access.policy import AccessPolicy
from headgate.access.principal import AccessRole, Principal
from headgate.access.rules import TenantRules
from headgate.api.application import application
from headgate.service.control import ControlLoop
from headgate.service.serve import ServedEngine
from headgate.tasks.registry import default_registry
from tests.api.fake import FakeEngine

REGISTRY = default_registry()
ADMIN = Principal("root", AccessRole.ADMIN)


class InProcess:
    """Sends requests to the API of an engine that goes on with what its state directory holds."""

    def __init__(
        self,
        engine: FakeEngine,
        who: Principal | None = ADMIN,
        policy: AccessPolicy | None = None,
        rules: TenantRules | None = None,
        control: ControlLoop | None = None,
    ) -> None:
        self.app = application(ServedEngine(engine, REGISTRY, policy, rules, control))
        self.who = who

    def __call__(self, method: str, path: str, request_id: str | None = None, **more: Any) -> httpx.Response:
        return self.together((method, path, request_id, more))[0]

    def together(self, *requests: tuple[str, str, str | None, dict[str, Any]]) -> list[httpx.Response]:
        """Answers to requests that are sent at the same time."""

        async def send() -> list[httpx.Response]:
            transport = httpx.ASGITransport(self._as_caller, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://engine/v1") as client:
                return await asyncio.gather(
                    *(
                        client.request(method, path, **{"headers": {"Idempotency-Key": name} if name else None, **more})
                        for method, path, name, more in requests
                    )
                )

        return asyncio.run(send())

    async def _as_caller(self, scope: Any, receive: Any, send: Any) -> None:
        """Say who asks, as what authenticates a request does."""
        scope["state"] = {} if self.who is None else {"principal": self.who}
        await self.app(scope, receive, send)
