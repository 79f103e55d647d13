"""The operators of the micro-benchmarks are bound by what they say."""

from __future__ import annotations

import io
import json
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from examples.micro import operators

Rows = list[dict[str, Any]]
BEGINNING = datetime(2026, 7, 1, tzinfo=UTC)


def rows(count: int, size: int = 1_000, apart_s: float = 1.0) -> Rows:
    made = []
    for number in range(count):
        message = json.dumps({"id": number, "text": "x" * size})
        made.append({"id": number, "at": BEGINNING + timedelta(seconds=number * apart_s), "message": message})
    return made


def spent(operator: Callable[..., Rows], some: Rows, **options: Any) -> tuple[float, float]:
    """CPU and wall seconds that a row takes; the least of a few tries, since others use the machine too."""
    found = []
    for _ in range(10):
        cpu, wall = time.process_time(), time.perf_counter()
        for row in some:
            operator(row, **options)
        found.append(((time.process_time() - cpu) / len(some), (time.perf_counter() - wall) / len(some)))
    return min(cpu for cpu, _ in found), min(wall for _, wall in found)


def test_cpu_takes_cpu_in_proportion_to_its_calls() -> None:
    cpu_s, wall_s = spent(operators.cpu, rows(10))
    assert cpu_s > 3e-4
    assert cpu_s > 0.5 * wall_s or wall_s > 5e-3  # all of the time, unless others have the processor
    fewer, _ = spent(operators.cpu, rows(10), calls=3_000)
    assert fewer < 0.3 * cpu_s


def test_wait_takes_time_and_hardly_any_cpu() -> None:
    cpu_s, wall_s = spent(operators.wait, rows(10))
    assert wall_s >= 0.01
    assert cpu_s < 0.1 * wall_s


def test_io_moves_more_than_it_computes() -> None:
    pa = pytest.importorskip("pyarrow")
    some = rows(200, size=4_000)
    cpu_s, _ = spent(operators.io, some, copies=4)
    heavy_s, _ = spent(operators.cpu, some[:10])

    def moved(row: dict[str, Any]) -> Rows:
        # What a worker does beside the function: rows to Arrow, over a stream, and to rows again.
        table = pa.Table.from_pylist(operators.io(row, copies=4))
        pipe = io.BytesIO()
        with pa.ipc.new_stream(pipe, table.schema) as writer:
            writer.write_table(table)
        found: Rows = pa.ipc.open_stream(pipe.getvalue()).read_all().to_pylist()
        return found

    with_moving_s, _ = spent(moved, some)
    assert cpu_s < 0.1 * heavy_s
    assert with_moving_s > 3 * cpu_s


def test_memory_holds_the_window_and_no_more() -> None:
    operators.held.clear()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for row in rows(300, size=2_000):  # five minutes, a message a second
        operators.memory(row, operator="tested")
    kept = operators.held["tested"]
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert len(kept.messages) == 300
    assert grown > 0.9 * kept.bytes > 500_000
    for row in rows(900, size=2_000)[300:]:
        operators.memory(row, operator="tested")
    assert 300 <= len(kept.messages) <= 300 + 60 + 1
    operators.held.clear()


@pytest.mark.parametrize("name", ["cpu", "io", "memory"])
def test_copies_are_the_selectivity(name: str) -> None:
    (row,) = rows(1)
    assert getattr(operators, name)(row, copies=3) == [row] * 3
    assert getattr(operators, name)(row, copies=0) == []


def test_a_message_of_another_row_is_refused() -> None:
    with pytest.raises(ValueError, match="message of row 0 in row 7"):
        operators.io({**rows(1)[0], "id": 7})
