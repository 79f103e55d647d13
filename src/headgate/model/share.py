"""Isolation classes: who may share the results of a task."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Share", "scope_of"]


class Share(StrEnum):
    """With which dataflows a task may be shared."""

    NEVER = "never"
    """With none: it runs for its own dataflow alone."""

    OWNER = "owner"
    """With dataflows of the same owner whose task says so too."""

    ANYONE = "anyone"
    """With every dataflow."""


def scope_of(share: Share, owner: str, dataflow: str) -> str:
    """Name the circle within which a task may be shared; empty for everyone.

    Tasks are equivalent only within one circle. It is part of a task's signature, and through it of the signatures of
    all tasks behind it: what comes out of a private task stays private.

    >>> scope_of(Share.ANYONE, "ana", "etl"), scope_of(Share.OWNER, "ana", "etl"), scope_of(Share.NEVER, "ana", "etl")
    ('', 'owner ana', 'dataflow etl')
    """
    if share is Share.ANYONE:
        return ""
    return f"owner {owner}" if share is Share.OWNER else f"dataflow {dataflow}"
