"""ETL in Flink SQL, started from PyFlink: all of it runs in Flink's process, none of it in Python.

The json format reads entries as an array of rows, in which fields are looked up by name. Flink has no function that
fills gaps: the mean of the last five values that are there is one OVER window for each field, over the rows in which
it is there; LAST_VALUE, which passes over nulls, carries it to the rows in which it is not.
"""

import sys
from importlib.metadata import version

import peer_output
import senml
from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

__all__ = ["main"]

WINDOW = 5
MOST_ENTRIES = 8


def field(name, key):
    """The value of the entry of a name: RIoTBench's senders write few entries, in an order that may change."""
    cases = " ".join(f"WHEN e[{at}].n = '{name}' THEN e[{at}].{key}" for at in range(1, MOST_ENTRIES + 1))
    return f"CASE {cases} END"


def looked_up(tables, place):
    table = senml.attributes(tables)
    cases = " ".join(f"WHEN '{key}' THEN '{values[place]}'" for key, values in table.items())
    return f"CASE source {cases} END"


def queries(source, out, tables):
    known = ", ".join(f"'{key}'" for key in sorted(senml.ids(tables)))
    names, observed = list(senml.UNITS), senml.OBSERVED
    yield f"""
        CREATE TEMPORARY TABLE lines (
            e ARRAY<ROW<n STRING, u STRING, v STRING, sv STRING>>, bt BIGINT, pt AS PROCTIME()
        ) WITH ('connector' = 'filesystem', 'path' = '{source}', 'format' = 'json', 'json.ignore-parse-errors' = 'true')
    """
    yield f"""
        CREATE TEMPORARY TABLE texts (record STRING)
        WITH ('connector' = 'filesystem', 'path' = '{out}/rows', 'format' = 'raw')
    """
    units = [f"COALESCE({field(name, 'u')} = '{unit}', TRUE)" for name, unit in senml.UNITS.items()]
    numbers = [f"CAST({field(name, 'v')} AS DOUBLE) AS {name}" for name in names]
    yield f"""
        CREATE TEMPORARY VIEW parsed AS
        SELECT pt, bt, {field("source", "sv")} AS source, {", ".join(numbers)}
        FROM lines WHERE bt >= 0 AND bt < {senml.LATEST_MS} AND {" AND ".join(units)}
    """
    cleaned = [
        f"CASE WHEN source IN ({known}) AND {name} BETWEEN {low} AND {high} THEN {name} END AS {name}"
        for name, (low, high) in senml.RANGES.items()
    ]
    yield f"""
        CREATE TEMPORARY VIEW cleaned AS
        SELECT pt, bt, source, longitude, latitude, {", ".join(cleaned)}
        FROM parsed WHERE CHAR_LENGTH(source) BETWEEN 1 AND 9000
    """
    before = "cleaned"
    for name in observed:
        window = f"PARTITION BY source, {name} IS NULL ORDER BY pt ROWS BETWEEN {WINDOW - 1} PRECEDING AND CURRENT ROW"
        yield f"CREATE TEMPORARY VIEW with_{name} AS SELECT *, AVG({name}) OVER ({window}) AS mean_{name} FROM {before}"
        before = f"with_{name}"
    carried = [f"COALESCE({name}, LAST_VALUE(mean_{name}) OVER w) AS {name}" for name in observed]
    yield f"""
        CREATE TEMPORARY VIEW whole AS
        SELECT bt, source, longitude, latitude, {", ".join(carried)}, {looked_up(tables, 0)} AS place,
            {looked_up(tables, 1)} AS kind
        FROM {before}
        WINDOW w AS (PARTITION BY source ORDER BY pt ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    """
    entries = [f"""COALESCE(',{{"n":"{n}","u":"string","sv":"' || {n} || '"}}', '')""" for n in ("place", "kind")] + [
        f"""COALESCE(',{{"n":"{n}","u":"{u}","v":' || CAST({n} AS STRING) || '}}', '')"""
        for n, u in senml.UNITS.items()
    ]
    yield f"""
        INSERT INTO texts
        SELECT '{{"e":[{{"n":"source","u":"string","sv":"' || source || '"}}' || {" || ".join(entries)}
            || '],"bt":' || CAST(bt AS STRING) || '}}'
        FROM whole
    """


def main(source, out, tables):
    settings = Configuration()
    settings.set_string("parallelism.default", "1")
    settings.set_string("pipeline.object-reuse", "true")
    environment = TableEnvironment.create(
        EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(settings).build()
    )
    *before, last = queries(source, out, tables)
    for query in before:
        environment.execute_sql(query)
    environment.execute_sql(last).wait()
    peer_output.done(pyflink=version("apache-flink"))


if __name__ == "__main__":
    main(*sys.argv[1:])
