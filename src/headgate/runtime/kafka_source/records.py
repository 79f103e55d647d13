"""Records of ranges, from the brokers, in a worker. A process keeps its connections from one task to the next."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from headgate.runtime.kafka_source.ranges import Range
from headgate.tasks.kafka.connection import kafka, settings_of, unreachable
from headgate.tasks.kafka.read import ReadKafka
from headgate.tasks.row_errors import SourceAwayError, UnreadableSourceError

__all__ = ["LostError", "records_of"]

AT_ONCE = 10_000
"""Records that are handed over together."""

PATIENCE_S = 20.0
"""How long brokers may be silent before the task gives its core back; the epoch is tried again later."""


class LostError(Exception):
    """The broker has removed records of a range before they were read."""

    def __init__(self, lost: Range) -> None:
        super().__init__(f"{lost.topic}[{lost.partition}] offsets {lost.first} to {lost.last - 1}")
        self.lost = lost


def records_of(options: ReadKafka, spans: Sequence[Range]) -> Iterator[Sequence[Any] | LostError]:
    """The records of some ranges, no two of the same partition; those of a partition come in their order.

    Where records have been removed, that is handed over instead, once for each range.
    """
    consumer = _consumer(options.model_dump_json())
    todo = {(span.topic, span.partition): span for span in spans}
    _assign(consumer, todo)
    heard = time.monotonic()
    while todo:
        messages = consumer.consume(1, 1.0)
        messages += consumer.consume(AT_ONCE, 0) if messages else []
        if not messages and time.monotonic() - heard > PATIENCE_S:
            _consumer.cache_clear()
            raise SourceAwayError(unreachable(options.servers, f"no records for {PATIENCE_S:g} s"))
        good, lost = _sorted_out(messages, todo, options)
        if messages:
            heard = time.monotonic()
        if good:
            yield good
        for span in lost:
            yield from _skip_lost(consumer, options.servers, span, todo)
    consumer.unassign()


def _sorted_out(
    messages: Sequence[Any], todo: dict[tuple[str, int], Range], options: ReadKafka
) -> tuple[list[Any], list[Range]]:
    """The records that are wanted, and the ranges of which some are gone; ranges that were read are taken off."""
    codes = kafka().KafkaError
    good: list[Any] = []
    lost: list[Range] = []
    for message in messages:
        place = (message.topic(), message.partition())
        span, error = todo.get(place), message.error()
        if error is not None and error.code() not in (codes._PARTITION_EOF, codes._AUTO_OFFSET_RESET):
            if error.fatal() or not error.retriable():
                raise UnreadableSourceError(unreachable(options.servers, error))
        elif span is None:
            continue
        elif error is not None and error.code() == codes._AUTO_OFFSET_RESET:
            lost.append(span)
        elif error is not None or message.offset() >= span.last:
            del todo[place]
        else:
            good.append(message)
            if message.offset() == span.last - 1:
                del todo[place]
            else:
                todo[place] = span._replace(first=message.offset() + 1)
    return good, lost


def _skip_lost(consumer: Any, servers: str, span: Range, todo: dict[tuple[str, int], Range]) -> Iterator[LostError]:
    """Go on at the first record that there still is."""
    try:
        low, _ = consumer.get_watermark_offsets(kafka().TopicPartition(span.topic, span.partition), timeout=PATIENCE_S)
    except kafka().KafkaException as error:
        raise SourceAwayError(unreachable(servers, error.args[0])) from None
    if low > span.first:
        yield LostError(span._replace(last=min(low, span.last)))
    place = (span.topic, span.partition)
    if low >= span.last:
        del todo[place]
    else:
        todo[place] = span._replace(first=max(low, span.first))
    _assign(consumer, todo)


def _assign(consumer: Any, todo: dict[tuple[str, int], Range]) -> None:
    consumer.assign([kafka().TopicPartition(span.topic, span.partition, span.first) for span in todo.values()])


@lru_cache(maxsize=4)
def _consumer(options: str) -> Any:
    """A connection for the tasks of a source that this process runs, one after the other."""
    parsed = ReadKafka.model_validate(json.loads(options))
    return kafka().Consumer(
        {
            **settings_of(parsed),
            "group.id": "headgate",  # the library wants one; nothing is committed to it
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            # A range is known to be there, so that nobody needs to wait for more.
            "fetch.wait.max.ms": 5,
            "queued.max.messages.kbytes": 16_384,
        }
    )
