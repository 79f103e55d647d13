"""Who sends a request: the user at the other end of the Unix socket, a token, or a browser that has signed in."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from headgate.access.authority import LEAST_ROLES, AccessRefused, Verb, check_access
from headgate.access.policy import AccessPolicy
from headgate.access.principal import AccessRole, Principal
from headgate.api.callers import Peer, principal_of
from headgate.api.rate_limits import RateLimit
from headgate.api.scopes import OPEN, UNDECLARED, scope_of
from headgate.api.sessions import COOKIE, Sessions, check_same_origin
from headgate.service.tokens import Tokens, digest_of

__all__ = ["NOBODY", "Identities", "address_of"]

NOBODY = Principal("nobody")

FAILURES_PER_S, FAILURES_AT_ONCE = 0.2, 20.0
"""How often an address may show a token that is not known."""


class Identities:
    """Knows who sends a request, and whether the route is for them."""

    def __init__(self, policy: AccessPolicy, tokens: Tokens, sessions: Sessions, per_s: float = 500.0) -> None:
        self._policy, self.tokens, self.sessions = policy, tokens, sessions
        self._requests = RateLimit(per_s, 2 * per_s)
        self._failures = RateLimit(FAILURES_PER_S, FAILURES_AT_ONCE)

    def admit(self, request: Request) -> Principal:
        """Who sends a request; raises :class:`AccessRefused` for somebody unknown or without the role."""
        route = request.scope.get("route")
        declared = scope_of(route)
        if declared == UNDECLARED:
            path = getattr(route, "path", request.url.path)
            message = f"'{path}' is open to nobody: the route declares no scope (openapi_extra=scope(...))."
            raise AccessRefused("NOT_ALLOWED", message)
        if declared == OPEN:
            return self._anybody(request)
        who = self._known(request)
        request.state.principal = who
        if who.role is AccessRole.NONE:
            check_access(who, Verb.READ)
        if not who.is_at_least(LEAST_ROLES[Verb(declared)]):
            check_access(who, Verb(declared))
        return who

    def sign_in(self, secret: str, request: Request) -> tuple[Principal, str]:
        """Who carries a token, and the cookie that takes its place.

        Raises :class:`AccessRefused` for a token that is not known.
        """
        digest = digest_of(secret)
        return self._of_digest(digest, request), self.sessions.cookie(digest)

    def _anybody(self, request: Request) -> Principal:
        if getattr(request.state, "peer", None) is None:
            self._requests.check(address_of(request))
        return NOBODY

    def _known(self, request: Request) -> Principal:
        given: Principal | None = getattr(request.state, "principal", None)
        if given is not None:
            return given
        peer: Peer | None = getattr(request.state, "peer", None)
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        cookie = request.cookies.get(COOKIE)
        if secret and scheme.lower() == "bearer":
            who = self._of_digest(digest_of(secret.strip()), request)
        elif peer is not None:
            return principal_of(peer, self._policy)
        elif cookie is not None:
            who = self._of_digest(self.sessions.digest(cookie) or "", request)
            check_same_origin(request)
        else:
            raise AccessRefused("NOT_AUTHENTICATED", "This request does not say who sends it; send a token with it.")
        self._requests.check(who.name)
        return who

    def _of_digest(self, digest: str, request: Request) -> Principal:
        address = address_of(request)
        self._failures.check(address, taken=0.0)
        who = self.tokens.principal(digest, f"token, {address}")
        if who is None:
            self._failures.allows(address)
            raise AccessRefused("NOT_AUTHENTICATED", "This token is not known, or it was revoked or has expired.")
        return who


def address_of(request: Any) -> str:
    """From where a request comes."""
    client = request.client
    return "unix socket" if client is None or not client.host else str(client.host)
