"""Schemas by their number: the wire format of schema registries, and the one question that a reader asks of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from headgate.errors import InputError
from headgate.tasks.row_errors import SourceAwayError

__all__ = ["SchemaRegistry", "WrittenSchema", "numbered"]

ANSWER_S = 10.0
"""How long a registry may take to answer."""

UNKNOWN_S = 10.0
"""How long a schema is taken as unknown before the registry is asked again."""


@dataclass(frozen=True, slots=True)
class WrittenSchema:
    """A schema as its author wrote it, and those that it refers to, by the names under which it does."""

    kind: str
    """AVRO, PROTOBUF or JSON."""

    text: str
    references: Mapping[str, WrittenSchema] = field(default_factory=dict)


def numbered(value: bytes) -> tuple[int, bytes]:
    """The number of the schema by which a value is written, and the rest; raises :class:`ValueError` without one.

    >>> numbered(bytes([0, 0, 0, 1, 2]) + b"rest")
    (258, b'rest')
    """
    if len(value) < 5 or value[0] != 0:
        raise ValueError("does not begin with the number of a schema, as a registry's serializers write it")
    return int.from_bytes(value[1:5], "big"), value[5:]


class SchemaRegistry:
    """A schema registry at a URL (Confluent's protocol); what it has answered is kept, for schemas never change."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._known: dict[int, WrittenSchema] = {}
        self._unknown: dict[int, float] = {}
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raise :class:`InputError` if nobody answers at the URL."""
        try:
            self._ask("schemas/types")
        except SourceAwayError as error:
            raise InputError("SOURCE_UNREADABLE", str(error)) from None
        except LookupError:
            pass  # not every registry has this page

    def schema(self, number: int) -> WrittenSchema:
        """The schema of a number; raises :class:`ValueError` if there is none."""
        with self._lock:
            known = self._known.get(number)
            if known is not None:
                return known
            if time.monotonic() - self._unknown.get(number, -UNKNOWN_S) >= UNKNOWN_S:
                try:
                    self._known[number] = self._written(self._ask(f"schemas/ids/{number}"))
                    return self._known[number]
                except LookupError:
                    self._unknown[number] = time.monotonic()
            raise ValueError(f"the schema registry has no schema {number}")

    def _written(self, answer: Any) -> WrittenSchema:
        references = {
            str(one["name"]): self._written(self._ask(f"subjects/{one['subject']}/versions/{one['version']}"))
            for one in answer.get("references") or ()
        }
        return WrittenSchema(answer.get("schemaType") or "AVRO", answer["schema"], references)

    def _ask(self, path: str) -> Any:
        where = _without_password(self._url)
        try:
            answer = httpx.get(f"{self._url}/{path}", timeout=ANSWER_S, follow_redirects=True)
        except httpx.HTTPError as error:
            raise SourceAwayError(f"the schema registry at {where} does not answer ({error})") from None
        if answer.status_code == httpx.codes.NOT_FOUND:
            raise LookupError(path)
        if answer.is_error:
            raise SourceAwayError(f"the schema registry at {where} answers {answer.status_code}")
        return answer.json()


def _without_password(url: str) -> str:
    """A URL as it may be shown.

    >>> _without_password("https://reader:secret@registry:8081/v1")
    'https://registry:8081/v1'
    """
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
