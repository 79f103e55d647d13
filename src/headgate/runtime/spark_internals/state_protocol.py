"""Many reads and writes of a map state at once.

Spark's worker asks the state store for one key at a time and waits for each answer, over a socket; with a few rows per
key, waiting is most of what a keyed host does. The store answers in order whatever it is asked, so questions can be
sent ahead of the answers. The public calls cannot do that; this module speaks their protocol with the classes they use
themselves, which is why it goes with one minor version of Spark (``pyproject.toml``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql.streaming.proto import StateMessage_pb2 as messages
from pyspark.sql.streaming.stateful_processor import MapState

__all__ = ["PipelinedMap"]

PROTOCOL = 0
"""The version of the protocol, which goes before every message."""

AHEAD = 256
"""Requests sent before their answers are read."""

AHEAD_BYTES = 32 * 1024
"""As much as certainly fits into the sockets' buffers: the store may be stuck with an answer until we read it."""


class PipelinedMap:
    """A map from a text to bytes in Spark's state store; of ``state`` both key and value have one field."""

    def __init__(self, state: MapState) -> None:
        self._name = state._stateName
        self._maps = state._mapStateClient
        self._client: Any = self._maps._stateful_processor_api_client
        self._sent = self._sent_bytes = 0

    def get(self, keys: Sequence[str]) -> list[bytes | None]:
        """The values of some keys, ``None`` for those that have none."""
        values: list[bytes | None] = []
        for key in keys:
            values += self._ask(messages.MapStateCall(stateName=self._name, getValue=self._get(key)))
        return values + self._answers()

    def put(self, items: Iterable[tuple[str, bytes]]) -> None:
        """Set the values of some keys."""
        for key, value in items:
            written = self._client._serialize_to_bytes(self._maps.value_schema, (value,))
            update = messages.UpdateValue(userKey=self._key(key), value=written)
            self._ask(messages.MapStateCall(stateName=self._name, updateValue=update), is_long=False)
        self._answers()

    def _key(self, key: str) -> bytes:
        return bytes(self._client._serialize_to_bytes(self._maps.user_key_schema, (key,)))

    def _get(self, key: str) -> Any:
        return messages.GetValue(userKey=self._key(key))

    def _ask(self, call: Any, is_long: bool = True) -> list[bytes | None]:
        """Send a call, after reading the answers to those before it if too many are out; returns those answers.

        ``is_long`` says that answers may be long, so that the store may have to wait for us while we send.
        """
        request = messages.StateVariableRequest(mapStateCall=call)
        message = messages.StateRequest(stateVariableRequest=request).SerializeToString()
        full = self._sent >= AHEAD or (is_long and self._sent_bytes + len(message) > AHEAD_BYTES)
        answers = self._answers() if full else []
        self._client.sockfile.write(struct.pack("!ii", PROTOCOL, len(message)) + message)
        self._sent += 1
        self._sent_bytes += len(message)
        return answers

    def _answers(self) -> list[bytes | None]:
        self._client.sockfile.flush()
        values: list[bytes | None] = []
        for _ in range(self._sent):
            status, error, value = self._client._receive_proto_message()
            if status != 0:
                raise RuntimeError(f"Spark's state store answered: {error}")
            values.append(self._client._deserialize_from_bytes(value)[0] if value else None)
        self._sent = self._sent_bytes = 0
        return values
