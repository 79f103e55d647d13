"""The guard around Python functions, without Spark: which rows fail, what is raised, how time is limited."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.work import BatchTarget
from headgate.runtime.spark_internals.failures import named_culprit
from headgate.tasks.batch import run_batches
from headgate.tasks.row_errors import CARRIED, LETTER, Guard, TaskRaised
from headgate.tasks.user_defined import python_work

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("t", pa.string())])


def guarded(
    over: str, function: Callable[..., Any], batches: Iterator[pa.RecordBatch], guard: Guard, schema: pa.Schema = SCHEMA
) -> Iterator[pa.RecordBatch]:
    return run_batches(python_work(over, function, {}, BatchTarget(schema, guard.letters)), batches, schema, guard)


def batch(ids: list[int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"id": n, "t": f"t{n}"} for n in ids], schema=SCHEMA)


def functions(bad: set[int]) -> dict[str, Callable[..., Any]]:
    def over_row(row: dict[str, Any]) -> dict[str, Any]:
        if row["id"] in bad:
            row["t"] = "spoilt"
            raise ValueError(f"no {row['id']}")
        return row

    def over_pandas(frame: pd.DataFrame) -> pd.DataFrame:
        if frame["id"].isin(bad).any():
            raise ValueError("no such thing")
        return frame

    def over_arrow(rows: pa.RecordBatch) -> pa.RecordBatch:
        if pc.any(pc.is_in(rows.column("id"), pa.array(list(bad), pa.int64()))).as_py():
            raise ValueError("no such thing")
        return rows

    return {"row": over_row, "pandas": over_pandas, "arrow": over_arrow}


@given(
    st.sampled_from(["row", "pandas", "arrow"]),
    st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=20), max_size=4),
    st.sets(st.integers(0, 30), max_size=8),
)
def test_good_rows_pass_in_order_and_bad_ones_become_letters(over: str, ids: list[list[int]], bad: set[int]) -> None:
    made = guarded(over, functions(bad)[over], iter(map(batch, ids)), Guard("0af3", letters=True))
    rows = [row for part in made for row in part.to_pylist()]
    flat = [n for some in ids for n in some]
    assert [row["id"] for row in rows if row[LETTER] is None] == [n for n in flat if n not in bad]
    letters = [row[LETTER] for row in rows if row[LETTER] is not None]
    assert [json.loads(letter["record"]) for letter in letters] == [{"id": n, "t": f"t{n}"} for n in flat if n in bad]
    assert all(letter["error"].startswith("ValueError: no") for letter in letters)


@pytest.mark.parametrize("over", ["row", "pandas", "arrow"])
def test_without_letters_the_task_is_named(over: str) -> None:
    with pytest.raises(TaskRaised) as raised:
        list(guarded(over, functions({3})[over], iter([batch([1, 2, 3])]), Guard("0af3")))
    named = named_culprit(f"Traceback...\nheadgate.tasks.row_errors.TaskRaised: {raised.value}\n\tat java")
    assert named is not None
    assert named[0] == "0af3"
    assert named[1].startswith("ValueError: no")


def asleep(row: dict[str, Any]) -> dict[str, Any]:
    while True:
        try:
            time.sleep(60)
        except BaseException:
            if row["t"] == "stubborn":
                row["t"] = "woken once"
                continue
            raise


@pytest.mark.parametrize("text", ["plain", "stubborn"])
def test_a_function_that_sleeps_is_woken_at_its_budget(text: str) -> None:
    rows = pa.RecordBatch.from_pylist([{"id": 1, "t": text}], schema=SCHEMA)
    began = time.monotonic()
    with pytest.raises(TaskRaised, match=r"\[task 0af3\] TimeoutError: over its time budget of 0.1 s"):
        list(guarded("row", asleep, iter([rows]), Guard("0af3", letters=True, budget_s=0.1)))
    assert time.monotonic() - began < 5


def test_time_adds_up_over_batches_and_is_not_spent_between_them() -> None:
    def slow(row: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.02)
        return row

    def slowly_fed(count: int) -> Any:
        for n in range(count):
            time.sleep(0.02)
            yield batch([n])

    done = list(guarded("row", slow, slowly_fed(5), Guard("0af3", budget_s=1.0)))
    assert len(done) == 5
    with pytest.raises(TaskRaised, match="time budget"):
        list(guarded("row", slow, slowly_fed(50), Guard("0af3", budget_s=0.1)))


def test_outside_the_main_thread_time_is_minded_after_the_batch() -> None:
    raised: list[BaseException] = []

    def slow(row: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.05)
        return row

    def work() -> None:
        try:
            list(guarded("row", slow, iter([batch([1])]), Guard("0af3", budget_s=0.01)))
        except TaskRaised as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "time budget" in str(raised[0])


def test_times_go_along_with_the_rows() -> None:
    batch = pa.record_batch({"id": list(range(6)), CARRIED: [10 * n for n in range(6)]})
    schema = pa.schema([("id", pa.int64())])

    def of(function: Callable[..., Any], letters: bool = False) -> pa.Table:
        made = guarded("row", function, iter([batch]), Guard("t", letters), schema)
        return pa.Table.from_batches(made)

    assert of(lambda row: row).column(CARRIED).to_pylist() == [0, 10, 20, 30, 40, 50]
    assert of(lambda row: row if row["id"] % 2 else None).column(CARRIED).to_pylist() == [0, 20, 40]
    assert of(lambda row: [row, row]).column(CARRIED).to_pylist() == [10 * (n // 2) for n in range(12)]
    assert of(lambda _: None).num_rows == 0
    picky = of(lambda row: {"id": 1 // (row["id"] - 3)}, letters=True)
    assert picky.column(CARRIED).null_count == 1
    assert picky.column_names == ["id", CARRIED, "__letter"]
