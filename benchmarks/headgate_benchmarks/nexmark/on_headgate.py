"""Runs Nexmark's queries under Headgate, over events with known answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.model.strategy import StrategyName
from headgate_benchmarks.nexmark.batch import answer, fingerprint
from headgate_benchmarks.nexmark.events import Events, write_files
from headgate_benchmarks.nexmark.flows import QUERIES, flow

__all__ = ["Data", "Running", "is_right", "make_data", "run_under_headgate", "written"]


@dataclass(frozen=True, slots=True)
class Data:
    """A folder of events, how many there are, and what each query's answers are to be."""

    folder: Path
    count: int
    answers: dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Running:
    """What an engine ran."""

    tasks: int
    spark_queries: int


def make_data(
    spark: Any, folder: Path, events: Events, count: int, files: int, queries: Sequence[str] = tuple(QUERIES)
) -> Data:
    """Write the first events as so many files, and compute the queries' answers in batch."""
    write_files(events, folder, count, files)
    return Data(folder, count, {query: fingerprint(query, answer(spark, folder, query)) for query in queries})


def run_under_headgate(
    spark: Any, some: Sequence[str], events: Path, place: Path, strategy: StrategyName = StrategyName.HOT
) -> Running:
    """Run queries until all events are answered, a file a micro-batch; answers come to ``out/QUERY`` of a folder."""
    from headgate.runtime.engine.engine import Engine

    flows = [flow(query, str(events), str(place / "out"), files_per_batch=1) for query in some]
    with Engine(place / "state", spark=spark, trigger_s=0.0, strategy=strategy) as engine:
        engine.submit(*flows)
        engine.wait_until_idle()
        return Running(len(engine.plan.tasks), len(engine.fragments))


def written(spark: Any, query: str, place: Path) -> Any:
    """The answers in ``out/QUERY`` of a folder."""
    return spark.read.parquet(str(place / "out" / query))


def is_right(query: str, answers: Any, data: Data) -> bool:
    """Whether answers are those of batch SQL."""
    return fingerprint(query, answers) == data.answers[query]
