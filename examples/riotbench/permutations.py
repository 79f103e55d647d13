"""Write 21 dataflows that permute RIoTBench's tasks over its three data sets, as SHARE's evaluation does.

    .venv/bin/python examples/riotbench/permutations.py [FOLDER] [--seed 1]

What follows what is as in Headgate's own collection like SHARE's: 21 dataflows, 138 tasks, about 75 when merged. Here
the steps do real work, and each source is followed by a parser. FOLDER is out/riotbench/permutations if none is given.
Run some or all of them: ``headgate plan`` and ``headgate run`` take any number of files.
"""

import argparse
from pathlib import Path

import yaml
from make import RANGES, parse, source

from headgate_benchmarks.share.collections import riotbench_like
from headgate_riotbench.generate import FIELDS

SETS = ("city", "taxi", "fitness")
EACH = ["sender", "field"]

WORKS = (
    {"type": "range_filter", "config": {"ranges": {"value": [-1e5, 4e4]}, "outside": "null"}},
    {"type": "kalman", "config": {"key": EACH, "column": "value", "into": "value"}},
    {"type": "moving_average", "config": {"key": EACH, "column": "value", "size": 5, "into": "value"}},
    {"type": "interpolate", "config": {"key": EACH, "columns": ["value"]}},
    {"type": "distinct_sketch", "config": {"key": ["field"], "column": "sender", "into": "note"}},
    {"type": "second_moment", "config": {"key": EACH, "column": "value", "into": "note"}},
    {"type": "difference", "config": {"key": EACH, "column": "value", "into": "note"}},
    {"type": "filter", "config": {"where": "note is null or note < 1e9"}},
    {"type": "derive", "config": {"columns": {"value": "value * 1.8 + 32"}}},
    {"type": "block_average", "config": {"key": EACH, "column": "value", "every": True, "into": "note"}},
    {"type": "sample", "config": {"share": 0.9, "seed": 3}},
    {"type": "error_estimate", "config": {"observed": "value", "predicted": "note", "mean": "value", "into": "note"}},
    {"type": "distinct", "config": {"key": ["field"], "column": "sender", "into": "note"}},
)
"""What the kinds of steps do: each hands on the columns that it gets, so any may follow any."""


def begun(data):
    """The source, and what makes rows of its records that all steps understand."""
    sender = FIELDS[data][0].name
    return [
        source(data, 20, 0.01),
        parse(data),
        {"id": "fields", "type": "unpivot", "config": {"columns": list(RANGES[data])}, "inputs": ["parse"]},
        {"id": "named", "type": "rename", "config": {"columns": {sender: "sender"}}, "inputs": ["fields"]},
        {
            "id": "rows",
            "type": "derive",
            "config": {"columns": {"note": "cast(null as double)"}},
            "inputs": ["named"],
        },
    ]


def dataflow(flow, out):
    """A dataflow of the collection, with work in the place of its labels and a sink behind what nothing reads."""
    feeds = {task.id: [stream.source for stream in flow.streams if stream.target == task.id] for task in flow.tasks}
    read = {stream.source for stream in flow.streams}
    names, tasks = {}, []
    for task in flow.tasks:
        label = str(task.config["label"])
        if label.startswith("source"):
            tasks += begun(SETS[int(label.removeprefix("source"))])
            names[task.id] = "rows"
        else:
            work = WORKS[int(label.removeprefix("step"))]
            tasks.append({"id": task.id, **work, "inputs": [names[before] for before in feeds[task.id]]})
            names[task.id] = task.id
        if task.id not in read:
            config = {"path": f"{out}/{flow.name}/{task.id}"}
            tasks.append({"id": f"{task.id}_out", "type": "write_files", "config": config, "inputs": [names[task.id]]})
    return {"name": flow.name, "owner": flow.owner, "tasks": tasks}


def dataflows(seed=1, out="out/riotbench/permutations/rows"):
    return [dataflow(flow, out) for flow in riotbench_like(seed).dataflows]


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="Write 21 dataflows that permute RIoTBench's tasks.")
    arguments.add_argument("folder", nargs="?", type=Path, default=Path("out/riotbench/permutations"))
    arguments.add_argument("--seed", type=int, default=1, help="another seed permutes in another way")
    given = arguments.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for document in dataflows(given.seed):
        text = yaml.safe_dump(document, sort_keys=False, width=120, default_flow_style=None)
        (given.folder / f"{document['name']}.yaml").write_text(text, encoding="utf-8")
    print(f"21 dataflows in {given.folder}")
