"""Loops compiled by Numba where it is installed; without it they run as they are written."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

__all__ = ["borrowing", "compiled", "compiles"]

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
def _compiled(loop: Callable[..., Any], **options: bool) -> Callable[..., Any]:
    if not compiles():
        return loop
    from numba import njit

    return cast("Callable[..., Any]", njit(cache=True, **options)(loop))  # type: ignore[call-overload]


def compiled(loop: Loop) -> Loop:
    """The loop as machine code, compiled when it is first called and kept on disk beside its source.

    What it calls is compiled into it: who changes that deletes the ``*.nbi`` beside the callers, or touches them.
    """
    return cast("Loop", _compiled(loop))


def borrowing(loop: Loop) -> Loop:
    """The same for a loop that neither makes nor returns arrays: it does not count who holds those that it reads.

    Counting is atomic; for thirty arrays and as many tasks it takes longer than the work.
    """
    return cast("Loop", _compiled(loop, _nrt=False))
