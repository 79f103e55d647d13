"""What types do: kinds of work that agree with ports, state and options, and that load nothing before they run."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from headgate.model.task_type import SINK, SOURCE, STEP, State, TaskConfig, TaskType
from headgate.model.work import BatchWork, ChainWork, FrameWork, KeyedWork, RowExpression, RowWise, SinkWork, SourceWork
from headgate.tasks import BUILT_IN
from headgate.tasks.keyed_base import KeyedConfig, by_row, by_rows, step_of
from headgate.tasks.registry import discover
from headgate_riotbench import TYPES as RIOTBENCH


def nothing(*_: Any) -> Any:
    return None


class Total(KeyedConfig):
    """Add up a column."""

    def reads(self) -> dict[str, list[str]]:
        return {"column": ["v"]}

    def added(self) -> dict[str, str]:
        return {"total": "double"}


EXPRESSION = RowExpression(lambda _, names: RowWise(tuple(names)))
CHAIN = ChainWork(nothing, nothing, nothing, nothing, nothing)
FITTING = [
    TaskType("a_source", TaskConfig, SOURCE, work=SourceWork(nothing)),
    TaskType("an_expression", TaskConfig, work=EXPRESSION),
    TaskType("a_batch", TaskConfig, work=BatchWork(nothing)),
    TaskType("a_frame", TaskConfig, work=FrameWork(nothing)),
    TaskType("a_window", TaskConfig, STEP, State.CHAINED, work=CHAIN),
    TaskType("a_total", Total, STEP, State.KEYED, work=KeyedWork(nothing)),
    TaskType("a_sink", TaskConfig, SINK, work=SinkWork(nothing)),
    TaskType("a_plan", TaskConfig),
]
WRONG = {
    "sink": TaskType("wrong", TaskConfig, SINK, work=BatchWork(nothing)),
    "source": TaskType("wrong", TaskConfig, SOURCE, work=EXPRESSION),
    "step": TaskType("wrong", TaskConfig, STEP, work=SourceWork(nothing)),
    "options": TaskType("wrong", TaskConfig, STEP, State.KEYED, work=KeyedWork(nothing)),
    "not_keyed": TaskType("wrong", Total, STEP, work=KeyedWork(nothing)),
    "keyed": TaskType("wrong", Total, STEP, State.KEYED, work=EXPRESSION),
    "chained": TaskType("wrong", TaskConfig, STEP, State.CHAINED, work=FrameWork(nothing)),
    "not_chained": TaskType("wrong", TaskConfig, STEP, work=CHAIN),
}
FIRST = FITTING[0]


def test_a_package_may_have_every_kind_of_work() -> None:
    registry = discover(BUILT_IN, [EntryPoint("some", "tests.tasks.test_work:FITTING", "headgate.task_types")])
    assert registry.problems == ()
    assert {kind.name for kind in FITTING} <= set(registry)


@pytest.mark.parametrize("name", WRONG)
def test_work_that_does_not_fit_its_type_is_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "FIRST", WRONG[name])
    registry = discover((), [EntryPoint("some", f"{__name__}:FIRST", "headgate.task_types")])
    (problem,) = registry.problems
    assert (problem.condition, list(registry)) == ("PLUGIN_LEFT_OUT", [])
    assert "wrong" in problem.message


def test_all_types_but_the_opaque_one_do_something() -> None:
    kinds = [*BUILT_IN, *RIOTBENCH]
    idle = [kind.name for kind in kinds if kind.work is None]
    assert idle == ["read_stream", "opaque"], "a stream that is read becomes the tasks that make it"
    assert {type(kind.work).__name__ for kind in RIOTBENCH} == {
        "RowExpression",
        "BatchWork",
        "FrameWork",
        "KeyedWork",
        "SourceWork",
        "SinkWork",
    }


def test_reading_types_loads_no_library_that_only_running_needs() -> None:
    code = (
        "import sys; from headgate import default_registry; assert 'to_senml' in default_registry();"
        "print({'pyspark', 'pyarrow', 'pandas', 'numpy', 'orjson', 'sqlalchemy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_function_of_one_row_and_one_of_all_do_the_same() -> None:
    def one(options: Total, state: float | None, row: dict[str, Any]) -> tuple[float, dict[str, float] | None]:
        assert options.key == ("k",)
        total = (state or 0.0) + row["v"]
        return total, {"total": total} if total > 1 else None

    def many(options: Total, state: float | None, rows: dict[str, list[Any]]) -> tuple[float, list[Any]]:
        made = []
        for value in rows["v"]:
            state, new = one(options, state, {"v": value})
            made.append(new)
        return state or 0.0, made

    for work in (by_row(one), by_rows(many)):
        step = step_of(TaskType("total", Total, STEP, State.KEYED, work=work), Total(key=("k",)), ["k", "v"])
        assert step(None, ["a", 0.5]) == (0.5, None)
        assert step(0.5, ["a", 2.0]) == (2.5, 2.5)
