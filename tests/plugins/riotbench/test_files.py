"""Tasks that store files, pack and draw: against plain Python."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate_riotbench.files import Download, Plot, Upload, Zip, download, plot, upload, zipped


def lists(columns: Any) -> list[list[Any]]:
    return [column.to_pylist() for column in columns]


def test_what_is_uploaded_can_be_downloaded(tmp_path: Path) -> None:
    batch = pa.record_batch(
        {"name": ["a", "b", "../c", "d"], "n": [1, 2, 3, 4], "text": pa.array(["ä", "b", "c", None])}
    )
    folder = str(tmp_path / "blobs")
    made = upload(Upload(folder=folder, name="name", content="text", ending=".txt"))(batch)
    names, numbers, paths = lists(made.columns)
    assert (names, numbers) == (["a", "b"], [1, 2])
    assert [Path(path).read_text(encoding="utf-8") for path in paths] == ["ä", "b"]
    assert [reason for _, reason in made.failed] == [
        "ValueError: '../c' cannot be the name of a file",
        "ValueError: text is null",
    ]
    assert sorted(file.name for file in Path(folder).iterdir()) == ["a.txt", "b.txt"]
    asked = pa.record_batch({"path": [*paths, "b.txt", "none.txt", "../secret", None]})
    back = download(Download(folder=folder, name="path", most_bytes=10))(asked)
    assert lists(back.columns)[1] == ["ä".encode(), b"b", b"b"]
    assert [place for place, _ in back.failed] == [3, 4, 5]
    Path(folder, "a.txt").write_text("x" * 11)
    assert (
        "11 bytes, and 10 are allowed"
        in download(Download(folder=folder, name="path", most_bytes=10))(asked).failed[0][1]
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
    ((place, reason),) = made.failed
    assert (place, reason) == (1, "ValueError: raw is null")
    (picture,) = lists(made.columns)[-1]
    texts = {
        "".join(e.itertext()).strip() for e in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
    }
    assert {"s1", "degrees", "raw", "smooth"} <= texts
    assert picture == lists(plot(Plot(lines=("raw", "smooth"), title="s", y_label="degrees"))(batch).columns)[-1][0]
    png = plot(Plot(lines=("smooth",), x="smooth", format="png"))(batch)
    assert lists(png.columns)[-1][0].startswith(b"\x89PNG")
