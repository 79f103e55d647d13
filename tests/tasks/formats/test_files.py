"""Files become rows whatever is in them: values that do not fit are null, and parts of a file are the file."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate.tasks.formats.files import read_file

SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("s", pa.string()),
        ("d", pa.float64()),
        ("b", pa.bool_()),
        ("t", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("m", pa.decimal128(10, 2)),
        ("xs", pa.list_(pa.int64())),
        ("r", pa.struct([("a", pa.int64()), ("c", pa.string())])),
        ("kv", pa.map_(pa.string(), pa.float64())),
    ]
)
AT, NAN = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC), float("nan")
TIMES = [
    "2026-02-03T04:05:06Z",
    "2026-02-03 04:05:06",
    "2026-02-03T04:05:06.123456",
    "2026-02-03T04:05:06.1234567+02:00",
    "2026-02-03T04:05:06-07:30",
    "2026-02-03",
    "2026-2-3 4:05",
    "soon",
    "",
]
VALUES: list[Any] = [
    *TIMES, 0, 1, -7, 2**31, 2**63 - 1, 1.5, -0.25, 1e300, True, False, None, "x", "7", "1.25", "true", "NaN",
    "Grüße, 世界",
    [1, 2, None], ["a"], [], {"a": 1, "c": "z"}, {"a": "x"}, {"k": 1.5}, {},
]  # fmt: skip
FITTING: dict[str, list[Any]] = {
    "i": [0, -7, 2**31 - 1],
    "l": [1, 2**62],
    "s": ["x", "", "Grüße", 'quote " and \\ backslash'],
    "d": [1.5, 2, -1e-9],
    "b": [True, False],
    "t": TIMES[:5],
    "day": ["2026-02-03"],
    "m": [1.25, 3, "12345.67", 1.005],
    "xs": [[1, 2], []],
    "r": [{"a": 1, "c": "z"}, {"a": 2}],
    "kv": [{"k": 1.5}],
}


def lines(rnd: random.Random, count: int) -> list[str]:
    """Records whose values mostly fit, with some columns missing, in any order, and columns that nobody asked for."""
    made = []
    for _ in range(count):
        names = rnd.sample([*FITTING, "other"], rnd.randrange(1, len(FITTING) + 2))
        wild = rnd.random() < 0.3
        record = {n: rnd.choice(VALUES if wild or n == "other" else FITTING[n]) for n in names}
        made.append(json.dumps(record, ensure_ascii=rnd.random() < 0.5))
    return made


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_in_a_record_of_json_it_is_one_row(tmp_path: Path, seed: int) -> None:
    texts = lines(random.Random(seed), 500)
    path = tmp_path / "a.json"
    path.write_text("\n".join(texts), encoding="utf-8")
    some = list(read_file(str(path), "json", SCHEMA))
    assert sum(len(one.rows) for one in some) == len(texts)
    assert [line for one in some for line in one.broken] == []
    rows = [row for one in some for row in one.rows.to_pylist()]
    for text, row in zip(texts, rows, strict=True):
        record = json.loads(text)
        assert all(row[name] is None for name in SCHEMA.names if record.get(name) is None)
        for name, kind in (("l", int), ("b", bool)):
            assert row[name] == (record[name] if type(record.get(name)) is kind else None)


def test_values_of_csv_that_fit_and_that_do_not(tmp_path: Path) -> None:
    flat = pa.schema([SCHEMA.field(name) for name in ("i", "d", "b", "t", "day", "m", "s")])
    cases: list[tuple[str, list[Any]]] = [
        ("7,1.5,true,2026-02-03T04:05:06Z,2026-02-03,1.25,x", [7, 1.5, True, AT, AT.date(), Decimal("1.25"), "x"]),
        ("x,x,x,x,x,NaN,", [None] * 7),
        (
            "2147483648,NaN,TRUE,2026-02-03 04:05:06,2026-2-3,1.005,",
            [None, NAN, True, AT, AT.date(), Decimal("1.01"), None],
        ),
        ("7", [7, *[None] * 6]),
        ('7,1,,,,123456789,"a,b"', [7, 1.0, None, None, None, None, "a,b"]),
    ]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["names,of,columns", *(text for text, _ in cases)]), encoding="utf-8")
    rows = [row for one in read_file(str(path), "csv", flat, header=True) for row in one.rows.to_pylist()]
    assert repr([list(_utc(row).values()) for row in rows]) == repr([wanted for _, wanted in cases])


def test_bytes_that_are_not_utf_8(tmp_path: Path) -> None:
    """JSON is UTF-8 (RFC 8259, section 8.1); of CSV and text, the rest of the line is as good as before."""
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    path = tmp_path / "a"
    path.write_bytes(b'{"a": 1, "b": "\xc3\xbc"}\n{"a": 2, "b": "\xfc"}\n{"a": 3}\n')
    (some,) = read_file(str(path), "json", schema)
    assert some.rows.to_pylist() == [{"a": 1, "b": "ü"}, {"a": 3, "b": None}]
    assert [(one.line, one.text) for one in some.broken] == [(1, '{"a": 2, "b": "\ufffd"}')]
    path.write_bytes(b"1,\xfc\n")
    (some,) = read_file(str(path), "csv", schema)
    assert some.rows.to_pylist() == [{"a": 1, "b": "\ufffd"}]
    (some,) = read_file(str(path), "text", pa.schema([("value", pa.string())]))
    assert some.rows.column(0).cast(pa.binary()).to_pylist() == [b"1,\xfc"]


def _utc(row: dict[str, Any]) -> dict[str, Any]:
    return {n: v.astimezone(UTC) if isinstance(v, datetime) else v for n, v in row.items()}


def test_a_file_in_parts_is_the_file(tmp_path: Path) -> None:
    schema, rnd = pa.schema([("l", pa.int64()), ("s", pa.string())]), random.Random(3)
    texts = [json.dumps({"l": n, "s": "x" * rnd.randrange(200)}) for n in range(300)]
    texts[120] = "broken"
    path = tmp_path / "a.json"
    path.write_text("\r\n".join(texts), encoding="utf-8")
    size = path.stat().st_size
    for _ in range(20):
        cuts = [0, *sorted(rnd.sample(range(1, size), 5)), size]
        some = [one for a, b in pairwise(cuts) for one in read_file(str(path), "json", schema, first=a, last=b)]
        assert [n for one in some for n in one.rows.column("l").to_pylist()] == [n for n in range(300) if n != 120]
        assert [(line.line, line.text.strip()) for one in some for line in one.broken] == [(120, "broken")]


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst"])
def test_compressed_files(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.txt.{ending}"
    with pa.output_stream(str(path), compression={"gz": "gzip", "bz2": "bz2", "zst": "zstd"}[ending]) as file:
        file.write(b"one\ntwo\n")
    (some,) = read_file(str(path), "text", pa.schema([("value", pa.string())]))
    assert some.rows.column(0).to_pylist() == ["one", "two"]
