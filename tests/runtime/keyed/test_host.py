"""The keyed host: what a key is, and state that is fetched and put back for many keys at once."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.runtime.engine.engine import Engine
from headgate.runtime.keyed.host import groups_for
from headgate.runtime.keyed.packing import key_text
from tests.runtime.small import files, flow, memory

TEXTS = ["", "a", "A", "'", '"', "k" * 50_000, "é\n\t", "null", "None", None, *(f"k{n}" for n in range(1_500))]
NUMBERS = [math.nan, -math.nan, 0.0, -0.0, math.inf, 1.5, None]


def spark_key(value: object) -> object:
    """What Spark takes for one key, in a form that Python takes for one key too."""
    if isinstance(value, float):
        return "not a number" if math.isnan(value) else value + 0.0
    return value


def put_parquet(folder: Path, name: str, columns: dict[str, pa.Array]) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), folder / f".{name}")
    (folder / f".{name}").rename(folder / f"{name}.parquet")


def counted(engine: Engine, folder: Path, key: str, columns: str) -> Counter[tuple[object, int]]:
    source = files(folder, format="parquet", columns=columns, files_per_batch=1)
    engine.submit(flow("n", source, {"type": "count", "config": {"key": [key], "into": "n"}}, memory("n")))
    engine.wait_until_idle()
    return Counter((spark_key(row[key]), int(row["n"])) for row in engine.memory.rows("n"))


def wanted(epochs: list[list[Any]]) -> Counter[tuple[object, int]]:
    totals = Counter(spark_key(value) for epoch in epochs for value in epoch)
    return Counter((key, n) for key, total in totals.items() for n in range(1, total + 1))


@pytest.mark.spark
def test_texts_as_keys_many_and_long(engine: Engine, tmp_path: Path) -> None:
    epochs = [TEXTS, TEXTS[::-1] + TEXTS[:300], TEXTS[7:]]
    for number, epoch in enumerate(epochs):
        put_parquet(tmp_path / "in", str(number), {"k": pa.array(epoch, pa.string())})
    assert counted(engine, tmp_path / "in", "k", "k string") == wanted(epochs)


@pytest.mark.spark
def test_numbers_as_keys(engine: Engine, tmp_path: Path) -> None:
    epochs = [NUMBERS, NUMBERS * 3, NUMBERS[:2]]
    for number, epoch in enumerate(epochs):
        put_parquet(tmp_path / "in", str(number), {"v": pa.array(epoch, pa.float64())})
    assert counted(engine, tmp_path / "in", "v", "v double") == wanted(epochs)


@pytest.mark.spark
def test_state_greater_than_what_a_socket_holds(engine: Engine, tmp_path: Path) -> None:
    """Each of many keys remembers a thousand values, so that answers come while requests are still being sent."""
    keys, values, size = 60, 1_200, 1_000
    rows = [(key, float(key * n % 97)) for n in range(values) for key in range(keys)]
    for number in range(2):
        half = rows[number * len(rows) // 2 : (number + 1) * len(rows) // 2]
        columns = {"k": pa.array([key for key, _ in half]), "v": pa.array([value for _, value in half])}
        put_parquet(tmp_path / "in", str(number), columns)
    source = files(tmp_path / "in", format="parquet", columns="k long, v double", files_per_batch=1)
    average = {"type": "moving_average", "config": {"key": ["k"], "column": "v", "size": size, "into": "mean"}}
    engine.submit(flow("m", source, average, {"type": "count", "config": {"key": ["k"], "into": "n"}}, memory("m")))
    engine.wait_until_idle()
    last = {row["k"]: row["mean"] for row in engine.memory.rows("m") if row["n"] == values}
    assert set(last) == set(range(keys))
    for key, mean in last.items():
        window = [value for outcome, value in rows if outcome == key][-size:]
        assert mean == pytest.approx(sum(window) / size)


@given(st.lists(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary()), max_size=3))
def test_key_texts_differ_where_keys_do(values: list[Any]) -> None:
    other = [*values[:-1], "other"] if values and values[-1] != "other" else [*values, 0]
    assert key_text(values) == key_text(list(values))
    assert key_text(values) != key_text(other)


@pytest.mark.parametrize("partitions", [1, 2, 8, 200])
def test_every_partition_can_have_keys(partitions: int) -> None:
    assert groups_for(partitions) >= 8 * partitions
