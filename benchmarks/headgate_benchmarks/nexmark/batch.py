"""Nexmark's answers by plain batch SQL over all events at once, and whether a stream's answers are the same.

The formulations are others than those of the dataflows: no window functions of event time, no state, no order of
arrival. Rows of the marks of the end (ids of -1) count on neither side.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from headgate_benchmarks.nexmark.events import COLUMNS
from headgate_benchmarks.nexmark.flows import CATEGORY, CURRENCY, LAST, SOME_AUCTIONS, STATES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ANSWERS", "answer", "comparable", "fingerprint"]

TABLES = {
    "person": "id, name, city, state, at",
    "auction": "id, seller, category, at, expires",
    "bid": "auction, bidder, price, at, extra",
}
"""The tables, and their columns."""

_WON = """
    with offers as (
        select bid.auction, seller, category, expires, price,
            row_number() over (partition by bid.auction order by price desc) as place
        from bid join auction on bid.auction = auction.id and bid.at >= auction.at and bid.at <= expires),
    won as (select * from offers where place = 1)
"""

ANSWERS: Mapping[str, str] = {
    "q0": "select auction, bidder, price, at, extra from bid",
    "q1": f"select auction, bidder, {CURRENCY} * price as price, at, extra from bid",
    "q2": f"select auction, price from bid where mod(auction, {SOME_AUCTIONS}) = 0",
    "q3": f"""
        select name, city, state, auction.id as auction from person, auction
        where person.id = seller and category = {CATEGORY} and array_contains(array{STATES}, state)""",
    "q4": f"{_WON} select category, count(*) as auctions, avg(price) as average from won group by category",
    "q5": """
        with placed as (
            select auction, explode(sequence(0, 4)) as back, floor(unix_millis(at) / 2000) as step from bid),
        counted as (select step - back as first, auction, count(*) as bids from placed group by all),
        most as (select first, max(bids) as bids from counted group by first)
        select timestamp_millis(first * 2000) as window_start, timestamp_millis(first * 2000 + 10000) as window_end,
            auction, bids
        from counted join most using (first, bids)""",
    "q6": f"""{_WON}
        select seller, auction, avg(price) over
            (partition by seller order by expires, auction rows between {LAST - 1} preceding and current row) as average
        from won""",
    "q7": """
        select auction, bidder, price, at, extra
        from (select *, max(price) over (partition by floor(unix_millis(at) / 10000)) as highest from bid)
        where price = highest""",
    "q8": """
        select distinct person.id, name, timestamp_millis(floor(unix_millis(person.at) / 10000) * 10000) as window_start
        from person join auction on person.id = seller
            and floor(unix_millis(person.at) / 10000) = floor(unix_millis(auction.at) / 10000)""",
}
"""Each query in batch SQL over the tables person, auction and bid."""

COMPARABLE: Mapping[str, str] = {
    "q0": "select auction, bidder, price, unix_millis(at), extra from answers where auction > 0",
    "q1": "select auction, bidder, cast(price * 1000 as bigint), unix_millis(at), extra from answers where auction > 0",
    "q2": "select auction, price from answers where auction > 0",
    "q3": "select name, city, state, auction from answers where auction > 0",
    # Of averages that come anew with every auction, the last; the sums of cents in them are exact.
    "q4": """
        select category, max(auctions), round(max_by(average, auctions), 6) from answers
        where category > 0 group by category""",
    "q5": "select unix_millis(window_start), unix_millis(window_end), auction, bids from answers where auction > 0",
    "q6": "select seller, auction, round(average, 6) from answers where seller > 0",
    "q7": "select auction, bidder, price, unix_millis(at), extra from answers where auction > 0",
    "q8": "select id, name, unix_millis(window_start) from answers where id > 0",
}


def answer(spark: SparkSession, folder: Path, query: str) -> DataFrame:
    """A query's answer over all events in the files of a folder."""
    everything = spark.read.schema(COLUMNS).json(str(folder))
    everything.where("coalesce(id, auction) > 0").createOrReplaceTempView("nexmark_events")
    for kind, columns in TABLES.items():
        spark.sql(f"select {columns} from nexmark_events where event = '{kind}'").createOrReplaceTempView(kind)
    return spark.sql(ANSWERS[query])


def comparable(query: str, answers: DataFrame) -> DataFrame:
    """A query's answers in a form in which they can be compared."""
    named = answers.sparkSession.sql(COMPARABLE[query].replace("answers", "{answers}"), answers=answers)
    return named.toDF(*(f"c{place}" for place in range(len(named.columns))))


def fingerprint(query: str, answers: DataFrame) -> tuple[int, int]:
    """How many rows there are, and the sum of their hashes: the same for the same rows in any order."""
    rows = comparable(query, answers)
    columns = ", ".join(rows.columns)
    first = rows.selectExpr("count(*)", f"sum(cast(xxhash64({columns}) as decimal(38, 0)))").first()
    assert first is not None
    return int(first[0]), int(first[1] or 0)
