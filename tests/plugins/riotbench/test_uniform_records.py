"""Records that are written alike are read as each of them would be read by itself."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_riotbench.generate import Generate, records
from headgate_riotbench.parse_senml import FEW, UNREADABLE, ParseSenml, parse_senml

OPTIONS = ParseSenml(columns="k string, t double, h double", required=("k",), units={"t": "far"}, longest=300)
CITY = ParseSenml(
    columns="source string, longitude double, temperature double, dust double",
    required=("source",),
    units={"temperature": "far"},
    longest=10_000,
)


def as_texts(lines: list[bytes | None]) -> pa.Array:
    return pa.array(lines, pa.binary()).cast(pa.string(), safe=False)


def read(options: ParseSenml, lines: list[bytes | None]) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """The rows of all lines in one batch, and what is told of the others."""
    made = parse_senml(options)(pa.record_batch({"value": as_texts(lines)}))
    rows = pa.RecordBatch.from_arrays(made.columns, [str(n) for n in range(len(made.columns))]).to_pylist()
    return rows, dict(made.failed)


def read_alone(options: ParseSenml, lines: list[bytes | None]) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """The same, each line in a batch of its own."""
    rows: list[dict[str, Any]] = []
    bad: dict[int, str] = {}
    for place, line in enumerate(lines):
        outcome, message = read(options, [line])
        rows += outcome
        bad |= dict.fromkeys([place] * bool(message), next(iter(message.values()), ""))
    return rows, bad


def written(entries: list[tuple[str, Any]], bt: Any, spaced: bool) -> bytes:
    outcome = [
        {"u": "far" if name == "t" else "per", "n": name, "sv" if name == "k" else "v": v} for name, v in entries
    ]
    return json.dumps({"e": outcome, "bt": bt}, separators=(", ", ": ") if spaced else (",", ":")).encode()


VALUES = st.one_of(
    st.decimals(-1000, 1000, places=2).map(str),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "warm", "nan", "1e5", "1e999", "-0", "007", "0x1f", " 5", "5 ", 7, True, None]),
)
TEXTS = st.one_of(st.sampled_from(["a", "b", ""]), st.text(max_size=5))
TIMES = st.sampled_from([0, 5, -1, 1_422_748_800_000, 10**15, 10**20, "7", None, 1.5])


@st.composite
def lines(draw: st.DrawFn) -> bytes | None:
    names = draw(
        st.sampled_from([("k", "t", "h"), ("k", "t", "h"), ("k", "t"), ("t", "k", "h"), ("k", "t", "t"), ("t",)])
    )
    entries = [(name, draw(TEXTS if name == "k" else VALUES)) for name in names]
    line = written(entries, draw(TIMES), draw(st.booleans()))
    return draw(
        st.sampled_from(
            [line, line, line, line[:-3], b"17," + line, b"{," + line, line + b" ", b"", None, b"\xe9" + line]
        )
    )


GOOD = [written([("k", f"s{n}"), ("t", f"{n}.5"), ("h", str(n))], n, False) for n in range(FEW)]


@settings(max_examples=40, deadline=None)
@given(st.lists(lines(), max_size=8))
def test_together_as_one_by_one(some: list[bytes | None]) -> None:
    """Lines among others that tell how to read them, against lines that nothing is known of."""
    rows, bad = read(OPTIONS, [*GOOD, *some])
    alone, unfit = read_alone(OPTIONS, some)
    assert rows[len(GOOD) :] == alone
    assert bad == {place + len(GOOD): message for place, message in unfit.items()}


@pytest.mark.parametrize("first", [0, 5_000])
def test_the_city_together_as_one_by_one(first: int) -> None:
    some: list[bytes | None] = [*records(Generate(bad=0.05, missing=0.1), range(first, first + 400))]
    assert read(CITY, some) == read_alone(CITY, some)


def test_most_records_of_a_city_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    from headgate_riotbench import parse_senml as parsers

    one_by_one: list[int] = []
    own = parsers._Senml._one_by_one

    def counted(self: Any, texts: pa.Array) -> Any:
        one_by_one.append(len(texts))
        return own(self, texts)

    monkeypatch.setattr(parsers._Senml, "_one_by_one", counted)
    some: list[bytes | None] = [*records(Generate(bad=0.01), range(5_000))]
    rows, bad = read(CITY, some)
    assert len(rows) + len(bad) == 5_000
    assert sum(one_by_one) < 600


def test_what_cannot_be_read_raises_what_is_caught() -> None:
    assert issubclass(json.JSONDecodeError, UNREADABLE)
