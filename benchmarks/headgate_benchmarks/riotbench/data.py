"""The records that ``headgate bench apps`` runs applications on, and whether two runs put out the same."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from headgate_riotbench.generate import Generate

__all__ = ["charts_of", "put_records", "rows_of", "same_charts", "same_rows"]

PARTITIONS = 2
"""Records come in so many logs, all of a sender in one of them, as a broker would keep them."""

NEAR = 1e-9
"""How far numbers may be apart, relative to their size: systems add up in another order each."""

Row = tuple[str, int, dict[str, object]]


def put_records(folder: Path, count: int, seed: int, per_file: int, *, numbered: bool = False, logs: int = 2) -> None:
    """Write the first records of the generator's city as files of lines, one in a hundred broken.

    With ``numbered``, a line begins with the record's number and a comma.
    """
    from headgate_riotbench.generate import records, values_of

    folder.mkdir(parents=True)
    options = Generate(bad=0.01, seed=seed)
    senders = values_of(options, count)["key"].astype(int).tolist()
    for first in range(0, count, per_file):
        numbers = range(first, min(first + per_file, count))
        lines: list[list[bytes]] = [[] for _ in range(logs)]
        for number, record in zip(numbers, records(options, numbers), strict=True):
            lines[senders[number] % logs].append(b"%d,%s\n" % (number, record) if numbered else record + b"\n")
        for log, some in enumerate(lines):
            (folder / f"{first // per_file:06d}-{log}.txt").write_bytes(b"".join(some))


def _lines(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith((".", "_")) and "_spark_metadata" not in path.parts:
            with path.open(encoding="utf-8") as file:
                yield from (line for line in file if line.strip())


def rows_of(folder: Path) -> list[Row]:
    """The SenML records of a folder's files: sender, time and fields, in an order that depends on nothing else."""
    rows = []
    for line in _lines(folder):
        record = json.loads(line)
        if "senml" in record:
            record = json.loads(record["senml"])
        fields = {entry["n"]: entry.get("v", entry.get("sv")) for entry in record["e"]}
        rows.append((str(fields["source"]), int(record["bt"]), fields))
    return sorted(rows, key=lambda row: (row[0], row[1], sorted(row[2]), _rough(row[2])))


def _rough(fields: Mapping[str, object]) -> list[str]:
    return [f"{value:.4g}" if isinstance(value, float | int) else str(value) for _, value in sorted(fields.items())]


def same_rows(one: Sequence[Row], other: Sequence[Row]) -> float:
    """The share of rows that are the same, but for how numbers were rounded.

    >>> same_rows([("a", 1, {"t": 0.1 + 0.2})], [("a", 1, {"t": 0.3})]), same_rows([("a", 1, {"t": 1})], [])
    (1.0, 0.0)
    """
    pairs = list(zip_longest(one, other))
    return sum(_is_same(*pair) for pair in pairs) / len(pairs) if pairs else 0.0


def _is_same(one: Row | None, other: Row | None) -> bool:
    if one is None or other is None or one[:2] != other[:2] or one[2].keys() != other[2].keys():
        return False
    return all(_is_near(value, other[2][name]) for name, value in one[2].items())


def _is_near(one: object, other: object) -> bool:
    if isinstance(one, float | int) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=NEAR)
    return one == other


def charts_of(folder: Path) -> dict[str, bytes]:
    """The pictures in a folder's archives, by title."""
    charts: dict[str, bytes] = {}
    for path in folder.glob("*.zip"):
        with zipfile.ZipFile(path) as archive:
            charts |= {name: archive.read(name) for name in archive.namelist()}
    return charts


def same_charts(one: Mapping[str, bytes], other: Mapping[str, bytes]) -> float:
    """The share of charts that are there in both and the same to the byte.

    >>> same_charts({"a": b"1", "b": b"2"}, {"a": b"1", "c": b"2"})
    0.3333333333333333
    """
    titles = one.keys() | other.keys()
    return sum(one.get(title) == other.get(title) for title in titles) / len(titles) if titles else 0.0
