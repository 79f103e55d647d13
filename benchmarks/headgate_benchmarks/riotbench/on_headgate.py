"""An application of ``examples/riotbench`` on Headgate, over files, run as the programs of ``peers`` are."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from headgate_benchmarks.checkout import example

__all__ = ["application", "main"]


def application(name: str, source: Path, out: Path) -> dict[str, Any]:
    """An application as it stands, over lines of files in the place of the generator, with its sinks in a folder."""
    import yaml

    folder = example("riotbench")
    read = yaml.safe_load((folder / f"{name}.yaml").read_text(encoding="utf-8"))
    document: dict[str, Any] = json.loads(json.dumps(read).replace("examples/riotbench", str(folder)))
    per_batch = 1 if name == "stats" else 2
    for task in document["tasks"]:
        if task.get("type") == "generate":
            config = {"path": str(source), "format": "text", "files_per_batch": per_batch}
            task.update(type="read_files", config=config)
        elif task.get("type") == "write_files":
            is_etl = task["id"] == "publish"
            task["config"]["path"] = str(out / ("rows" if is_etl else "results"))
            if is_etl:
                task["config"]["format"] = "text"  # records as lines, as the others write them
        elif task.get("type") == "upload":
            task["config"]["folder"] = str(out / "charts")
    if name != "etl_wide":  # the others need a record's number, which stands before it
        first = next(task for task in document["tasks"] if task["id"] == "parse")
        columns = {"id": "cast(substring_index(value, ',', 1) as bigint)"}
        document["tasks"].append(
            {"id": "numbered", "type": "derive", "config": {"columns": columns}, "inputs": first["inputs"]}
        )
        first["inputs"] = ["numbered"]
    return document


def main(name: str, source: str, out: str) -> None:
    """Run an application until all rows of the files are out."""
    import pyspark

    from headgate.documents import parse
    from headgate.runtime.engine.engine import Engine

    folder = Path(out)
    flow = parse(json.dumps(application(name, Path(source), folder)), "json").dataflow
    settings = {"spark.driver.memory": "3g"}
    with Engine(folder / "state", master="local[2]", settings=settings) as engine:
        engine.submit(flow)
        engine.wait_until_idle()
        versions = {"headgate": version("headgate"), "pyspark": pyspark.__version__}
        print(json.dumps({"done": True, "versions": versions}), flush=True)
        sys.stdin.read()
