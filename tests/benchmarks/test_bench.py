"""``headgate bench``: the command, the generated dataflows, and the one bound that is quick enough to check here."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import headgate_benchmarks as bench
from headgate.documents import parse
from headgate.sharing.deduplicate import deduplicate
from headgate_benchmarks import Benchmark
from headgate_benchmarks.measured import Measured
from headgate_benchmarks.workloads import layered_document
from tests.cli.terminal import headgate


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(seed: int, progress: Callable[[str], None]) -> Measured:
        progress("only round")
        return Measured({"seed_squared": float(seed**2)}, {"all": [1.0, 2.0]})

    monkeypatch.setattr(bench, "BENCHMARKS", {"quick": Benchmark("quick", "Over at once.", run)})


def test_figures_are_a_table_for_people() -> None:
    ran = headgate("bench", "quick", "--seed", "3")
    assert ran.status == 0
    assert ran.out.split() == ["seed_squared", "9.000"]
    assert "only round" in ran.err


def test_figures_are_one_json_object_for_programs() -> None:
    ran = headgate("bench", "quick", "--json")
    facts = json.loads(ran.out.splitlines()[-1])
    assert (facts["bench"], facts["seed_squared"], facts["seed"]) == ("quick", 1.0, 1)
    assert "samples" not in facts


def test_samples_go_to_a_file(tmp_path: Path) -> None:
    assert headgate("bench", "quick", "-o", tmp_path / "out.json").status == 0
    written = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert written["samples"] == {"all": [1.0, 2.0]}
    assert headgate("bench", "quick", "-o", tmp_path / "no" / "out.json").status == 2


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
