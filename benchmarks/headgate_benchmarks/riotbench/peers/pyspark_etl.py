"""ETL in PySpark Structured Streaming: one query, written by hand.

Records are parsed by orjson in Arrow batches, which takes less than half of what ``from_json`` takes. Gaps are filled
by ``applyInPandasWithState``, whose batches come as columns: ``transformWithState`` makes an object of every value. The
rest is Spark's own expressions and a broadcast join.
"""

import pickle
import sys

import numpy as np
import pandas as pd
import peer_output
import pyarrow as pa
import pyspark
import senml
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupStateTimeout

__all__ = ["main"]

WINDOW = 5
NUMBERS = list(senml.UNITS)
PARSED = "seq bigint, bt bigint, source string, " + ", ".join(f"{name} double" for name in NUMBERS)
STATE = "kept binary"
"""Pickled: Spark 4.3 does not take arrays for what applyInPandasWithState remembers."""


def parsed(batches):
    kinds = [pa.int64(), pa.int64(), pa.string(), *[pa.float64()] * len(NUMBERS)]
    names = ["seq", "bt", "source", *NUMBERS]
    done = 0
    for batch in batches:
        texts = batch.column(0).cast(pa.binary()).to_pylist()
        # A block has more bytes than lines: its place in the file and the line's in the block order a file's lines.
        places = batch.column(1).to_numpy() + np.arange(done, done + len(texts))
        done += len(texts)
        read = list(map(senml.read, texts))
        rows = [row for row in read if row is not None]
        kept = places[[row is not None for row in read]]
        columns = [kept, *([row[name] for row in rows] for name in names[1:])]
        yield pa.RecordBatch.from_arrays([pa.array(c, kind) for c, kind in zip(columns, kinds, strict=True)], names)


def filled(key, chunks, state):
    """The rows of one sender, in the order in which they were read, with gaps filled by the mean of what came last."""
    rows = pd.concat(list(chunks)).sort_values("seq")
    last = pickle.loads(state.get[0]) if state.exists else [[] for _ in senml.OBSERVED]
    kept = []
    for name, before in zip(senml.OBSERVED, last, strict=True):
        values = rows[name].to_numpy(copy=True)
        missing = np.isnan(values)
        known = np.concatenate([np.asarray(before, float), values[~missing]])
        if missing.any():
            come = np.cumsum(~missing) + len(before)
            for at in np.flatnonzero(missing):
                if come[at]:
                    values[at] = known[max(come[at] - WINDOW, 0) : come[at]].mean()
            rows[name] = values
        kept.append(known[-WINDOW:].tolist())
    state.update((pickle.dumps(kept),))
    yield rows.drop(columns="seq").assign(source=key[0])[["bt", "source", *NUMBERS]]


def entry(name, unit, value, text):
    made = F.struct(F.lit(name).alias("n"), F.lit(unit).alias("u"), value.alias("v"), text.alias("sv"))
    return F.when(F.col(name).isNotNull(), made)


def main(source, out, tables):
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "3g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 2).load(source)
    lines = lines.select("value", "_metadata.file_block_start")
    rows = lines.mapInArrow(parsed, PARSED)
    is_known = F.col("source").isin(*senml.ids(tables))
    for name, (low, high) in senml.RANGES.items():
        rows = rows.withColumn(name, F.when(is_known & F.col(name).between(low, high), F.col(name)))
    made = PARSED.removeprefix("seq bigint, ")
    rows = rows.groupBy("source").applyInPandasWithState(filled, made, STATE, "append", GroupStateTimeout.NoTimeout)
    places = [(key, *values) for key, values in senml.attributes(tables).items()]
    table = spark.createDataFrame(places, "source string, place string, kind string")
    rows = rows.join(F.broadcast(table), "source", "left")
    nothing, silent = F.lit(None).cast("double"), F.lit(None).cast("string")
    entries = [entry(name, "string", nothing, F.col(name)) for name in ("source", "place", "kind")]
    entries += [entry(name, unit, F.col(name), silent) for name, unit in senml.UNITS.items()]
    record = F.to_json(F.struct(F.array_compact(F.array(*entries)).alias("e"), F.col("bt")))
    writer = rows.select(record.alias("value")).writeStream.format("text").option("path", f"{out}/rows")
    query = writer.option("checkpointLocation", f"{out}/checkpoint").trigger(availableNow=True).start()
    query.awaitTermination()
    peer_output.done(pyspark=pyspark.__version__)


if __name__ == "__main__":
    main(*sys.argv[1:])
