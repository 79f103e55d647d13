"""Mutated dataflows, records and requests: each is read or refused with a sentence, soon, and nothing is kept.

Expressions, queries and patterns are in ``tests/model/sql/test_mutated.py``; generated requests that follow the
document of the API in ``tests/api/test_fuzz.py``.
"""

from __future__ import annotations

import json
import random
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.documents import FORMATS
from headgate.tasks.formats.lines import csv_lines, json_lines, text_lines
from tests.api.fake import FakeEngine
from tests.api.in_process import InProcess
from tests.api.samples import document
from tests.hostile import SNIPPETS, TEXTS, check_told

LONGEST_S, MOST_GROWTH_MB = 5.0, 300
ENCODED = tuple(one.encode() for one in SNIPPETS)
BYTES = (*ENCODED, b"\xff", b"\xed\xa0\x80", b"\0", b"\x1f\x8b", b"{" * 3_000, b'"' * 30, b"\r", b"1e400", b"\\ud800")

RECORDS = (
    b'{"id": 1, "k": "a", "v": 1.5, "t": "2026-01-01T00:00:00Z", "n": {"x": [1, 2]}, "d": "9.99", "y": "2026-01-01"}\n'
    b'{"id": 2, "k": null, "v": -0.0, "t": 1700000000, "n": null, "d": 1, "y": null}\n',
    b'1,a,1.5,2026-01-01 00:00:00,"{""x"": [1]}",9.99,2026-01-01\n2,"b,c",,,,,\n',
    b"plain\ntext \xc3\xa9\n\n",
)
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.string()),
        ("v", pa.float64()),
        ("t", pa.timestamp("us", "UTC")),
        ("n", pa.struct([("x", pa.list_(pa.int32()))])),
        ("d", pa.decimal128(6, 2)),
        ("y", pa.date32()),
    ]
)
FLAT = pa.schema([field for field in COLUMNS if field.name != "n"])
LINE = pa.schema([("value", pa.string())])
READERS = ((json_lines, COLUMNS, RECORDS[0]), (csv_lines, FLAT, RECORDS[1]), (text_lines, LINE, RECORDS[2]))


def damaged(data: bytes, draw: random.Random, others: tuple[bytes, ...]) -> bytes:
    """Bytes with some damage: parts gone, doubled, swapped or replaced, and bytes that do not belong there."""
    for _ in range(draw.choice((0, 1, 1, 2, 4))):
        at, end = sorted((draw.randint(0, len(data)), draw.randint(0, len(data))))
        end = min(end, at + 40) if draw.random() < 0.7 else end
        kind = draw.randrange(6)
        if kind == 0:
            data = data[:at] + data[end:]
        elif kind == 1:
            data = data[:at] + draw.choice(BYTES) + data[at:]
        elif kind == 2:
            data = data[:end] + data[at:end] * draw.choice((1, 2, 20)) + data[end:]
        elif kind == 3:
            data = data[:at] + draw.choice(others)[: draw.randint(1, 200)] + data[end:]
        elif kind == 4:
            data = data[:at] + draw.randbytes(draw.randint(1, 4)) + data[end:]
        else:
            data = data[:at] + data[at:end][::-1] + data[end:]
    return data[:20_000]


def a_dataflow(draw: random.Random) -> bool:
    form = draw.choice(sorted(FORMATS))
    texts = tuple(text.encode() for text in TEXTS.values())
    return check_told(damaged(TEXTS[form].encode(), draw, texts), form) is not None


def a_record(draw: random.Random) -> bool:
    read, columns, sample = draw.choice(READERS)
    rows, broken = read(damaged(sample * draw.randint(1, 3), draw, RECORDS), columns)
    rows.validate(full=read is not text_lines)
    assert rows.schema == columns
    for line in broken:
        assert line.line >= 0
        assert line.reason
        assert "Traceback" not in line.reason
    return not broken


def requests_to(folder: Path) -> Callable[[random.Random], bool]:
    """Bodies of submissions, with some damage, to an application with an engine that runs nothing."""
    send = InProcess(FakeEngine(folder))
    bodies = tuple(json.dumps({"dataflows": [document(name, owner="city")]}).encode() for name in ("a", "b"))

    def a_request(draw: random.Random) -> bool:
        headers = {"Content-Type": draw.choice((*["application/json"] * 4, "text/plain", ""))}
        path = draw.choice((*["/dataflows"] * 5, "/withdrawals", "/plans", "/tokens", "/dataflows/a/level"))
        method = draw.choice((*["POST"] * 5, "PATCH", "PUT", "DELETE"))
        answer = send(method, path, content=damaged(draw.choice(bodies), draw, bodies), headers=headers)
        assert answer.status_code < 500 or answer.status_code in (501, 503), answer.text[:500]
        assert "Traceback" not in answer.text
        if answer.is_error:
            assert answer.json()["title" if "title" in answer.json() else "detail"]
        return not answer.is_error

    return a_request


def campaign(one: Callable[[random.Random], bool], count: int, seed: int) -> None:
    """Make so many; some are fine and some are refused, each soon, and memory does not grow."""
    draw, fine, slowest = random.Random(seed), 0, 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(count):
        began = time.process_time()
        fine += one(draw)
        slowest = max(slowest, time.process_time() - began)
        assert slowest < LONGEST_S
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < MOST_GROWTH_MB
    assert 0 < fine < count, "some are fine, and some are not"
    print(f"{one.__name__}: {count:,}, {fine:,} of them fine, {slowest:.2f} s at most")


@pytest.mark.parametrize(("one", "count"), [(a_dataflow, 600), (a_record, 1_500)])
def test_some_are_read_or_refused(one: Callable[[random.Random], bool], count: int) -> None:
    campaign(one, count, seed=1)


def test_some_requests_are_answered_or_refused(tmp_path: Path) -> None:
    campaign(requests_to(tmp_path), 300, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("one", "count"), [(a_dataflow, 40_000), (a_record, 40_000)])
def test_many_are_read_or_refused(one: Callable[[random.Random], bool], count: int) -> None:
    campaign(one, count, seed=2)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_requests_are_answered_or_refused(tmp_path: Path) -> None:
    campaign(requests_to(tmp_path), 20_000, seed=2)
