"""``headgate show``."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from headgate.documents import parse
from headgate.sharing.signature import sign
from tests.cli.terminal import headgate
from tests.samples import DATAFLOW


def test_text_is_the_default(flow: Path) -> None:
    ran = headgate("show", flow)
    assert ran.status == 0
    assert ran.out.startswith("everything (owner ana): 10 tasks, 11 streams\n")
    assert ran.out == headgate("show", "--format", "text", flow).out


def test_every_view(flow: Path) -> None:
    assert headgate("show", flow, "-f", "mermaid").out.startswith("flowchart LR\n")
    assert ElementTree.fromstring(headgate("show", flow, "-f", "svg").out).tag.endswith("svg")
    assert headgate("show", flow, "-f", "json").json == headgate("show", flow, "--json").json


def test_json_is_the_document_with_signatures_and_state(flow: Path) -> None:
    document = headgate("show", flow, "--json").json
    signatures = sign(DATAFLOW)
    for task in document["tasks"]:
        assert task.pop("signature") == signatures[task["id"]]
        assert task.pop("stateful") == (task["id"] in ("smooth", "pair", "count"))
    import json

    assert parse(json.dumps(document), "json").dataflow == DATAFLOW


@pytest.mark.parametrize("view", ["text", "mermaid", "svg", "json"])
def test_a_view_can_be_written_to_a_file(flow: Path, tmp_path: Path, view: str) -> None:
    target = tmp_path / "view"
    ran = headgate("show", flow, "-f", view, "-o", target)
    assert (ran.status, ran.out) == (0, "")
    shown = headgate("show", flow, "-f", view).out
    assert target.read_text(encoding="utf-8").split() == shown.split() or view == "json"
    assert headgate("show", flow, "-f", view, "-o", target).status == 2
    assert headgate("show", flow, "-f", view, "-o", target, "--force").status == 0


def test_equivalent_tasks_are_left_out_with_a_notice(tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    path.write_text("tasks: [{id: a, type: rate}, {id: b, type: rate}]", encoding="utf-8")
    ran = headgate("show", path)
    assert "1 task," in ran.out
    assert "task 'b': does the same as task 'a'" in ran.err


def test_a_broken_file_is_told_of(broken: Path) -> None:
    for view in ("text", "mermaid", "svg", "json"):
        ran = headgate("show", broken, "-f", view)
        assert (ran.status, ran.out) == (2, "")
        assert "unknown task type 'fliter'" in ran.err


def test_an_unknown_view_is_a_slip(flow: Path) -> None:
    assert headgate("show", flow, "-f", "png").status == 2
