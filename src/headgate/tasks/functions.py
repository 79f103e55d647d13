"""Functions that a dataflow names by their import path."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from headgate.errors import InputError

__all__ = ["load_function"]


def load_function(path: str) -> Callable[..., Any]:
    """The function that an import path names, ``package.module.function`` or ``package.module:function``.

    >>> load_function("math.floor")(2.5)
    2
    """
    module, _, name = path.replace(":", ".").rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError("NO_SUCH_FUNCTION", f"cannot load function '{path}': {error}") from None
    if not callable(found):
        raise InputError("NO_SUCH_FUNCTION", f"'{path}' is not a function")
    return found  # type: ignore[no-any-return]
