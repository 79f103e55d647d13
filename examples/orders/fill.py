"""Fills what orders.yaml reads: the table customers and the topic orders; makes the topic alerts.

python examples/orders/fill.py [SERVERS] [DATABASE] [ORDERS]
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import confluent_kafka.admin
import sqlalchemy as sa

SERVERS = "127.0.0.1:9092"
DATABASE = "postgresql+psycopg://headgate@127.0.0.1:5432/headgate"
COUNTRIES = ("AT", "DE", "IT", "CH")


def customers(count: int = 50) -> list[dict[str, Any]]:
    """Who orders, and from which amount on somebody should have a look."""
    draw = random.Random(1)
    return [
        {"customer": n, "name": f"customer {n}", "country": draw.choice(COUNTRIES), "most": draw.choice((100.0, 500.0))}
        for n in range(count)
    ]


def orders(count: int) -> Iterator[dict[str, Any]]:
    """Orders of two days; some are of customers whom nobody knows."""
    draw = random.Random(2)
    first = datetime(2026, 11, 18, 12, tzinfo=UTC)
    for number in range(count):
        at = first + timedelta(seconds=86_400 * number / count)
        amount = round(draw.expovariate(1 / 120), 2)
        yield {"id": number, "customer": draw.randrange(55), "amount": amount, "at": at.isoformat()}


def fill(servers: str, database: str, count: int) -> None:
    """Make topics and table, and fill them."""
    admin: Any = confluent_kafka.admin
    client = admin.AdminClient({"bootstrap.servers": servers})
    wanted = [admin.NewTopic(name, 4, 1) for name in ("orders", "alerts")]
    for made in client.create_topics(wanted).values():
        if made.exception() is not None and "ALREADY_EXISTS" not in str(made.exception()):
            raise made.exception()
    engine = sa.create_engine(database)
    with engine.begin() as connection:
        connection.execute(sa.text("drop table if exists customers"))
        connection.execute(
            sa.text("create table customers (customer bigint primary key, name text, country text, most float)")
        )
        connection.execute(sa.text("insert into customers values (:customer, :name, :country, :most)"), customers())
    engine.dispose()
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for order in orders(count):
        producer.produce("orders", json.dumps(order), str(order["customer"]))
        producer.poll(0)
    producer.produce("orders", "not an order")
    producer.flush(60)


if __name__ == "__main__":
    given = sys.argv[1:]
    fill(*(given[:2] or (SERVERS, DATABASE)), int(given[2]) if len(given) > 2 else 1_000)
