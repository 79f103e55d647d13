"""Runs Nexmark's queries in Flink SQL; for a Python that has PyFlink, and needs nothing else.

Each line of standard input is a list, in JSON, of a query, a folder of events and a folder for its answers; a line of
standard output says when they are done, or why they failed. The queries are the published ones, over the same flat
events. Answers are files of JSON lines; those that are put right again and again are a log of changes.
"""

import json
import sys
from pathlib import Path
from typing import Any

__all__ = ["ANSWERS", "QUERIES", "main"]

BIDS = "(select auction, bidder, price, `at`, extra from events where event = 'bid')"
PEOPLE = "(select id, name, city, state, `at` from events where event = 'person')"
AUCTIONS = "(select id, seller, category, `at`, expires from events where event = 'auction')"

VIEWS = {"bid": BIDS, "person": PEOPLE, "auction": AUCTIONS}

BID = "auction BIGINT, bidder BIGINT, price BIGINT, `at` TIMESTAMP_LTZ(3), extra STRING"

COUNTED = """
    select auction, count(*) as bids, window_start, window_end
    from table(hop(table bid, descriptor(`at`), interval '2' second, interval '10' second))
    group by auction, window_start, window_end"""

ANSWERS = {
    "q0": BID,
    "q1": BID.replace("price BIGINT", "price DECIMAL(23, 3)"),
    "q2": "auction BIGINT, price BIGINT",
    "q3": "name STRING, city STRING, state STRING, auction BIGINT",
    "q4": "category BIGINT, auctions BIGINT, average DOUBLE",
    "q5": "window_start TIMESTAMP(3), window_end TIMESTAMP(3), auction BIGINT, bids BIGINT",
    "q6": "seller BIGINT, auction BIGINT, average DOUBLE",
    "q7": BID,
    "q8": "id BIGINT, name STRING, window_start TIMESTAMP(3)",
}
"""The columns of the answers."""

CORRECTED = ("q4", "q6")
"""Queries whose answers are taken back and put right."""

QUERIES = {
    "q0": "select auction, bidder, price, `at`, extra from bid",
    "q1": "select auction, bidder, 0.908 * price, `at`, extra from bid",
    "q2": "select auction, price from bid where mod(auction, 123) = 0",
    "q3": """
        select p.name, p.city, p.state, a.id from auction as a join person as p on a.seller = p.id
        where a.category = 10 and (p.state = 'OR' or p.state = 'ID' or p.state = 'CA')""",
    "q4": """
        select category, count(*) as auctions, avg(cast(final as double)) as average from (
            select max(b.price) as final, a.category
            from auction as a, bid as b
            where a.id = b.auction and b.`at` between a.`at` and a.expires
            group by a.id, a.category)
        group by category""",
    "q5": f"""
        select c.window_start, c.window_end, c.auction, c.bids from ({COUNTED}) as c
        join (
            select max(bids) as most, window_start, window_end from ({COUNTED}) group by window_start, window_end) as m
        on c.window_start = m.window_start and c.window_end = m.window_end and c.bids >= m.most""",
    # Ten auctions in the order in which they close; the published SQL has eleven, in the order of their winning bids.
    "q6": """
        select seller, auction, avg(cast(final as double)) over
            (partition by seller order by expires rows between 9 preceding and current row)
        from (
            select seller, auction, price as final, expires from (
                select a.seller, a.id as auction, b.price, a.expires,
                    row_number() over (partition by a.id, a.seller order by b.price desc) as place
                from auction as a, bid as b
                where a.id = b.auction and b.`at` between a.`at` and a.expires)
            where place = 1)""",
    "q7": """
        select b.auction, b.bidder, b.price, b.`at`, b.extra from bid as b
        join (
            select max(price) as highest, window_time as ends
            from table(tumble(table bid, descriptor(`at`), interval '10' second))
            group by window_start, window_end, window_time) as h
        on b.price = h.highest and b.`at` between h.ends - interval '9.999' second and h.ends""",
    "q8": """
        select p.id, p.name, p.window_start from (
            select id, name, window_start, window_end
            from table(tumble(table person, descriptor(`at`), interval '10' second))
            group by id, name, window_start, window_end) as p
        join (
            select seller, window_start, window_end
            from table(tumble(table auction, descriptor(`at`), interval '10' second))
            group by seller, window_start, window_end) as a
        on p.id = a.seller and p.window_start = a.window_start and p.window_end = a.window_end""",
}

EVENTS = """
    create table events (
        event STRING, `at` TIMESTAMP_LTZ(3), id BIGINT, name STRING, email STRING, card STRING, city STRING,
        state STRING, item STRING, `initial` BIGINT, reserve BIGINT, expires TIMESTAMP_LTZ(3), seller BIGINT,
        category BIGINT, auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, extra STRING,
        watermark for `at` as `at` - interval '1' day
    ) with ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'json',
        'json.timestamp-format.standard' = 'ISO-8601')"""
# Two readers take files in any order, the marks of the end too: with a day's patience no event is late, and windows are
# reported at the end.


def _environment(events: str) -> Any:
    from pyflink.table import EnvironmentSettings, TableEnvironment

    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {"parallelism.default": "2", "table.local-time-zone": "UTC", "taskmanager.numberOfTaskSlots": "2"}
    for name, value in settings.items():
        made.get_config().set(name, value)
    made.execute_sql(EVENTS.format(path=Path(events).absolute().as_uri()))
    for name, query in VIEWS.items():
        made.execute_sql(f"create view {name} as select * from {query}")
    return made


def _run(environment: Any, query: str, number: int, place: str) -> None:
    options = {
        "connector": "filesystem",
        "path": Path(place).absolute().as_uri(),
        "format": "debezium-json" if query in CORRECTED else "json",
    }
    settings = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    environment.execute_sql(f"create table out{number} ({ANSWERS[query]}) with ({settings})")
    environment.execute_sql(f"insert into out{number} {QUERIES[query]}").wait()


def _reason(error: Exception) -> str:
    """The reason that Flink gives: the innermost cause, without its place in the code."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.strip().startswith("at ")]
    causes = [line.removeprefix("Caused by: ") for line in lines if "Exception: " in line]
    return " ".join((causes or lines or [type(error).__name__])[-1].split())[:500]


def main() -> None:
    environments: dict[str, Any] = {}
    print("ready", flush=True)
    for number, line in enumerate(sys.stdin):
        query, events, place = json.loads(line)
        try:
            if events not in environments:
                environments[events] = _environment(events)
            _run(environments[events], query, number, place)
            print("done", flush=True)
        except Exception as error:
            print(f"failed {_reason(error)}", flush=True)


if __name__ == "__main__":
    main()
