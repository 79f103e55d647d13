"""The example with Kafka, PostgreSQL and Delta: what comes out, computed from what its program puts in."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from headgate.documents import parse
from headgate.runtime.engine.engine import Engine
from tests.kafka import committed
from tests.runtime.small import wait_for
from tests.services import the_broker, the_database
from tests.tasks.test_delta_sink import content

FOLDER = Path(__file__).parents[2] / "examples" / "orders"


def _program() -> Any:
    spec = importlib.util.spec_from_file_location("orders_fill", FOLDER / "fill.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.spark
def test_orders_alerts_and_history(engine: Engine, tmp_path: Path) -> None:
    servers, database, fill = the_broker().servers, the_database().url, _program()
    fill.fill(servers, database, 1_000)
    text = (FOLDER / "orders.yaml").read_text(encoding="utf-8")
    for before, after in (
        (fill.SERVERS, servers),
        (fill.DATABASE, database),
        ("out/orders", str(tmp_path / "orders")),
    ):
        assert before in text
        text = text.replace(before, after)
    engine.submit(parse(text, "yaml").dataflow)
    wait_for(lambda: _is_done(engine), "the orders are through")
    known = {one["customer"]: one for one in fill.customers()}
    orders = [order for order in fill.orders(1_000) if order["customer"] in known]
    large = {order["id"]: order for order in orders if order["amount"] > known[order["customer"]]["most"]}
    assert 0 < len(large) < len(orders) < 1_000
    alerts = committed("alerts")
    assert sorted(_number(alert) for alert in alerts) == sorted(large)
    for alert in alerts:
        order = large[_number(alert)]
        assert alert["key"] == str(order["customer"])
        assert alert["headers"] == ["country", known[order["customer"]]["country"]]
    history = content(tmp_path / "orders", "id, amount, name")
    assert sorted(history) == sorted((o["id"], o["amount"], known[o["customer"]]["name"]) for o in orders)
    assert {path.name for path in (tmp_path / "orders").glob("day=*")} == {"day=2026-11-18", "day=2026-11-19"}
    (status,), _ = engine.status()
    assert status.rows_dead == 1
    assert "not a JSON object" in status.reason


def _is_done(engine: Engine) -> bool:
    engine.wait_until_idle()
    return engine.status()[0][0].rows_dead == 1


def _number(record: dict[str, Any]) -> int:
    number: int = json.loads(record["payload"])["id"]
    return number
