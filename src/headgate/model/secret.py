"""References to secrets in the options of tasks: ``${secret:NAME}`` stands for a value that no dataflow contains."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["MENTION", "SECRET_NAME", "filled_in", "misspelt_references", "secret_names"]

MENTION = "${secret:"
SECRET_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_REFERENCE = re.compile(r"\$\{secret:(" + SECRET_NAME.pattern + r")\}")


def secret_names(text: str) -> tuple[str, ...]:
    """The secrets that a text refers to, in order of first mention.

    >>> secret_names("postgresql://app:${secret:CITY_DB}@db/city?token=${secret:TOKEN}&again=${secret:TOKEN}")
    ('CITY_DB', 'TOKEN')
    """
    return tuple(dict.fromkeys(_REFERENCE.findall(text))) if MENTION in text else ()


def misspelt_references(text: str) -> bool:
    """Whether something in a text begins like a reference and is none.

    >>> misspelt_references("${secret:A}"), misspelt_references("${secret:}"), misspelt_references("${secret:A-B}")
    (False, True, True)
    """
    return text.count(MENTION) != len(_REFERENCE.findall(text))


def filled_in(text: str, value: Callable[[str], str]) -> str:
    """A text with the values of the secrets that it refers to.

    >>> filled_in("app:${secret:CITY_DB}@db", {"CITY_DB": "tr0ut"}.__getitem__)
    'app:tr0ut@db'
    """
    return _REFERENCE.sub(lambda match: value(match[1]), text)
