"""``headgate diff``."""

from __future__ import annotations

from pathlib import Path

from tests.cli.terminal import headgate

ONE = """
tasks:
- {id: read, type: rate}
- {id: hot, type: filter, config: {where: value > 30}, inputs: [read]}
- {id: show, type: write_console, inputs: [hot]}
"""
TWO = """
tasks:
- {id: source, type: rate}
- {id: hot, type: filter, config: {where: value > 30}, inputs: [source]}
- {id: cold, type: filter, config: {where: value < 0}, inputs: [source]}
- {id: show, type: write_console, inputs: [cold]}
"""


def _files(folder: Path) -> tuple[Path, Path]:
    one, two = folder / "one.yaml", folder / "two.yaml"
    one.write_text(ONE, encoding="utf-8")
    two.write_text(TWO, encoding="utf-8")
    return one, two


def test_what_is_equivalent_and_what_only_one_has(tmp_path: Path) -> None:
    one, two = _files(tmp_path)
    ran = headgate("diff", one, two)
    assert ran.status == 0
    assert [line.split(maxsplit=2) for line in ran.out.splitlines()[3:8]] == [
        ["read", "source", "equivalent"],
        ["hot", "hot", "equivalent"],
        ["-", "cold", "only in B"],
        ["-", "show", "only in B"],
        ["show", "-", "only in A"],
    ]
    assert f"A is {one}, B is {two}: 50% of B runs already when A does." in ran.out


def test_json_has_the_same(tmp_path: Path) -> None:
    document = headgate("diff", *_files(tmp_path), "--json").json
    assert document["overlap"] == [{"equivalent": 2, "only_a": 1, "only_b": 2, "shared": 0.5}]
    assert document["tasks"][0] == {"a": "read", "b": "source", "sharing": "equivalent"}


def test_a_dataflow_shares_everything_with_itself_in_whatever_format(flows: dict[str, Path]) -> None:
    for path in flows.values():
        assert headgate("diff", flows["yaml"], path, "--json").json["overlap"][0]["shared"] == 1.0


def test_a_broken_file_is_told_of_on_either_side(broken: Path, flow: Path) -> None:
    for files in ((broken, flow), (flow, broken)):
        ran = headgate("diff", *files)
        assert (ran.status, ran.out) == (2, "")
        assert "unknown task type 'fliter'" in ran.err
