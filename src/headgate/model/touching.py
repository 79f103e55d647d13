"""What a task touches outside of Spark: files, other systems, code. Options say it by a mark on their fields.

path: ReadPath = Field(description="Folder of the files.")
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel

__all__ = ["HostNames", "ReadPath", "Touch", "Touched", "WrittenPath", "marked"]


class Touch(StrEnum):
    """A way to touch something, which is also the name of the list of what may be touched so."""

    READ = "read"
    WRITE = "write"
    HOSTS = "hosts"
    """Connect to a host, ``name`` or ``name:port``, or several of them."""

    MODULES = "modules"
    """Call a function of a Python module."""


ReadPath = Annotated[str, Touch.READ]
"""A path or URL that is read."""

WrittenPath = Annotated[str, Touch.WRITE]
"""A path or URL that is written to."""

HostNames = Annotated[str, Touch.HOSTS]
"""A host to connect to, or several, comma separated."""


@dataclass(frozen=True, slots=True)
class Touched:
    """Something that a task touches: a path, a URL, a host, or the import path of a function."""

    how: Touch
    what: str
    option: str
    makes_files: bool = True
    """Of what is written: whether files come into being, and not only go."""


def marked(options: BaseModel) -> Iterator[Touched]:
    """What the marks on the fields of options say that they touch."""
    for name, field in type(options).model_fields.items():
        value = getattr(options, name)
        for how in (mark for mark in field.metadata if isinstance(mark, Touch)):
            for text in [value] if isinstance(value, str) else value or ():
                for one in text.split(",") if how is Touch.HOSTS else (text,):
                    yield Touched(how, one.strip(), name)
