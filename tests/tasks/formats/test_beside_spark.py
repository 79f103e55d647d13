"""The rows that we make of files are those that Spark's own readers make of them, value by value."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.runtime.spark_internals.frames import arrow_schema
from headgate.tasks.formats.files import read_file
from tests.tasks.formats.test_files import FITTING, VALUES

pytestmark = pytest.mark.spark

COLUMNS = (
    "id bigint, i int, l bigint, s string, d double, b boolean, t timestamp, day date, m decimal(10,2), "
    "xs array<bigint>, r struct<a: bigint, c: string>, kv map<string, double>, e array<struct<n: string, v: string>>"
)
FLAT = "id bigint, i int, l bigint, s string, d double, b boolean, t timestamp, day date, m decimal(10,2)"
WHOLE = [json.dumps({"id": n, "e": [{"n": f"ü{n}", "v": "1"}, {"v": None}], "l": 2**63 - n}) for n in range(1, 60)]
BROKEN = [b"", b"nonsense", b'{"l": ', b'{"s": "\xe9\xfc", "id": 9}', b"7", b'"x"', b"\xff\xfe"]
ODD = [
    b'[{"id": 1001, "l": 1}, {"id": 1002, "l": 2}]',
    b'  {"id": 1003, "d": NaN}  ',
    b'{"id": 1004, "l": 123456789012345678901234567890, "d": 1e400, "m": 99999999999}',
    b'{"id": 1005, "s": "\\u00fc\\ud83d\\ude00\\n", "b": "true"}',
    b'{"id": 1006, "id": 1007, "l": 1.0, "i": 1e2}',
]


def lines(rnd: random.Random, names: list[str], count: int) -> list[bytes]:
    made = []
    for number in range(100, 100 + count):
        wild = rnd.random() < 0.3
        some = rnd.sample(names, rnd.randrange(1, len(names) + 1))
        record = {"id": number, **{n: rnd.choice(VALUES if wild else FITTING[n]) for n in some}, "other": [1]}
        if record.get("t") == 2**63 - 1:  # Spark's arithmetic overflows, to the second before 1970
            del record["t"]
        if isinstance(record.get("s"), dict | list):  # Spark keeps the text as it was written, with its blanks
            del record["s"]
        made.append(json.dumps(record, ensure_ascii=rnd.random() < 0.5).encode())
    return made


def ours(path: Path, form: str, columns: str, **options: Any) -> list[dict[str, Any]]:
    wanted = StructType.fromDDL(columns)
    assert isinstance(wanted, StructType)
    schema = arrow_schema(wanted)
    batches = [some.rows for some in read_file(str(path), form, schema, **options)]
    return pa.Table.from_batches(batches, schema).to_pylist()  # type: ignore[no-any-return]


def assert_same(path: Path, form: str, spark: SparkSession, columns: str, **options: Any) -> None:
    table = spark.read.schema(columns).options(**options).format(form).load(str(path)).coalesce(1).toArrow()
    theirs = {row["id"]: repr(row) for row in table.to_pylist() if row["id"] is not None}
    mine = {row["id"]: repr(row) for row in ours(path, form, columns, **options)}
    differ = [f"{mine.get(n)}\n{theirs.get(n)}" for n in mine.keys() | theirs.keys() if mine.get(n) != theirs.get(n)]
    assert not differ, f"{len(differ)} of {len(theirs)} rows differ:\n" + "\n".join(differ)


@pytest.mark.parametrize("seed", range(3))
def test_json(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rnd = random.Random(seed)
    some = [*lines(rnd, list(FITTING), 300), *(text.encode() for text in WHOLE), *BROKEN, *ODD]
    rnd.shuffle(some)
    (tmp_path / "a.json").write_bytes(b"\n".join(some))
    assert_same(tmp_path / "a.json", "json", spark, COLUMNS)


@pytest.mark.parametrize("seed", range(3))
def test_csv(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rnd = random.Random(seed)
    texts = ["id,i,l,s,d,b,t,day,m"]
    for number in range(300):
        wild = rnd.random() < 0.3
        values = [
            rnd.choice([*map(str, FITTING[n]), *(["", "x", "1e5", "NaN", "-", "Grüße"] if wild else [])])
            for n in "ilsdbt"
        ]
        values += [rnd.choice(FITTING["day"]), rnd.choice(["1.25", "3", "12345.67", "1.005", "x"])]
        texts.append(",".join([str(number), *(f'"{v}"' if "," in v else v for v in values if '"' not in v)]))
    (tmp_path / "a.csv").write_text("\n".join(texts), encoding="utf-8")
    assert_same(tmp_path / "a.csv", "csv", spark, FLAT, header=True)
