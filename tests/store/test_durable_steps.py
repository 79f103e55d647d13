"""Named durable steps: each has a place in the source, and a process ends there and nowhere else."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.store import entries
from headgate.store.durable_steps import MOMENTS, STEPS, VARIABLE
from headgate.store.files import append_line, write_text

SOURCE = Path(__file__).parents[2] / "src" / "headgate"
TAKE_A_NAME = {"step": 0, "write_text": 2, "write_bytes": 2, "write_json": 2, "append_line": 2}

WRITES = """
import sys
from pathlib import Path
from headgate.store import entries
from headgate.store.durable_steps import step
from headgate.store.files import append_line, write_text
folder = Path(sys.argv[1])
for text in ("first", "second", "third!"):
    write_text(folder / "file", text, "commit")
    append_line(folder / "lines", text, "answer")
    with step("delivery") as point:
        (folder / f"{text} moved").touch()
        point.halfway()
        (folder / f"{text} described").touch()
"""


def _names_in_the_source() -> set[str]:
    names = set()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            at = TAKE_A_NAME.get(node.func.id)
            name = node.args[at] if at is not None and len(node.args) > at else None
            if isinstance(name, ast.Constant):
                names.add(str(name.value))
    return names


def test_every_step_is_registered_and_taken() -> None:
    appended = set(entries.STEPS.values())
    assert _names_in_the_source() | appended == set(STEPS)
    assert set(entries.STEPS) == {kind.__name__ for kind in entries.Entry.__args__}


def run(folder: Path, aim: str | None = None) -> int:
    """Run the writes, with an aim or with what is left of it."""
    if aim is not None:
        (folder / "aim").write_text(aim, encoding="utf-8")
    environment = {**os.environ, VARIABLE: str(folder / "aim")}
    return subprocess.run([sys.executable, "-c", WRITES, folder], env=environment).returncode


@pytest.mark.parametrize(
    ("moment", "content", "lines"),
    [("before", "first", "first\n"), ("half", "first", "first\n"), ("after", "second", "first\n")],
)
def test_ends_at_a_file_that_is_replaced(tmp_path: Path, moment: str, content: str, lines: str) -> None:
    """A file that is replaced is the old one or the new one, however far the write got."""
    assert run(tmp_path, f"{moment} commit 2") == -signal.SIGKILL
    assert (tmp_path / "file").read_text() == content
    assert (tmp_path / "lines").read_text() == lines
    assert (tmp_path / f"aim.{moment}.commit.ended").exists()


@pytest.mark.parametrize(
    ("moment", "lines"), [("before", "first\n"), ("half", "first\nsec"), ("after", "first\nsecond\n")]
)
def test_ends_at_a_line_that_is_appended(tmp_path: Path, moment: str, lines: str) -> None:
    assert run(tmp_path, f"{moment} answer 2") == -signal.SIGKILL
    assert (tmp_path / "file").read_text() == "second"
    assert (tmp_path / "lines").read_text() == lines


@pytest.mark.parametrize(("moment", "moved", "described"), [("before", 2, 2), ("half", 3, 2), ("after", 3, 3)])
def test_ends_at_a_step_of_several_writes(tmp_path: Path, moment: str, moved: int, described: int) -> None:
    assert run(tmp_path, f"{moment} delivery 3") == -signal.SIGKILL
    assert len(list(tmp_path.glob("* moved"))) == moved
    assert len(list(tmp_path.glob("* described"))) == described


def test_ends_once(tmp_path: Path) -> None:
    """What a supervisor starts again does not end again."""
    assert [run(tmp_path, "half answer 2"), run(tmp_path)] == [-signal.SIGKILL, 0]
    assert (tmp_path / "lines").read_text() == "first\nsec\nfirst\nsecond\nthird!\n"


def test_ends_at_the_first_of_several_aims(tmp_path: Path) -> None:
    assert run(tmp_path, "half commit 4\nafter delivery 1\nbefore commit 2\n") == -signal.SIGKILL
    assert [file.name for file in tmp_path.glob("aim*")] == ["aim.after.delivery.ended"]
    assert not (tmp_path / "second moved").exists()


def test_steps_that_are_not_reached_end_nothing(tmp_path: Path) -> None:
    assert [run(tmp_path, f"{moment} commit 4") for moment in MOMENTS] == [0, 0, 0]
    assert (tmp_path / "file").read_text() == "third!"


def test_an_error_in_a_step_is_not_its_end(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_text(tmp_path / "none" / "file", "text", "commit")
    with pytest.raises(FileNotFoundError):
        append_line(tmp_path / "none" / "file", "text", "answer")
