"""Annotating rows from a table in a file: against plain Python."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate.errors import InputError
from headgate_riotbench.annotate import Annotate, annotate


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
