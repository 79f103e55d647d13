"""``headgate convert``, and how files are written."""

from __future__ import annotations

import os
import stat
import tempfile
import threading
from pathlib import Path

import pytest

from headgate.cli.output import write_file
from headgate.documents import FORMATS, read
from headgate.errors import InputError
from tests.cli.terminal import headgate
from tests.samples import DATAFLOW, ENDINGS, TEXTS

AS_ROOT = os.geteuid() == 0


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_every_format_becomes_every_other(flows: dict[str, Path], tmp_path: Path, source: str, target: str) -> None:
    output = tmp_path / f"converted{ENDINGS[target]}"
    assert headgate("convert", flows[source], output).status == 0
    assert read(output).dataflow == DATAFLOW
    assert headgate("convert", flows[source], "--to", target).out == output.read_text(encoding="utf-8") == TEXTS[target]


def test_the_format_can_be_given_beside_a_file(flow: Path, tmp_path: Path) -> None:
    output = tmp_path / "any.ending"
    assert headgate("convert", flow, output, "--to", "json").status == 0
    assert output.read_text(encoding="utf-8") == TEXTS["json"]


def test_without_target_or_format_there_is_nothing_to_do(flow: Path) -> None:
    ran = headgate("convert", flow)
    assert ran.status == 2
    assert "name a file to write to" in ran.err


def test_an_unknown_ending_is_told_of(flow: Path, tmp_path: Path) -> None:
    ran = headgate("convert", flow, tmp_path / "a.jsn")
    assert ran.status == 2
    assert "did you mean '.json'?" in ran.err


def test_a_broken_file_is_told_of_and_nothing_written(broken: Path, tmp_path: Path) -> None:
    ran = headgate("convert", broken, tmp_path / "out.json")
    assert ran.status == 2
    assert "unknown task type 'fliter'" in ran.err
    assert not (tmp_path / "out.json").exists()


def test_an_existing_file_is_kept_unless_forced(flow: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    output.write_text("precious", encoding="utf-8")
    ran = headgate("convert", flow, output)
    assert ran.status == 2
    assert "exists; choose another name or add --force" in ran.err
    assert output.read_text(encoding="utf-8") == "precious"
    assert headgate("convert", flow, output, "--force").status == 0
    assert output.read_text(encoding="utf-8") == TEXTS["json"]


def test_converting_a_file_into_itself(flow: Path) -> None:
    assert headgate("convert", flow, flow, "--force").status == 0
    assert read(flow).dataflow == DATAFLOW


def test_places_that_cannot_be_written(flow: Path, tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    for target in (tmp_path / "no" / "such" / "out.json", tmp_path / ("x" * 300 + ".json"), flow / "out.json"):
        ran = headgate("convert", flow, target)
        assert ran.status == 2
        assert f"headgate: cannot write {target}: " in ran.err
    assert "exists" in headgate("convert", flow, tmp_path / "folder.json").err
    assert "cannot write" in headgate("convert", flow, tmp_path / "folder.json", "--force").err
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".headgate")] == []


def test_what_the_system_does_not_permit_is_told(flow: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    ran = headgate("convert", flow, tmp_path / "out.json")
    assert (ran.status, ran.err) == (2, f"headgate: cannot write {tmp_path / 'out.json'}: permission denied\n")
    monkeypatch.setattr(Path, "open", refuse)
    ran = headgate("convert", flow, "--to", "json")
    assert (ran.status, ran.err) == (2, f"fault  {flow}: cannot read this file: permission denied\n")


@pytest.mark.skipif(AS_ROOT, reason="root may write and read everything")
def test_folders_and_files_without_permission(flow: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o500)
    assert "permission denied" in headgate("convert", flow, closed / "out.json").err
    closed.chmod(0o000)
    assert "permission denied" in headgate("convert", flow, closed / "out.json").err
    closed.chmod(0o700)
    flow.chmod(0o000)
    ran = headgate("convert", flow, "--to", "json")
    assert (ran.status, "permission denied" in ran.err) == (2, True)


def test_a_file_is_written_with_the_usual_permissions(tmp_path: Path) -> None:
    write_file(tmp_path / "a", "text")
    usual = tmp_path / "b"
    usual.write_text("text", encoding="utf-8")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_file(tmp_path / "link", "new", force=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text(encoding="utf-8") == "new"


def test_pipes_are_written_into_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text(encoding="utf-8")), daemon=True)
    reader.start()
    write_file(pipe, "through")
    reader.join(10)
    assert got == ["through"]
    assert pipe.is_fifo()


def test_devices_are_written_into_and_not_replaced() -> None:
    write_file(Path(os.devnull), "gone", force=True)
    assert Path(os.devnull).is_char_device()


def test_when_writing_fails_half_way_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InputError, match="no space left on device"):
        write_file(tmp_path / "a", "text")
    assert list(tmp_path.iterdir()) == []
