"""Short names for long identities."""

from __future__ import annotations

import hashlib

__all__ = ["digest"]


def digest(text: str) -> str:
    """Sixteen hexadecimal digits that stand for a text."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
