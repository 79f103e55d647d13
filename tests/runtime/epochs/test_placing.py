"""Placed partitions without Spark: a split for each, in order, and what counts as misplaced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StructType

from headgate.errors import InputError
from headgate.runtime.compile.plan import CompiledPlan, Fragment, Kind
from headgate.runtime.engine.scaling import Scaling
from headgate.runtime.epochs.commit import StagedEpoch
from headgate.runtime.epochs.placing import wait_s, with_misplaced
from headgate.runtime.epochs.splits import Splits
from headgate.runtime.file_source.batches import Span, parts_of
from headgate.runtime.spark_internals.protocol import ExecutorInfo
from headgate.sharing.versioned import VersionedMap


class Numbers:
    """A source of numbers, which makes too few or too many parts if it likes."""

    def __init__(self, parts: int) -> None:
        self.parts = parts
        self.columns = StructType().add("n", LongType())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[range]:
        return [range(start["n"], end["n"])]

    def divided(self, start: dict[str, Any], end: dict[str, Any], count: int) -> list[range]:
        size = -(-(end["n"] - start["n"]) // self.parts) or 1
        return [range(first, min(first + size, end["n"])) for first in range(start["n"], end["n"], size)]

    def read(self, split: range) -> Iterator[Any]:
        yield from split


def listed(part: Any) -> list[int]:
    return [] if part is None else [n for each in getattr(part, "parts", (part,)) for n in each]


@given(parts=st.integers(1, 9), places=st.integers(1, 9), rows=st.integers(0, 60))
def test_each_place_has_one_split_and_together_they_have_all_rows_in_order(parts: int, places: int, rows: int) -> None:
    splits = Splits.between(Numbers(parts), {"n": 5}, {"n": 5 + rows}, ["m"] * places)
    assert len(splits.parts) == places
    assert [n for part in splits.parts for n in listed(part)] == list(range(5, 5 + rows))
    assert Splits.between(Numbers(parts), {"n": 5}, {"n": 5 + rows}, []).parts == [range(5, 5 + rows)]


@given(sizes=st.lists(st.integers(1, 900), min_size=1, max_size=8), places=st.integers(1, 6))
def test_small_files_are_cut_into_as_many_parts_as_there_are_places(sizes: list[int], places: int) -> None:
    spans = [Span(str(number), 0, size, 0, size) for number, size in enumerate(sizes)]
    made = parts_of(spans, places, 1)
    assert len(made) <= places
    assert max(sum(span.bytes for span in part) for part in made) <= -(-sum(sizes) // places)
    read = Counter[str]()
    for span in (span for part in made for span in part):
        assert span.first == read[span.path], "in order, without a gap"
        read[span.path] = span.last
    assert read == {str(number): size for number, size in enumerate(sizes)}


def executor(name: str, host: str) -> ExecutorInfo:
    return ExecutorInfo(name, host, 1, 0, 0.0)


def test_what_ran_elsewhere_is_counted() -> None:
    one, two = executor("1", "a"), executor("2", "b")
    staged = StagedEpoch((), (), Counter(), frozenset(), lambda _: Counter(), {0: "1", 1: "1", 2: "2", 3: "9"})
    places = [[one], [two], [one, two], [one]]
    counted = with_misplaced(staged, places)
    assert counted is not None
    assert counted.misplaced == 2, "partitions 1 and 3"
    gone = with_misplaced(staged, [[], [], [], []])
    assert gone is not None
    assert gone.misplaced == 4, "machines that are gone"
    assert with_misplaced(staged, ()) is staged
    assert with_misplaced(None, places) is None


@pytest.mark.parametrize(("kinds", "wait"), [((Kind.SOURCE,), 10.0), ((Kind.SOURCE, Kind.KEYED), 0.5)])
def test_tasks_wait_for_long_only_where_no_state_of_spark_does_too(kinds: tuple[Kind, ...], wait: float) -> None:
    fragments = {str(kind): Fragment(str(kind), kind, ()) for kind in kinds}
    assert wait_s(None) == 0.5
    assert wait_s(CompiledPlan(fragments=VersionedMap[str, Fragment]().updated(fragments))) == wait


class FakeExecutors:
    def list(self) -> list[ExecutorInfo]:
        return [executor("1", "a"), executor("2", "b"), executor("3", "a")]


def test_without_a_provider_hosts_are_places(tmp_path: Path) -> None:
    scaling = Scaling(FakeExecutors(), None)  # type: ignore[arg-type]
    assert [[each.id for each in place] for place in scaling.executors_of(["a", "b", "c"])] == [["1", "3"], ["2"], []]
    scaling.checked_places(["a", "b", "a"])
    with pytest.raises(InputError, match="no machine 'c' is known"):
        scaling.checked_places(["a", "c"])
