"""STATS in PySpark Structured Streaming: one query, and charts drawn behind what keeps state.

Spark allows one ``applyInPandasWithState`` in a query: values go there twice, for their series and for all senders.
"""

import json
import pickle
import sys

import charts
import pandas as pd
import peer_output
import pyarrow as pa
import pyspark
import senml
from pyspark.sql import SparkSession
from pyspark.sql.streaming.state import GroupStateTimeout
from statistics_of import Distinct, Series

__all__ = ["main"]

ARCHIVED = 10
VALUES = "id bigint, series string, source string, field string, value double"
"""Of all senders where ``series`` is empty."""


def values(batches):
    """Two rows for each observed field of each record."""
    for batch in batches:
        values = []
        for line in batch.column(0).cast(pa.binary()).to_pylist():
            number, _, text = line.partition(b",")
            record = senml.read(text)
            if record is not None:
                sender = record["source"]
                for name in senml.OBSERVED:
                    values += [(int(number), series, sender, name, record[name]) for series in (sender, "")]
        columns = list(zip(*values, strict=True)) or [()] * 5
        kinds = [pa.int64(), pa.string(), pa.string(), pa.string(), pa.float64()]
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, ["id", "series", "source", "field", "value"])


def charted(key, chunks, state):
    series, field = key
    make, add, named = (Series, of_series, key) if series else (Distinct, of_senders, (field,))
    rows = pd.concat(list(chunks)).sort_values("id")
    kept = make(pickle.loads(state.get[0]) if state.exists else None)
    charts = []
    for number, row in zip(rows["id"].tolist(), rows.to_dict("records"), strict=True):
        for kind, lines in add(kept, row):
            charts.append(("-".join([kind, *named, str(number)]), json.dumps(lines)))
    state.update((pickle.dumps(kept.state()),))
    yield pd.DataFrame(charts, columns=["title", "lines"])


def archives(folder):
    def run(batches):
        for batch in batches:
            made = [
                (title, charts.drawn(json.loads(lines), title))
                for title, lines in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
            ]
            paths = [charts.stored(made[at : at + ARCHIVED], folder) for at in range(0, len(made), ARCHIVED)]
            yield pa.RecordBatch.from_arrays([pa.array(paths, pa.string())], ["path"])

    return run


def of_series(kept, row):
    return kept.add(None if pd.isna(row["value"]) else row["value"])


def of_senders(kept, row):
    return kept.add(row["source"])


def main(source, out, tables):
    del tables
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "3g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(source)
    rows = lines.mapInArrow(values, VALUES)
    never = GroupStateTimeout.NoTimeout
    keyed = rows.groupBy("series", "field")
    drawn = keyed.applyInPandasWithState(charted, "title string, lines string", "kept binary", "append", never)
    paths = drawn.mapInArrow(archives(f"{out}/charts"), "path string")
    writer = paths.writeStream.format("text").option("path", f"{out}/results")
    query = writer.option("checkpointLocation", f"{out}/checkpoint").trigger(availableNow=True).start()
    query.awaitTermination()
    peer_output.done(pyspark=pyspark.__version__)


if __name__ == "__main__":
    main(*sys.argv[1:])
