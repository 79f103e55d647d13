"""``headgate bench``: the command, the generated dataflows, and the one bound that is quick enough to check here."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pytest

import headgate_benchmarks as bench
from headgate.documents import parse
from headgate.errors import HeadgateError
from headgate.sharing.deduplicate import deduplicate
from headgate_benchmarks.benchmark import Benchmark
from headgate_benchmarks.study import Measured, Progress, check_figures
from headgate_benchmarks.workloads import layered_document
from tests.cli.terminal import headgate


def quick(seed: int, progress: Progress, size: int) -> Measured:
    progress("only round")
    return Measured({"seed_squared": float(seed**2), "size": size}, {"all": [1.0, 2.0]})


def broken(seed: int, progress: Progress, size: int) -> Measured:
    return quick(seed, progress, size) | Measured({"rate": math.inf})


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmarks = (
        Benchmark("quick", "Over at once.", {"one": quick, "two": broken}, 10, 1, "seed_* size", whole=quick),
        Benchmark("broken", "Has a figure that is no number.", {"one": broken}, 10, 1, "rate missing_s"),
    )
    monkeypatch.setattr(bench, "BENCHMARKS", {each.name: each for each in benchmarks})


def test_figures_are_a_table_for_people() -> None:
    ran = headgate("bench", "quick", "--seed", "3")
    assert ran.status == 0
    assert {"seed_squared", "9.000"} <= set(ran.out.split())
    assert "only round" in ran.err


def test_figures_are_one_json_object_for_programs() -> None:
    ran = headgate("bench", "quick", "--json")
    facts = json.loads(ran.out.splitlines()[-1])
    assert (facts["bench"], facts["seed_squared"], facts["seed"], facts["size"]) == ("quick", 1.0, 1, 10)
    assert "samples" not in facts
    assert "smoke" not in facts


def test_samples_go_to_a_file(tmp_path: Path) -> None:
    assert headgate("bench", "quick", "-o", tmp_path / "out.json").status == 0
    written = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert written["samples"] == {"all": [1.0, 2.0]}
    assert headgate("bench", "quick", "-o", tmp_path / "no" / "out.json").status == 2


def test_the_short_form_is_marked_and_checks_what_is_promised() -> None:
    facts = json.loads(headgate("bench", "quick", "--smoke", "--json").out.splitlines()[-1])
    assert (facts["smoke"], facts["size"]) == (True, 1)
    ran = headgate("bench", "broken", "--smoke")
    assert ran.status != 0
    assert "missing_s, rate" in ran.err
    with pytest.raises(HeadgateError) as refusal:
        check_figures({"a": math.nan}, ["a"])
    assert refusal.value.condition == "FIGURES_MISSING"


@pytest.mark.parametrize("size", [1, 3, 10, 250])
def test_generated_dataflows_are_valid_and_of_the_size_that_was_asked_for(size: int) -> None:
    dataflow = parse(json.dumps(layered_document(size, 7)), "json").dataflow
    assert len(dataflow.tasks) >= size
    assert layered_document(size, 7) == layered_document(size, 7)


def test_ten_thousand_tasks_are_validated_and_signed_within_two_seconds() -> None:
    took = []
    for seed in (11, 12):
        text = json.dumps(layered_document(10_000, seed))
        started = time.process_time()
        deduplicate(parse(text, "json").dataflow)
        took.append(time.process_time() - started)
        if took[-1] < 2.0:
            return
    pytest.fail(f"took {min(took):.2f} s")
