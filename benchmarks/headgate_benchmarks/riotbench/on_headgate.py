"""An application of ``examples/riotbench`` on Headgate, over files, run as the others are in ``apps_peers``."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from headgate.errors import InputError

__all__ = ["application", "examples", "main"]


def examples() -> Path:
    """The folder of RIoTBench's applications, which come with the sources and not with the package."""
    found = Path(__file__).parents[3] / "examples" / "riotbench"
    if not found.is_dir():
        told = (
            "RIoTBench's applications are not there: run this benchmark from a clone of Headgate, set up by make setup"
        )
        raise InputError("NO_EXAMPLES", told)
    return found


def application(name: str, source: Path, out: Path) -> dict[str, Any]:
    """An application as it stands, over lines of files in the place of the generator, with its sinks in a folder."""
    import yaml

    text = (examples() / f"{name}.yaml").read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.safe_load(text)
    found = json.loads(json.dumps(document).replace("examples/riotbench", str(examples())))
    per_batch = 1 if name == "stats" else 2
    for task in found["tasks"]:
        if task.get("type") == "generate":
            config = {"path": str(source), "format": "text", "files_per_batch": per_batch}
            task.update(type="read_files", config=config)
        elif task.get("type") == "write_files":
            is_etl = task["id"] == "publish"
            task["config"]["path"] = str(out / ("rows" if is_etl else "told"))
            if is_etl:
                task["config"]["format"] = "text"  # records as lines, as the others write them
        elif task.get("type") == "upload":
            task["config"]["folder"] = str(out / "charts")
    if name != "etl_wide":  # the others need a record's number, which stands before it
        first = next(task for task in found["tasks"] if task["id"] == "parse")
        columns = {"id": "cast(substring_index(value, ',', 1) as bigint)"}
        found["tasks"].append(
            {"id": "numbered", "type": "derive", "config": {"columns": columns}, "inputs": first["inputs"]}
        )
        first["inputs"] = ["numbered"]
    return found  # type: ignore[no-any-return]


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
