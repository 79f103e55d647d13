"""The routes about who may use the service: who you are, tokens, sign-in, the audit."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from headgate.access.authority import Verb, check_access
from headgate.access.principal import AccessRole
from headgate.api.access_answers import MadeToken, SessionRequest, TokenAnswer, TokenRequest, TokensAnswer
from headgate.api.answers import AccessAnswer, AuditAnswer, Me
from headgate.api.callers import Caller
from headgate.api.identities import Identities
from headgate.api.scopes import scope
from headgate.api.sessions import leave, remember
from headgate.service.access import access_facts, me_facts
from headgate.service.audit import audit
from headgate.service.serve import ServedEngine

__all__ = ["access_routes"]

Since = Annotated[float, Query(description="Only what came after this moment, in seconds since 1970.")]
Most = Annotated[int, Query(ge=1, le=1_000, description="At most so many, the newest.")]


def access_routes(served: ServedEngine, identities: Identities) -> APIRouter:
    """The routes about who may use the service."""
    router = APIRouter(prefix="/v1")

    @router.get("/me", response_model=Me, openapi_extra=scope(Verb.READ))
    def me(who: Caller) -> Any:
        """Who you are to this engine, and what you may do."""
        return me_facts(who)

    @router.get("/access", response_model=AccessAnswer, openapi_extra=scope(Verb.READ))
    def access(who: Caller) -> Any:
        """Show who has which role, and the members of teams."""
        check_access(who, Verb.READ)
        engine = served.acting_for(who)
        return access_facts(served.policy, served.rules, engine.dataflows, engine.measured_use())

    @router.get("/audit", response_model=AuditAnswer, openapi_extra=scope(Verb.AUDIT))
    def audit_entries(who: Caller, since: Since = 0.0, limit: Most = 100) -> Any:
        """Show who changed what, and what was refused."""
        check_access(who, Verb.AUDIT)
        return {"entries": audit(served.state, since, limit)}

    @router.post("/tokens", response_model=MadeToken, openapi_extra=scope(Verb.GRANT))
    async def create_token(body: TokenRequest, who: Caller) -> Any:
        """Make a token. Its secret is in this answer and nowhere else, so this request has no Idempotency-Key."""
        role = AccessRole(body.role)
        return await run_in_threadpool(served.tokens.create, who, body.name, role, body.teams, body.expires_in_s)

    @router.get("/tokens", response_model=TokensAnswer, openapi_extra=scope(Verb.GRANT))
    def list_tokens(who: Caller) -> Any:
        """List the tokens, without their secrets."""
        return served.tokens.listing(who)

    @router.delete("/tokens/{token}", response_model=TokenAnswer, openapi_extra=scope(Verb.GRANT))
    async def revoke_token(token: Annotated[str, Path(description="Its name.")], who: Caller) -> Any:
        """Revoke a token, and end the sessions that it has begun."""
        return await run_in_threadpool(served.tokens.revoke, who, token)

    @router.post("/session", response_model=Me, openapi_extra=scope(None))
    async def sign_in(body: SessionRequest, request: Request, response: Response) -> Any:
        """Sign a browser in with a token: the answer sets a cookie, which the following requests carry."""
        who, cookie = identities.sign_in(body.token, request)
        remember(response, cookie, is_encrypted=request.url.scheme == "https")
        return me_facts(who)

    @router.delete("/session", status_code=204, openapi_extra=scope(None))
    async def sign_out(response: Response) -> None:
        """Sign a browser out."""
        leave(response)

    return router
