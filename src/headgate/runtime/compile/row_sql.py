"""Row-wise tasks as SQL text: several in a row as one, over a row's columns or over a struct column. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from headgate.model.expression import MAX_DEPTH, spliced
from headgate.model.sql.permitted import MAX_OPERATORS, operators_of
from headgate.model.work import RowWise

__all__ = ["FusedTask", "as_column", "as_literal", "folded", "formed", "is_cheap", "reached"]


LONGEST = 20_000
"""Characters of SQL up to which tasks in a row become one expression."""


@dataclass(frozen=True, slots=True)
class FusedTask:
    """A row-wise task, or several in a row, as a column over another one."""

    parent: str
    tests: tuple[str, ...]
    """A row passes if all of these hold; those that come after one that does not are not looked at."""

    does: RowWise
    guard: bool = False
    """Whether what raises becomes null, and the row that made it so is kept beside it (:func:`guard_column`)."""


def folded(
    works: Mapping[str, FusedTask], outputs: Sequence[str]
) -> tuple[dict[str, FusedTask], dict[str, tuple[str, int]]]:
    """The works that outputs need; one that has a single reader becomes part of that reader, where that costs nothing.

    Also, for each task, the one that it became part of, and after how many tests of that one its own begin.

    Spark analyses every projection anew in each micro-batch: the fewer columns and levels, the shorter the batch.
    """
    readers: Counter[str] = Counter(outputs)
    for column, work in reversed(list(works.items())):
        if readers[column]:
            readers[work.parent] += 1
    made: dict[str, FusedTask] = {}
    into: dict[str, str] = {}
    before_own: dict[str, int] = {}
    for column, work in works.items():
        if readers[column]:
            before = made.get(work.parent)
            joined = _joined(before, work) if before is not None and readers[work.parent] == 1 else None
            if joined is not None:
                del made[work.parent]
                into[work.parent] = column
            made[column] = joined or work
            before_own[column] = len(made[column].tests) - len(work.tests)
    places: dict[str, tuple[str, int]] = {}
    for column in reversed(before_own):  # readers first
        places[column] = (places[into[column]][0] if column in into else column, before_own[column])
    return made, places


@lru_cache(maxsize=100_000)
def _joined(before: FusedTask, after: FusedTask) -> FusedTask | None:
    """Two works as one; ``None`` if something would be computed twice, or the text become too long."""
    if before.does.row is not None or before.guard or after.guard:
        return None
    columns = before.does.columns
    made = {name.casefold(): text for name, text in columns or ()}
    read: Counter[str] = Counter()

    def put_in(text: str) -> str:
        def replaced(name: str) -> str:
            plain = _unquoted(name).casefold()
            read[plain] += 1
            return made[plain] if columns is not None else name

        return spliced(text, replaced)

    tests = [put_in(test) for test in after.tests]
    row = None if after.does.row is None else put_in(after.does.row)
    new = columns if after.does.columns is None else tuple((name, put_in(text)) for name, text in after.does.columns)
    texts = [*tests, row or "", *(text for _, text in new or ())]
    if (
        sum(map(len, texts)) > LONGEST
        or any(map(_is_deep, texts))
        or any(read[name] > 1 and not _is_name(text) for name, text in made.items())
    ):
        return None
    if before.tests and after.tests and any(map(_VOLATILE.search, (*before.tests, *tests))):
        return None  # rows that pass are counted by asking again, which must give the same answer
    return FusedTask(
        before.parent, (*before.tests, *tests), RowWise(after.does.names, None, new if row is None else None, row)
    )


def _is_deep(text: str) -> bool:
    """Whether an expression is nested so far, or has so many operators, that it is not to be read again as a whole."""
    nested = deepest = 0
    for mark in re.findall(r"[()]", text):
        nested += 1 if mark == "(" else -1
        deepest = max(deepest, nested)
    return deepest > MAX_DEPTH // 2 or operators_of(text) > MAX_OPERATORS


_VOLATILE = re.compile(r"(?i)\b(rand|randn|random|uuid|shuffle|randstr|uniform|monotonically_increasing_id)\s*\(")
"""Functions that may give another answer each time."""


def _is_name(text: str) -> bool:
    return bool(re.fullmatch(r"`(?:[^`]|``)*`|[A-Za-z_]\w*", text))


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


@lru_cache(maxsize=100_000)
def as_column(work: FusedTask, raw: str | None, counted: bool) -> str:
    """A work as an expression over the column it reads; or, where ``raw`` is the whole row, over the row's columns.

    With ``counted`` it shares the answer to its tests with :func:`reached`, which Spark then evaluates once for both.
    """
    whole = work.parent if raw is None else raw

    def placed(text: str) -> str:
        return _within(text, work.parent) if raw is None else text

    if work.does.row is not None:
        value = placed(work.does.row)
    elif work.does.columns is not None:
        fields = (f"{as_literal(name)}, {placed(expression)}" for name, expression in work.does.columns)
        value = f"named_struct({', '.join(fields)})"
    else:
        value = whole
    if counted:
        return f"case when {reached(work, raw)} = {len(work.tests)} then {value} end"
    for test in reversed(work.tests):
        value = f"case when ({placed(test)}) then {value} end"
    return value if work.parent == "r0" else f"case when {work.parent} is not null then {value} end"


@lru_cache(maxsize=100_000)
def reached(work: FusedTask, raw: str | None) -> str:
    """How many of a work's tests a row passes before the first that it does not; null where it is not the work's."""
    value = str(len(work.tests))
    for passed in range(len(work.tests) - 1, -1, -1):
        test = work.tests[passed] if raw is not None else _within(work.tests[passed], work.parent)
        value = f"case when ({test}) then {value} else {passed} end"
    return f"({value})" if work.parent == "r0" else f"(case when {work.parent} is not null then {value} end)"


@lru_cache(maxsize=100_000)
def _within(expression: str, parent: str) -> str:
    return spliced(expression, lambda name: f"{parent}.{name}")


def is_cheap(test: str) -> bool:
    """Whether a test calls no function, so that all it does is to compare.

    >>> is_cheap("v > -1000 and text is not null"), is_cheap("rand() < 0.5"), is_cheap("s rlike '(a+)+b'")
    (True, False, False)
    """
    return "(" not in test and not re.search(r"\b(like|ilike|rlike|regexp)\b", test, re.IGNORECASE)


def as_literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def formed(row: str, form: str) -> str:
    return {"json": f"to_json({row})", "csv": f"to_csv({row})"}.get(form, row)
