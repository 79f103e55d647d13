"""``headgate validate``."""

from __future__ import annotations

from pathlib import Path

from tests.cli.terminal import headgate, process


def test_valid_files_are_told_with_their_size(flows: dict[str, Path]) -> None:
    ran = headgate("validate", *flows.values())
    assert ran.status == 0
    assert ran.out.splitlines() == [f"{path}: valid, 10 tasks, 11 streams" for path in flows.values()]


def test_a_fault_is_told_on_standard_error_with_status_2(broken: Path) -> None:
    ran = headgate("validate", broken)
    assert (ran.status, ran.out) == (2, "")
    first, last = ran.err.splitlines()
    assert first.startswith(f"fault  {broken}:4:")
    assert "task 'b': unknown task type 'fliter'" in first
    assert first.endswith("did you mean 'filter'?")
    assert last == f"{broken}: 1 fault"


def test_all_files_are_checked_whatever_is_wrong_with_the_first(broken: Path, flow: Path, tmp_path: Path) -> None:
    ran = headgate("validate", broken, tmp_path / "missing.yaml", flow, tmp_path / "odd.ending")
    assert ran.status == 2
    assert ran.out == f"{flow}: valid, 10 tasks, 11 streams\n"
    assert ran.err.count("fault  ") == 3


def test_json_tells_the_same(broken: Path, flow: Path) -> None:
    ran = headgate("validate", "--json", broken, flow)
    assert (ran.status, ran.err) == (2, "")
    assert ran.out.count("\n") == 1
    first, second = ran.json["files"]
    assert ran.json["valid"] is False
    assert (first["file"], first["valid"], len(first["faults"])) == (str(broken), False, 1)
    assert first["faults"][0] == {
        "condition": "UNKNOWN_TASK_TYPE",
        "message": "unknown task type 'fliter'",
        "file": str(broken),
        "line": 4,
        "column": 11,
        "task": "b",
        "expected": first["faults"][0]["expected"],
        "nearest": "filter",
    }
    assert second | {"notices": []} == {
        "file": str(flow),
        "valid": True,
        "faults": [],
        "notices": [],
        "name": "everything",
        "owner": "ana",
        "tasks": 10,
        "streams": 11,
    }


def test_equivalent_tasks_are_told_of_in_a_notice(tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    path.write_text(
        "tasks:\n- {id: a, type: rate}\n- {id: b, type: rate}\n- {id: c, type: union, inputs: [a, b]}\n"
        "- {id: d, type: write_console, inputs: [c]}\n",
        encoding="utf-8",
    )
    ran = headgate("validate", path)
    assert ran.status == 0
    assert ran.out == f"{path}: valid, 3 tasks, 3 streams\n"
    assert (
        ran.err == f"notice {path}:3:3: task 'b': does the same as task 'a' and is left out; what read it reads 'a'\n"
    )
    (notice,) = headgate("validate", "--json", path).json["files"][0]["notices"]
    assert (notice["condition"], notice["line"], notice["task"]) == ("DUPLICATE_TASK", 3, "b")


def test_file_names_of_any_bytes_can_be_told(tmp_path: Path) -> None:
    path = tmp_path / "odd \udcff\n\x1b[31m.yaml"
    path.write_text("tasks: [", encoding="utf-8")
    for ran in (headgate("validate", path), headgate("validate", "--json", path), process("validate", path)):
        assert ran.status == 2
        assert "Traceback" not in ran.said
        assert "\x1b[31m" not in ran.said
    assert headgate("validate", "--json", path).json["files"][0]["faults"][0]["condition"] == "NOT_YAML"


def test_what_a_python_file_prints_does_not_mix_with_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "flow.py"
    path.write_text("print('hello')\nfrom headgate import Flow\nflow = Flow()\nflow.source('rate')\n", encoding="utf-8")
    ran = headgate("validate", "--json", path)
    assert ran.status == 0
    assert ran.json["files"][0]["name"] == "flow"
    assert "hello" in ran.err


def test_nothing_to_validate_is_a_slip() -> None:
    ran = headgate("validate")
    assert ran.status == 2
    assert "Missing argument" in ran.err
