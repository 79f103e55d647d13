"""Functions that a dataflow names by their import path."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator

from headgate.errors import BadValue, InputError, shorten
from headgate.model.touching import Touch

__all__ = ["ImportPath", "is_import_path", "load_function"]


_IMPORT_PATH = re.compile(r"[A-Za-z_]\w*([.:][A-Za-z_]\w*)+\Z")


def is_import_path(text: str) -> bool:
    """Tell whether a text could name a function in a module.

    >>> is_import_path("topics.bayes"), is_import_path("bayes"), is_import_path("a..b")
    (True, False, False)
    """
    return len(text) <= 512 and _IMPORT_PATH.match(text) is not None


def _checked_path(text: str) -> str:
    if not is_import_path(text):
        raise BadValue(f"{shorten(text)} is not an import path", "such as package.module.function")
    return text


ImportPath = Annotated[str, AfterValidator(_checked_path), Touch.MODULES]


def load_function(path: str) -> Callable[..., Any]:
    """The function that an import path names, ``package.module.function`` or ``package.module:function``.

    >>> load_function("math.floor")(2.5)
    2
    """
    module, _, name = path.replace(":", ".").rpartition(".")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError("NO_SUCH_FUNCTION", f"cannot load function '{path}': {error}") from None
    if not callable(function):
        raise InputError("NO_SUCH_FUNCTION", f"'{path}' is not a function")
    return function  # type: ignore[no-any-return]
