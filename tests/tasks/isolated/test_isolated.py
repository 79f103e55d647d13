"""Functions in processes of their own: they work as in a worker, and get hold of nothing."""

from __future__ import annotations

import os
import pickle
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate.documents.project_tables import AllowTable, ProjectTables, WorkersTable
from headgate.errors import InputError
from headgate.model.work import BatchTarget
from headgate.tasks.batch import run_batches
from headgate.tasks.isolated.landlock import landlock_version
from headgate.tasks.isolated.process import end_processes
from headgate.tasks.isolated.serving import RowsOfKey as _Rows
from headgate.tasks.row_errors import FunctionRaised, Guard, TaskRaised
from headgate.tasks.user_defined import TYPES, Fold, Python

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string()), ("v", pa.float64())])
HERE = "tests.tasks.isolated.functions"
HOSTILE = "mallory_functions"
ROOT = Path(__file__).parents[3]
PYTHON: Any = TYPES[0].work
FOLD: Any = TYPES[1].work

TABLES = ProjectTables(allow=AllowTable(modules=[]), workers=WorkersTable(function_memory="256m"))

pytestmark = pytest.mark.skipif(landlock_version() == 0, reason="the system has no Landlock")


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TABLES.worker_variables().items():
        monkeypatch.setenv(name, value)


@pytest.fixture(autouse=True, scope="module")
def one_starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("modules")
    shutil.copy(ROOT / "benchmarks/headgate_benchmarks/tenants/hostile_functions.py", folder / f"{HOSTILE}.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, (ROOT, folder))))
        end_processes()
        yield
        end_processes()


def batch(count: int = 6) -> pa.RecordBatch:
    return pa.record_batch([range(count), ["a"] * count, [float(n) for n in range(count)]], schema=SCHEMA)


def call(function: str, collect: bool = False, **options: Any) -> Any:
    config = Python.model_validate({"function": function, "options": options})
    return PYTHON.start(config, BatchTarget(SCHEMA, collect))


def _rows() -> _Rows:
    return _Rows([("a", 1.0), ("a", 2.0)])


def test_it_is_called_as_in_a_worker_and_kept_between_batches() -> None:
    double = call(f"{HERE}.doubled", by=3.0)
    first, second = double(batch()), double(batch(2))
    assert first.columns[2].to_pylist() == [0.0, 3.0, 6.0, 9.0, 12.0, 15.0]
    (process, before), (same, after) = first.columns[1][5].as_py().split(), second.columns[1][1].as_py().split()
    assert (process, before, after) == (same, "6", "8")
    assert int(process) != os.getpid()


def test_failed_rows_and_errors_are_the_same() -> None:
    assert call(f"{HERE}.picky", collect=True)(batch()).failed == [(0, "ValueError: not 0"), (3, "ValueError: not 3")]
    with pytest.raises(TaskRaised, match=r"\[task t\] ValueError: not 0$"):
        list(run_batches(call(f"{HERE}.picky"), iter([batch()]), SCHEMA, Guard("t")))


def test_one_that_never_answers_ends_with_its_time_and_the_next_has_a_new_process() -> None:
    endless, began = call(f"{HERE}.endless"), time.monotonic()
    with pytest.raises(TaskRaised, match="over its time budget"):
        list(run_batches(endless, iter([batch()]), SCHEMA, Guard("t", budget_s=0.5)))
    assert time.monotonic() - began < 30
    assert call(f"{HERE}.doubled")(batch(1)).columns[2].to_pylist() == [0.0]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("end_process", "ended with status 3"),
        ("leave", "SystemExit: 3"),
        ("end_thread", "KeyboardInterrupt"),
        ("refuse", "ValueError: xxx"),
        ("grow", "over its 256 MiB of memory"),
        ("fork", "not permitted"),
        ("run_a_program", "not permitted"),
        ("crash", "ended by signal 11"),
        ("connect", "not permitted"),
        ("ask_the_engine", "not permitted"),
        ("read_files", "nothing to read"),
        ("write_files", "nowhere to write"),
        ("look_at_processes", "no processes"),
        ("kill_others", "not permitted"),
        ("fill_disk", "File too large"),
        ("lie", "gave no answer"),
    ],
)
def test_what_hostile_functions_get(function: str, reason: str, tmp_path: Path) -> None:
    for name in ("state", "honest/a", "in"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("state/version", "headgate.toml", "honest/a/1.json"):
        (tmp_path / name).write_text("secret", encoding="utf-8")
    with pytest.raises(FunctionRaised, match=reason):
        call(f"{HOSTILE}.{function}", folder=str(tmp_path))(batch(2))


def test_it_has_an_environment_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tr0ut")
    seen = call(f"{HOSTILE}.look")(batch(1)).columns[1][0].as_py()
    assert seen.split()[:3] == ["HOME", "TMPDIR", "LANG"]
    assert "tr0ut" not in seen


def test_a_fold_remembers_what_only_its_process_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    options = Fold(function=f"{HERE}.summed", key=("k",), takes=("v",), columns="total double")
    fold = FOLD.start(options, lambda _: 1)

    state, results = fold(None, _rows())
    assert results == [1.0, 3.0]
    assert b"pickled" not in state.pickled
    assert fold(state, _rows())[1] == [4.0, 6.0]
    monkeypatch.setenv("HEADGATE_WORKER_FUNCTIONS_ISOLATED", "0")
    assert FOLD.start(options, lambda _: 1)(state, _rows())[1] == [4.0, 6.0]


def test_what_is_remembered_runs_no_code_in_the_worker() -> None:
    options = Fold(function=f"{HOSTILE}.remember", key=("k",), takes=("v",), columns="w double")
    state, _ = FOLD.start(options, lambda _: 0)(None, _rows())
    assert pickle.loads(pickle.dumps(state)) == state
    assert not Path("/tmp/headgate-breach").exists()


def test_a_function_that_is_not_there_is_refused_and_its_module_not_imported_here() -> None:
    with pytest.raises(InputError, match=r"cannot load function 'tests\.tasks\.isolated\.functions\.nothing'"):
        PYTHON.check(Python(function=f"{HERE}.nothing"))
    PYTHON.check(Python(function=f"{HERE}.doubled"))


def test_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    end_processes()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process, _ = call(f"{HERE}.doubled")(batch(1)).columns[1][0].as_py().split()
    assert len(list(tmp_path.glob("headgate-function-*"))) == 1
    end_processes()
    assert not list(tmp_path.iterdir())
    with pytest.raises(ProcessLookupError):
        os.kill(int(process), 0)


def test_who_is_isolated() -> None:
    def is_isolated(tables: ProjectTables) -> bool:
        return tables.worker_variables()["HEADGATE_WORKER_FUNCTIONS_ISOLATED"] == "1"

    granted = AllowTable(modules=["city"])
    assert not is_isolated(ProjectTables())
    assert is_isolated(ProjectTables(allow=granted))
    assert not is_isolated(ProjectTables(allow=granted, workers=WorkersTable(isolate=False)))
