"""Tasks that look up in files and databases, store files, pack and draw: against plain Python."""

from __future__ import annotations

import io
import os
import sqlite3
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate.errors import InputError
from headgate.tasks.blobs import Download, Plot, Upload, Zip
from headgate.tasks.filing import download, plot, upload, zipped
from headgate.tasks.looking_up import annotate, query_table
from headgate.tasks.lookups import Annotate, QueryTable


def lists(columns: Any) -> list[list[Any]]:
    return [column.to_pylist() for column in columns]


def test_annotate_adds_what_the_table_has(tmp_path: Path) -> None:
    path = tmp_path / "places.txt"
    path.write_text("s1:harbour,4\ns2:hill\nno colon\ns1:again,5\ns3:gate,many\n")
    options = Annotate(key="ID", path=str(path), columns="id string, place string, level bigint")
    batch = pa.record_batch({"id": ["s2", "s1", "s9", None, "s3"]})
    made = annotate(options)(batch)
    assert lists(made.columns) == [
        ["s2", "s1", "s9", None, "s3"],
        ["hill", "harbour", None, None, "gate"],
        [None, 4, None, None, None],
    ]
    dropping = annotate(options.model_copy(update={"unknown": "drop"}))(batch)
    assert lists(dropping.columns)[0] == ["s2", "s1", "s3"]
    assert dropping.origin is not None
    assert dropping.origin.tolist() == [0, 1, 4]
    path.write_text("s9:new,1\n")
    os.utime(path, ns=(0, 5))
    assert lists(annotate(options)(batch).columns)[1] == [None, None, "new", None, None]
    with pytest.raises(InputError, match="no file at"):
        annotate(options.model_copy(update={"path": "nowhere.txt"}))(batch)


def test_query_table_finds_what_sqlite_finds(tmp_path: Path) -> None:
    path = tmp_path / "trips.db"
    connection = sqlite3.connect(path)
    connection.execute("create table trips (id integer, fare real)")
    connection.executemany("insert into trips values (?, ?)", [(n, n / 4) for n in range(100)])
    connection.commit()
    query = "select id, fare from trips where id >= :first and id < :last order by id"
    options = QueryTable(url=f"sqlite:///{path}", query=query, columns="id bigint, fare double", keep=("first",))
    ranges = [(3, 6), (200, 300), (97, 300)]
    batch = pa.record_batch({"first": [a for a, _ in ranges], "last": [b for _, b in ranges]})
    made = query_table(options)(batch)
    wanted = [
        (place, first, *row)
        for place, (first, last) in enumerate(ranges)
        for row in connection.execute(query.replace(":first", "?").replace(":last", "?"), (first, last))
    ]
    connection.close()
    assert made.origin is not None
    assert list(zip(made.origin.tolist(), *lists(made.columns), strict=True)) == wanted
    assert len(wanted) == 6
    wrong = query_table(options.model_copy(update={"query": "select id, fare from trips where id = :nothing"}))(batch)
    assert [told for _, told in wrong.bad] == ["the query asks for :nothing, which is no column of the row"] * 3
    broken = query_table(options.model_copy(update={"query": "select id from nowhere"}))(batch)
    assert "no such table" in broken.bad[0][1]


def test_what_is_uploaded_can_be_downloaded(tmp_path: Path) -> None:
    batch = pa.record_batch(
        {"name": ["a", "b", "../c", "d"], "n": [1, 2, 3, 4], "text": pa.array(["ä", "b", "c", None])}
    )
    folder = str(tmp_path / "blobs")
    made = upload(Upload(folder=folder, name="name", content="text", ending=".txt"))(batch)
    names, numbers, paths = lists(made.columns)
    assert (names, numbers) == (["a", "b"], [1, 2])
    assert [Path(path).read_text(encoding="utf-8") for path in paths] == ["ä", "b"]
    assert [told for _, told in made.bad] == [
        "ValueError: '../c' cannot be the name of a file",
        "ValueError: text is null",
    ]
    assert sorted(file.name for file in Path(folder).iterdir()) == ["a.txt", "b.txt"]
    asked = pa.record_batch({"path": [*paths, "b.txt", "none.txt", "../secret", None]})
    back = download(Download(folder=folder, name="path", most_bytes=10))(asked)
    assert lists(back.columns)[1] == ["ä".encode(), b"b", b"b"]
    assert [place for place, _ in back.bad] == [3, 4, 5]
    Path(folder, "a.txt").write_text("x" * 11)
    assert (
        "11 bytes, and 10 are allowed" in download(Download(folder=folder, name="path", most_bytes=10))(asked).bad[0][1]
    )


def test_an_archive_holds_what_was_packed() -> None:
    contents = {f"chart{n}": f"<svg>{n}</svg>" * 50 for n in range(5)}
    batch = pa.record_batch({"n": [*contents, "chart0"], "c": [*contents.values(), "again"]})
    made = zipped(Zip(name="n", content="c", size=4))(batch)
    names, entries, archives = lists(made.columns)
    assert (names, entries) == (["chart0", "chart4"], [4, 2])
    unpacked: dict[str, str] = {}
    for held in archives:
        with zipfile.ZipFile(io.BytesIO(held)) as archive:
            unpacked |= {info.filename: archive.read(info).decode() for info in archive.infolist()}
    assert unpacked == {**contents, "chart0": "again"}
    assert sum(map(len, archives)) < sum(map(len, contents.values()))
    assert archives == lists(zipped(Zip(name="n", content="c", size=4))(batch).columns)[2]


def test_names_in_one_archive_differ() -> None:
    made = zipped(Zip(name="n", content="c"))(pa.record_batch({"n": ["a", "a", "a"], "c": [b"1", b"2", b"3"]}))
    with zipfile.ZipFile(io.BytesIO(made.columns[2][0].as_py())) as archive:
        assert [(info.filename, archive.read(info)) for info in archive.infolist()] == [
            ("a", b"1"),
            ("a-2", b"2"),
            ("a-3", b"3"),
        ]


def test_a_chart_has_a_line_for_each_column() -> None:
    batch = pa.record_batch(
        {"s": ["s1", "s2"], "raw": [[1.0, 5.0, None, 2.0], None], "smooth": [[1.0, 2.0, 3.0, 2.5]] * 2}
    )
    made = plot(Plot(lines=("raw", "smooth"), title="s", y_label="degrees"))(batch)
    ((place, told),) = made.bad
    assert (place, told) == (1, "ValueError: raw is null")
    (picture,) = lists(made.columns)[-1]
    texts = {
        "".join(e.itertext()).strip() for e in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
    }
    assert {"s1", "degrees", "raw", "smooth"} <= texts
    assert picture == lists(plot(Plot(lines=("raw", "smooth"), title="s", y_label="degrees"))(batch).columns)[-1][0]
    png = plot(Plot(lines=("smooth",), x="smooth", format="png"))(batch)
    assert lists(png.columns)[-1][0].startswith(b"\x89PNG")
