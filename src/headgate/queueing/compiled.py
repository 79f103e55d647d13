"""Loops compiled by Numba where it is installed; without it they run as they are written."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

__all__ = ["compiled", "compiles"]

Loop = TypeVar("Loop", bound=Callable[..., Any])


@cache
def compiles() -> bool:
    """Whether Numba is installed."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


@cache
def _compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    if not compiles():
        return loop
    from numba import njit

    return cast("Callable[..., Any]", njit(cache=True)(loop))


def compiled(loop: Loop) -> Loop:
    """The loop as machine code, compiled when it is first called and kept on disk beside its source."""
    return cast("Loop", _compiled(loop))
