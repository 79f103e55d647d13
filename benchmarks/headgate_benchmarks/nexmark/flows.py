"""Nexmark's queries 0 to 8 as dataflows; examples/nexmark has the same as files.

All nine begin with the same source and the same parsing, and those over bids with the same bids: merged, that is done
once. What each query asks:

====  ===================================================================================
q0    every bid as it is
q1    every bid, its price in another currency
q2    the bids on some auctions
q3    who sells in category 10 and lives in Oregon, Idaho or California
q4    the average closing price of each category, anew with every auction that closes
q5    the auctions with the most bids in the last ten seconds, every two seconds
q6    the average closing price of each seller's last ten auctions
q7    the highest bid of every ten seconds
q8    who joined and opened an auction within the same ten seconds
====  ===================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from headgate.documents import parse
from headgate.model.dataflow import Dataflow
from headgate_benchmarks.nexmark.events import COLUMNS

__all__ = ["QUERIES", "document", "flow"]

SOURCE, OUT = "data/nexmark", "out/nexmark"
CURRENCY, SOME_AUCTIONS, CATEGORY, STATES = "0.908", 123, 10, ("OR", "ID", "CA")
LAST = 10
OPEN_AT_MOST = "1min"
"""No auction is open for longer; the generator's are open for seconds."""

FOR_EVER = "365d"
"""Query 3 joins people and auctions however far apart; Spark wants to know when it may forget."""

Task = dict[str, Any]


def _task(name: str, kind: str, inputs: list[Any], /, **config: Any) -> Task:
    return {"id": name, "type": kind, "config": config, "inputs": inputs}


def _of_kind(kind: str, *columns: str) -> Task:
    """The events of a kind, with columns of theirs."""
    where = {"from": "parse", "where": f"event = '{kind}'"}
    return _task(f"{kind}s", "select", [where], columns=list(columns))


BIDS = _of_kind("bid", "auction", "bidder", "price", "at", "extra")
PRICES = _task("prices", "select", ["bids"], columns=["auction", "price", "at"])
OPENED = _of_kind("auction", "id", "seller", "category", "at", "expires")


def _renamed(name: str, before: str, **columns: str) -> Task:
    return _task(name, "rename", [before], columns=columns)


def _q0() -> list[Task]:
    return [BIDS]


def _q1() -> list[Task]:
    return [BIDS, _task("euros", "derive", ["bids"], columns={"price": f"price * {CURRENCY}"})]


def _q2() -> list[Task]:
    return [
        BIDS,
        _task("some", "filter", ["bids"], where=f"auction % {SOME_AUCTIONS} = 0"),
        _task("answer", "select", ["some"], columns=["auction", "price"]),
    ]


def _q3() -> list[Task]:
    states = ", ".join(f"'{state}'" for state in STATES)
    return [
        OPENED,
        _task("wanted", "filter", ["auctions"], where=f"category = {CATEGORY}"),
        _renamed("offers", "wanted", id="auction", seller="id"),
        _of_kind("person", "id", "name", "city", "state", "at"),
        _task("local", "filter", ["persons"], where=f"state in ({states})"),
        _task("met", "join", ["offers", "local"], on=["id"], time=["at", "at"], within=FOR_EVER),
        _task("answer", "select", ["met"], columns=["name", "city", "state", "auction"]),
    ]


def _closed() -> list[Task]:
    """The highest bid of each auction that got one, once it is over."""
    return [
        BIDS,
        PRICES,
        OPENED,
        _renamed("offers", "auctions", id="auction", at="opened"),
        _task("bidding", "join", ["offers", "prices"], on=["auction"], time=["opened", "at"], within=OPEN_AT_MOST),
        _task("valid", "filter", ["bidding"], where="at between opened and expires"),
        # The stream's event time is now when auctions end, which is up to a minute after the bids that bring them.
        _task(
            "closed",
            "window",
            ["valid"],
            time="expires",
            size="1s",
            late_by=OPEN_AT_MOST,
            key=["auction", "seller", "category"],
            columns={"final": "max(price)", "ended": "max(expires)"},
        ),
    ]


