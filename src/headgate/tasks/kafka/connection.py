"""Connecting to Kafka: the options that sources and sinks have in common, and what they mean to the client library."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from headgate.errors import InputError, missing_package
from headgate.model.task_type import TaskConfig
from headgate.model.touching import HostNames, Touch

__all__ = ["ANSWER_S", "KafkaConfig", "kafka", "kafka_admin", "settings_of", "topics_there", "unreachable"]

ANSWER_S = 10.0
"""How long a broker may take to answer a question."""

KNOWN_S = 2.0
"""How long it may take until a topic that was made is known."""

LOG = logging.getLogger("headgate.kafka")
LOG.setLevel(logging.CRITICAL)  # what matters is raised; the library would print every attempt to connect


class KafkaConfig(TaskConfig):
    """Options of tasks that connect to Kafka."""

    servers: HostNames = Field(min_length=1, description="Bootstrap servers, comma separated.")
    tls: bool = Field(False, description="Whether to connect with TLS.")
    ca_file: Annotated[str | None, Touch.READ] = Field(
        None, description="Certificates that sign the broker's; the system's if left out."
    )
    sasl: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = Field(
        None, description="How to prove who one is, if the broker asks."
    )
    username: str | None = Field(None, description="The user; only with sasl.")
    password: str | None = Field(None, description="The password; only with sasl.")

    @model_validator(mode="after")
    def _sasl_is_whole(self) -> KafkaConfig:
        given = [self.sasl is not None, self.username is not None, self.password is not None]
        if any(given) and not all(given):
            raise ValueError("sasl, username and password belong together; give all three or none")
        if self.ca_file is not None and not self.tls:
            raise ValueError("ca_file needs tls: true")
        return self


def kafka() -> Any:
    """The client library; raises :class:`InputError` where it is not installed."""
    try:
        import confluent_kafka
    except ModuleNotFoundError as error:
        raise missing_package("MISSING_PACKAGE", "Kafka", error, "kafka") from None
    return confluent_kafka


def kafka_admin() -> Any:
    """What of the library asks brokers for what there is."""
    kafka()
    import confluent_kafka.admin

    return confluent_kafka.admin


def settings_of(options: KafkaConfig) -> dict[str, Any]:
    """The settings of the client library.

    >>> settings_of(KafkaConfig(servers="a:1", sasl="PLAIN", username="u", password="p"))["security.protocol"]
    'sasl_plaintext'
    """
    protocol = ("sasl_" if options.sasl else "") + ("ssl" if options.tls else "plaintext")
    settings: dict[str, Any] = {
        "bootstrap.servers": options.servers,
        "client.id": "headgate",
        "security.protocol": protocol,
        "reconnect.backoff.max.ms": 1_000,
        "logger": LOG,
    }
    if options.sasl is not None:
        settings |= {"sasl.mechanism": options.sasl, "sasl.username": options.username}
        settings["sasl.password"] = options.password
    if options.ca_file is not None:
        settings["ssl.ca.location"] = str(Path(options.ca_file).absolute())
    return settings


def unreachable(servers: str, error: object) -> str:
    """A sentence for a broker that does not answer, or not as it should."""
    reason = getattr(error, "str", lambda: str(error))()
    return f"Kafka at {servers} does not answer ({reason})"


def topics_there(options: KafkaConfig, wanted: Collection[str] = ()) -> set[str]:
    """The topics that there are; raises :class:`InputError` if nobody answers.

    One that was made a moment ago is not known to every broker: those that are wanted are waited for, shortly.
    """
    client = kafka_admin().AdminClient(settings_of(options))
    until = time.monotonic() + KNOWN_S
    while True:
        try:
            topics = set(client.list_topics(timeout=ANSWER_S).topics)
        except kafka().KafkaException as error:
            raise InputError("KAFKA_UNREACHABLE", unreachable(options.servers, error.args[0])) from None
        if topics.issuperset(wanted) or time.monotonic() > until:
            return topics
        time.sleep(0.1)
