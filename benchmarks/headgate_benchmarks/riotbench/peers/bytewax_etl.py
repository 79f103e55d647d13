"""ETL in bytewax: one worker, the records of a batch handed from step to step as dicts."""

import sys
from importlib.metadata import version
from pathlib import Path

import bytewax.operators as op
import peer_output
import senml
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import run_main

__all__ = ["Lines", "Texts"]

BATCH = 1_000
WINDOW = 5


class _Lines(StatefulSourcePartition):
    """The lines of files, one after the other, as bytes: some are no UTF-8."""

    def __init__(self, paths):
        self._lines = (line.rstrip(b"\n") for path in paths for line in path.open("rb"))
        self._read = 0

    def next_batch(self):
        batch = [line for _, line in zip(range(BATCH), self._lines, strict=False)]
        self._read += len(batch)
        if not batch:
            raise StopIteration
        return batch

    def snapshot(self):
        return self._read


class Lines(FixedPartitionedSource):
    """The lines of a folder's files, in the order of their names."""

    def __init__(self, folder):
        self._folder = Path(folder)

    def list_parts(self):
        return ["all"]

    def build_part(self, step_id, for_part, resume_state):
        return _Lines(sorted(self._folder.iterdir()))


class _Texts(StatelessSinkPartition):
    def __init__(self, path):
        self._file = path.open("w", encoding="utf-8")

    def write_batch(self, items):
        self._file.write("\n".join(items))
        self._file.write("\n")

    def close(self):
        self._file.close()


class Texts(DynamicSink):
    """A file of lines for each worker."""

    def __init__(self, folder):
        self._folder = Path(folder)

    def build(self, step_id, worker_index, worker_count):
        self._folder.mkdir(parents=True, exist_ok=True)
        return _Texts(self._folder / f"{worker_index}.txt")


def flow(source, out, tables):
    known, attributes = senml.ids(tables), senml.attributes(tables)
    unknown = (None, None)

    def clean(record):
        is_known = record["source"] in known
        for name in senml.OBSERVED:
            record[name] = senml.in_range(name, record[name]) if is_known else None
        return record

    def fill(last, record):
        last = last or {name: [] for name in senml.OBSERVED}
        for name, values in last.items():
            value = record[name]
            if value is not None:
                values.append(value)
                del values[:-WINDOW]
            elif values:
                record[name] = sum(values) / len(values)
        return last, record

    def annotate(keyed):
        key, record = keyed
        record["place"], record["kind"] = attributes.get(key, unknown)
        return record

    made = Dataflow("etl")
    lines = op.input("lines", made, Lines(source))
    records = op.filter_map("parse", lines, senml.read)
    cleaned = op.map("clean", records, clean)
    keyed = op.key_on("by sender", cleaned, lambda record: record["source"])
    whole = op.stateful_map("fill", keyed, fill)
    texts = op.map("senml", op.map("annotate", whole, annotate), senml.written)
    op.output("out", texts, Texts(f"{out}/rows"))
    return made


if __name__ == "__main__":
    run_main(flow(*sys.argv[1:]))
    peer_output.done(bytewax=version("bytewax"), orjson=version("orjson"))
