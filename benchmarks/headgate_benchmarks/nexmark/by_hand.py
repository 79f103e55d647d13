"""Nexmark's queries 0 to 8 as one would write them in PySpark by hand: a Structured Streaming query each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate_benchmarks.nexmark.events import COLUMNS
from headgate_benchmarks.nexmark.flows import CATEGORY, CURRENCY, LAST, SOME_AUCTIONS, STATES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BY_HAND", "run_by_hand"]

SECONDS_10 = "interval 10 seconds"


def _bids(events: DataFrame) -> DataFrame:
    return events.where("event = 'bid'").select("auction", "bidder", "price", "at", "extra")


def _auctions(events: DataFrame) -> DataFrame:
    return events.where("event = 'auction'").select("id", "seller", "category", "at", "expires")


def _persons(events: DataFrame) -> DataFrame:
    return events.where("event = 'person'").select("id", "name", "city", "state", "at")


def _q0(events: DataFrame) -> DataFrame:
    return _bids(events)


def _q1(events: DataFrame) -> DataFrame:
    return _bids(events).selectExpr("auction", "bidder", f"{CURRENCY} * price as price", "at", "extra")


def _q2(events: DataFrame) -> DataFrame:
    return _bids(events).where(f"auction % {SOME_AUCTIONS} = 0").select("auction", "price")


def _q3(events: DataFrame) -> DataFrame:
    offers = _auctions(events).where(f"category = {CATEGORY}").selectExpr("id as auction", "seller")
    local = _persons(events).where(f"state in {STATES}")
    return offers.join(local, offers.seller == local.id).select("name", "city", "state", "auction")


def _closed(events: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    offers = _auctions(events).selectExpr("id", "seller", "category", "at as opened", "expires")
    offers = offers.withWatermark("expires", "1 minute")
    bids = _bids(events).select("auction", "price", "at").withWatermark("at", "0 seconds")
    during = "at >= opened and at <= expires and at >= expires - interval 1 minute"
    joined = offers.join(bids, F.expr(f"id = auction and {during}"))
    joined = joined.select("auction", "seller", "category", "expires", "price")  # only one event time may go on
    grouped = joined.groupBy(F.window("expires", "1 second"), "auction", "seller", "category")
    return grouped.agg(F.max("price").alias("final"), F.max("expires").alias("ended"))


def _q4(events: DataFrame) -> DataFrame:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Mean(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.state = handle.getValueState("sums", "count bigint, total double")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            del timerValues
            from pyspark.sql import Row

            count, total = self.state.get() if self.state.exists() else (0, 0.0)
            for row in rows:
                count, total = count + 1, total + row["final"]
                yield Row(category=key[0], auctions=count, average=total / count)
            self.state.update((count, total))

        def close(self) -> None:
            pass

    columns = "category bigint, auctions bigint, average double"
    return _closed(events).groupBy("category").transformWithState(Mean(), columns, "append", "none")


def _q5(events: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    bids = _bids(events).select("auction", "at").withWatermark("at", "0 seconds")
    counted = bids.groupBy(F.window("at", "10 seconds", "2 seconds"), "auction").agg(F.count("*").alias("bids"))
    most = counted.groupBy("window").agg(
        F.max("bids").alias("most"), F.collect_list(F.struct("auction", "bids")).alias("all")
    )
    hottest = most.select("window", F.inline(F.expr("filter(all, x -> x.bids = most)")))
    return hottest.selectExpr("window.start as window_start", "window.end as window_end", "auction", "bids")


def _q6(events: DataFrame) -> DataFrame:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class LastTen(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.state = handle.getValueState("last", "finals array<bigint>")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            del timerValues
            from pyspark.sql import Row

            last = list(self.state.get()[0]) if self.state.exists() else []
            for row in sorted(rows, key=lambda row: (row["ended"], row["auction"])):
                last = [*last, row["final"]][-LAST:]
                yield Row(seller=key[0], auction=row["auction"], average=sum(last) / len(last))
            self.state.update((last,))

        def close(self) -> None:
            pass

    columns = "seller bigint, auction bigint, average double"
    return _closed(events).groupBy("seller").transformWithState(LastTen(), columns, "append", "none")


def _q7(events: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    bids = _bids(events).withWatermark("at", "0 seconds")
    highest = bids.groupBy(F.window("at", "10 seconds")).agg(F.max("price").alias("highest"))
    ends = highest.select("highest", F.window_time("window").alias("ends"))
    of_window = f"price = highest and at <= ends and at > ends - {SECONDS_10}"
    return bids.join(ends, F.expr(of_window)).select("auction", "bidder", "price", "at", "extra")


def _q8(events: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    persons = _persons(events).withWatermark("at", "0 seconds")
    joined = persons.groupBy(F.window("at", "10 seconds").alias("joined"), "id", "name").agg(F.count("*").alias("n"))
    auctions = _auctions(events).select("seller", "at").withWatermark("at", "0 seconds")
    opened = auctions.groupBy(F.window("at", "10 seconds").alias("opened"), "seller").agg(F.count("*").alias("m"))
    met = joined.join(opened, F.expr("id = seller and joined = opened"))
    return met.selectExpr("id", "name", "joined.start as window_start")


BY_HAND: Mapping[str, Callable[[DataFrame], DataFrame]] = {
    f"q{number}": query for number, query in enumerate((_q0, _q1, _q2, _q3, _q4, _q5, _q6, _q7, _q8))
}


def run_by_hand(spark: SparkSession, query: str, source: Path, place: Path, files_per_batch: int = 1) -> None:
    """Run a query until all files that are there have been read; answers come to ``out/QUERY`` of a folder."""
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", files_per_batch).load(str(source))
    events = lines.selectExpr(f"from_json(value, '{COLUMNS}') as row").select("row.*")
    writer = BY_HAND[query](events).writeStream.format("parquet").option("path", str(place / "out" / query))
    writer = writer.option("checkpointLocation", str(place / f"check-{query}"))
    writer.trigger(availableNow=True).start().awaitTermination()
