"""What a route asks of who sends a request. A route that does not say is refused to everybody."""

from __future__ import annotations

from typing import Any

from headgate.access.authority import Verb

__all__ = ["OPEN", "UNDECLARED", "scope", "scope_of"]

OPEN = "open"
"""Nobody needs to say who they are."""

UNDECLARED = "undeclared"
_KEY = "x-scope"


def scope(verb: Verb | None) -> dict[str, Any]:
    """The declaration of a route, as its ``openapi_extra``: what the role of who asks must allow at least.

    ``None`` is for routes that are open. Whether somebody may do it to this object is checked where the work is done.
    """
    return {_KEY: OPEN if verb is None else verb.value}


def scope_of(route: Any) -> str:
    """What a route has declared."""
    declared = (getattr(route, "openapi_extra", None) or {}).get(_KEY, UNDECLARED)
    return str(declared)