def _q4() -> list[Task]:
    return [
        *_closed(),
        _task(
            "mean",
            "running",
            ["closed"],
            key=["category"],
            column="final",
            columns={"auctions": "count", "average": "mean"},
        ),
        _task("answer", "select", ["mean"], columns=["category", "auctions", "average"]),
    ]


def _q5() -> list[Task]:
    first = "select *, rank() over (partition by window_end order by bids desc) as place from `in`"
    columns = "window_start timestamp, window_end timestamp, auction bigint, bids bigint"
    return [
        BIDS,
        PRICES,
        _task(
            "counted",
            "window",
            ["prices"],
            time="at",
            kind="sliding",
            size="10s",
            slide="2s",
            key=["auction"],
            columns={"bids": "count(*)"},
        ),
        # All of a window comes in one micro-batch, so a query over a micro-batch sees the whole window.
        _task(
            "hottest",
            "sql",
            ["counted"],
            query=f"select window_start, window_end, auction, bids from ({first}) where place = 1",
            columns=columns,
        ),
    ]


def _q6() -> list[Task]:
    return [
        *_closed(),
        # Micro-batches are in the order in which auctions close; within one it takes sorting.
        _task(
            "in_order",
            "sql",
            ["closed"],
            query="select seller, auction, final from `in` order by ended, auction",
            columns="seller bigint, auction bigint, final bigint",
        ),
        _task("mean", "moving_average", ["in_order"], key=["seller"], column="final", size=LAST, into="average"),
        _task("answer", "select", ["mean"], columns=["seller", "auction", "average"]),
    ]


def _q7() -> list[Task]:
    return [
        BIDS,
        PRICES,
        _task("highest", "window", ["prices"], time="at", size="10s", columns={"price": "max(price)"}),
        _task("who", "join", ["bids", "highest"], on=["price"], time=["at", "window_end"], within="10s"),
        _task("of_window", "filter", ["who"], where="at >= window_start and at < window_end"),
        _task("answer", "select", ["of_window"], columns=["auction", "bidder", "price", "at", "extra"]),
    ]


def _q8() -> list[Task]:
    return [
        _of_kind("person", "id", "name", "city", "state", "at"),
        _task(
            "joined",
            "derive",
            ["persons"],
            columns={"window_start": "timestamp_seconds(floor(unix_millis(at) / 10000) * 10)"},
        ),
        OPENED,
        _task("sellers", "window", ["auctions"], time="at", size="10s", key=["seller"], columns={"n": "count(*)"}),
        _renamed("new", "sellers", seller="id"),
        _task("met", "join", ["joined", "new"], on=["id", "window_start"], time=["at", "window_end"], within="10s"),
        _task("answer", "select", ["met"], columns=["id", "name", "window_start"]),
    ]


QUERIES: Mapping[str, Callable[[], list[Task]]] = {
    "q0": _q0,
    "q1": _q1,
    "q2": _q2,
    "q3": _q3,
    "q4": _q4,
    "q5": _q5,
    "q6": _q6,
    "q7": _q7,
    "q8": _q8,
}


def document(query: str, source: str = SOURCE, out: str = OUT, files_per_batch: int | None = None) -> dict[str, Any]:
    """A query as a dataflow's document: it reads events from a folder of files and writes its answers to another."""
    config: dict[str, Any] = {"path": source, "format": "text"}
    if files_per_batch is not None:
        config["files_per_batch"] = files_per_batch
    steps = QUERIES[query]()
    tasks = [
        {"id": "events", "type": "read_files", "config": config},
        _task("parse", "parse_json", ["events"], columns=COLUMNS),
        *steps,
        _task("write", "write_files", [steps[-1]["id"]], path=f"{out}/{query}", format="parquet"),
    ]
    return {"name": f"nexmark_{query}", "owner": f"team_{query}", "tasks": tasks}


def flow(query: str, source: str = SOURCE, out: str = OUT, files_per_batch: int | None = None) -> Dataflow:
    """A query as a dataflow."""
    return parse(json.dumps(document(query, source, out, files_per_batch)), "json").dataflow
