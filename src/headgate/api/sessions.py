"""Sign-in for browsers: a token is handed over once, and a cookie that scripts cannot read takes its place.

The cookie holds the token's hash and a moment, signed with a key that is never written down: it lives in the process
that owns the sockets, so a cookie outlives an engine and not the service. A revoked token ends its sessions.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from headgate.access.authority import AccessRefused

__all__ = ["COOKIE", "Sessions", "check_same_origin", "leave", "remember"]

COOKIE = "headgate_session"
LIFE_S = 12 * 3600
SAFE = ("GET", "HEAD", "OPTIONS")


class Sessions:
    """Makes and reads cookies."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)

    def cookie(self, digest: str) -> str:
        """A cookie that stands for a token."""
        text = f"{digest}.{int(time.time()) + LIFE_S}"
        return f"{text}.{self._signature(text)}"

    def digest(self, cookie: str) -> str | None:
        """The hash of the token that a cookie stands for; nothing if it is not ours or has expired."""
        text, _, signature = cookie.rpartition(".")
        digest, _, until = text.partition(".")
        known = hmac.compare_digest(signature.encode(), self._signature(text).encode())
        return digest if known and until.isdigit() and int(until) > time.time() else None

    def _signature(self, text: str) -> str:
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()


def remember(response: Response, cookie: str, is_encrypted: bool) -> None:
    """Put a session into a response."""
    response.set_cookie(COOKIE, cookie, LIFE_S, path="/", secure=is_encrypted, httponly=True, samesite="strict")


def leave(response: Response) -> None:
    """Take a session back."""
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")


def check_same_origin(request: Request) -> None:
    """Raise unless a change that a browser sends with a cookie comes from our own page.

    Browsers say so themselves: in ``Sec-Fetch-Site``, and in ``Origin`` where the connection is not trusted.
    """
    if request.method in SAFE:
        return
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    own = origin is not None and urlsplit(origin).netloc == request.headers.get("host")
    if site != "same-origin" and not (site is None and own):
        message = "This change does not come from the page of this service. Open the page, or send a token."
        raise AccessRefused("FOREIGN_PAGE", message)
