"""STATS in bytewax: two stateful branches, merged, with charts drawn behind them."""

import sys
from datetime import timedelta
from importlib.metadata import version

import bytewax.operators as op
import charts
import peer_output
import senml
from bytewax.dataflow import Dataflow
from bytewax.testing import run_main
from bytewax_etl import Lines, Texts
from statistics_of import Distinct, Series

__all__ = ["flow"]

ARCHIVED = 10
PATIENCE = timedelta(minutes=10)


def flow(source, out, tables):
    del tables

    def parse(line):
        number, _, text = line.partition(b",")
        record = senml.read(text)
        return [] if record is None else [(int(number), record["source"], n, record[n]) for n in senml.OBSERVED]

    def charted(make, place, key):
        def step(kept, row):
            kept = kept or make()
            titled = [("-".join([kind, *key(row), str(row[0])]), lines) for kind, lines in kept.add(row[place])]
            return kept, titled

        return step

    made = Dataflow("stats")
    rows = op.flat_map("parse", op.input("lines", made, Lines(source)), parse)
    by_series = op.key_on("by series", rows, lambda row: f"{row[1]} {row[2]}")
    by_field = op.key_on("by field", rows, lambda row: row[2])
    series = op.stateful_flat_map("series", by_series, charted(Series, 3, lambda row: row[1:3]))
    senders = op.stateful_flat_map("senders", by_field, charted(Distinct, 1, lambda row: row[2:3]))
    both = op.key_rm("any", op.merge("both", series, senders))
    drawn = op.map("draw", both, lambda titled: (titled[0], charts.drawn(titled[1], titled[0])))
    packs = op.collect("pack", op.key_on("all", drawn, lambda _: "all"), timeout=PATIENCE, max_size=ARCHIVED)
    paths = op.map("store", op.key_rm("packs", packs), lambda pack: charts.stored(pack, f"{out}/charts"))
    op.output("out", paths, Texts(f"{out}/results"))
    return made


if __name__ == "__main__":
    run_main(flow(*sys.argv[1:]))
    peer_output.done(bytewax=version("bytewax"), matplotlib=version("matplotlib"))
