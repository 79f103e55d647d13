"""Which tasks are done where outputs are staged; without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import DoubleType, LongType, StringType, StructType

from headgate.runtime.compile.arrow_stage import staged_tasks
from headgate.runtime.compile.plan import CompiledTask
from tests.compiled import plan_of
from tests.runtime.small import files, flow

FUNCTION = {"id": "f", "type": "python", "config": {"function": "tests.runtime.functions.waiting"}}
PARQUET = {"type": "write_files", "config": {"path": "out", "format": "parquet"}}
HASHED = {"type": "derive", "config": {"columns": {"h": "sha2(k, 256)"}}}


def schema_of(_: CompiledTask) -> StructType:
    return StructType().add("id", LongType()).add("k", StringType()).add("v", DoubleType())


@pytest.mark.parametrize(
    ("behind", "expected"),
    [([PARQUET], True), ([FUNCTION | {"id": "g"}, PARQUET], True), ([HASHED, PARQUET], False)],
)
def test_a_function_is_where_all_behind_it_can_be(tmp_path: Path, behind: list[dict[str, Any]], expected: bool) -> None:
    some = flow("some", {"id": "src", **files(tmp_path)}, FUNCTION, *behind)
    plan = plan_of(some)
    (fragment,) = plan.fragments.values()
    outcome = staged_tasks(plan, fragment, lambda _: True, frozenset(), schema_of)
    functions = {task.signature for task in plan.tasks.values() if task.alternate.type == "python"}
    assert (outcome.tasks == functions) is expected
    guarded = frozenset(str(signature) for signature in functions)
    assert not staged_tasks(plan, fragment, lambda _: True, guarded, schema_of).tasks
