"""The values of secrets: read once from the environment and a private file, and kept in the memory of this process.

They are filled into the options of sources and sinks where these are used, and taken out of every reason and message.
"""

from __future__ import annotations

import os
import stat
from collections.abc import MutableMapping
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from headgate.errors import InputError, os_reason, unknown
from headgate.model.secret import SECRET_NAME

__all__ = ["SECRETS", "SecretStore"]

PREFIX = "HEADGATE_SECRET_"
SHORTEST_HIDDEN = 4
"""Characters from which a value is looked for in texts: a shorter one would be given in every other word."""


class SecretStore:
    """Secrets by name."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._forms: list[tuple[str, str]] = []

    def load(self, environment: MutableMapping[str, str], file: Path | None = None) -> None:
        """Take secrets out of the environment, so that no process that is started from now on has them; and of a file.

        A variable ``HEADGATE_SECRET_NAME`` wins over a line ``NAME=value``.
        """
        given = {} if file is None else _of_file(file)
        for variable in [name for name in environment if name.startswith(PREFIX)]:
            given[variable.removeprefix(PREFIX)] = environment.pop(variable)
        self._values |= {name: value for name, value in given.items() if SECRET_NAME.fullmatch(name)}
        if not given:
            return
        # As they stand in a URL too. Long ones first: one may be part of another.
        forms = ((form, name) for name, value in self._values.items() for form in _forms(value))
        self._forms = sorted({one for one in forms if len(one[0]) >= SHORTEST_HIDDEN}, key=lambda one: -len(one[0]))

    @property
    def names(self) -> tuple[str, ...]:
        """The names that have a value."""
        return tuple(sorted(self._values))

    def value(self, name: str) -> str:
        """The value of a secret; raises :class:`InputError` if it has none."""
        if name not in self._values:
            remedy = f"set {PREFIX}{name} for 'headgate run', or add it to the file that [secrets] names"
            raise unknown("UNKNOWN_SECRET", f"no secret '{name}'; {remedy}", name, self._values)
        return self._values[name]

    def hidden(self, text: str) -> str:
        """A text in which each value is a reference again."""
        for form, name in self._forms:
            text = text.replace(form, f"${{secret:{name}}}")
        return text


SECRETS = SecretStore()
"""Those of this process, as environment variables are."""


def _forms(value: str) -> tuple[str, ...]:
    return value, quote(value, safe=""), quote_plus(value), unquote(value), unquote_plus(value)


def _of_file(file: Path) -> dict[str, str]:
    try:
        with file.open(encoding="utf-8") as lines:
            # Of the open file: another one may have its name a moment later.
            facts = os.fstat(lines.fileno())
            if facts.st_mode & (stat.S_IRWXG | stat.S_IRWXO) or facts.st_uid not in (os.geteuid(), 0):
                message = f"{file} can be read by others than its owner; run 'chmod 600 {file}', and change the secrets"
                raise InputError("SECRETS_NOT_PRIVATE", message)
            return dict(_entry(file, number, line) for number, line in enumerate(lines, 1) if _counts(line))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("BAD_SETTINGS", f"cannot read the secrets of {file}: {os_reason(error)}") from None


def _counts(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _entry(file: Path, number: int, line: str) -> tuple[str, str]:
    name, equals, value = line.rstrip("\r\n").partition("=")
    if not equals or not SECRET_NAME.fullmatch(name.strip()):
        message = f"{file}, line {number}: not NAME=value; a name has letters, digits and _, and begins with a letter"
        raise InputError("BAD_SETTINGS", message)
    return name.strip(), value
