"""Parsers of SenML and XML against the standard library's, and what they say of records that are none."""

from __future__ import annotations

import gzip
import json
import xml.dom.minidom
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import InputError
from headgate.model.work import BatchResult
from headgate.tasks.batch import run_batches
from headgate.tasks.row_errors import CARRIED, LETTER, Guard, TaskRaised
from headgate_benchmarks.checkout import shared_data
from headgate_riotbench.parse_senml import ParseSenml, parse_senml
from headgate_riotbench.parse_xml import ParseXml, parse_xml
from headgate_riotbench.records import arrow_types, typed

FIELDS = "source string, temperature double, humidity double"
SHARED = (shared_data() or Path()) / "riotbench"


def senml(entries: dict[str, Any], bt: Any = 1_422_748_800_000, units: dict[str, str] | None = None) -> str:
    outcome = []
    for name, value in entries.items():
        kind = "sv" if name == "source" else "v"
        outcome.append({"n": name, "u": (units or {}).get(name, "per"), kind: value})
    return json.dumps({"e": outcome, "bt": bt})


def parsed(texts: list[Any], kind: pa.DataType | None = None, **options: Any) -> BatchResult:
    work = parse_senml(ParseSenml(**{"columns": FIELDS, **options}))
    return work(pa.record_batch({"value": pa.array(texts, kind or pa.string())}))


def values() -> st.SearchStrategy[Any]:
    numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**15), 10**15)
    return st.none() | numbers | numbers.map(str)


@given(
    st.lists(
        st.fixed_dictionaries({}, optional={"source": st.text(max_size=5), "temperature": values(), "other": values()}),
        max_size=8,
    )
)
def test_records_are_what_the_standard_library_reads(records: list[dict[str, Any]]) -> None:
    texts = [senml(record, bt=1_000 * place) for place, record in enumerate(records)]
    made = parsed(texts)
    assert not made.failed
    times, sources, temperatures, humidities = (column.to_pylist() for column in made.columns)
    assert times == [datetime.fromtimestamp(place, UTC) for place in range(len(records))]
    for place, text in enumerate(texts):
        wanted = {entry["n"]: entry.get("v", entry.get("sv")) for entry in json.loads(text)["e"]}
        assert sources[place] == wanted.get("source")
        number = wanted.get("temperature")
        assert temperatures[place] == (None if number is None else float(number))
        assert humidities[place] is None


BAD: list[tuple[Any, str]] = [
    ('{"e":[{"n":"temperature","v":1}', "unexpected end of data"),
    ("", "it has no brace"),
    (None, "there is nothing"),
    ("1422748800000", "it has no brace"),
    ('{"bt":1}', "it lacks 'e'"),
    ('{"e":[{"v":1}],"bt":1}', "it lacks 'n'"),
    ('{"e":3,"bt":1}', "not iterable"),
    (senml({"temperature": 3}), "it lacks source"),
    (senml({"source": ""}), "it lacks source"),
    (senml({"source": "a", "temperature": 3}, units={"temperature": "cel"}), "temperature is in 'cel', not in 'per'"),
    (senml({"source": "a"}, bt=99_999_999_999_999), "its time 99999999999999 is out of range"),
    (senml({"source": "a"}, bt=-1), "its time -1 is out of range"),
    (senml({"source": "a"}, bt="noon"), "invalid literal for int()"),
    (senml({"source": "a", "temperature": "warm"}), "temperature is 'warm', which is no double"),
    (senml({"source": "a", "temperature": "nan"}), "temperature is 'nan', which is no double"),
    (senml({"source": "a", "temperature": [1]}), "temperature is [1], which is no double"),
    (senml({"source": "x" * 2_000}), "bytes, and 1000 are allowed"),
    (b'{"e":[{"n":"source","sv":"caf\xe9"}],"bt":1}', "str is not valid UTF-8"),
    (b"\xff\xfe{\x00", "unexpected"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[message[:30] for _, message in BAD])
def test_what_is_no_senml_is_left_out_with_the_reason(text: Any, message: str) -> None:
    good = senml({"source": "a", "temperature": 1.5})
    raw = [part.encode() if isinstance(part, str) else part for part in (good, text, good)]
    options = {"required": ["source"], "units": {"temperature": "per"}, "longest": 1_000}
    made = parsed(raw, pa.binary(), **options)
    ((place, reason),) = made.failed
    assert place == 1
    assert message in reason
    assert made.columns[2].to_pylist() == [1.5, 1.5]
    assert made.origin is not None
    assert made.origin.tolist() == [0, 2]


def test_what_stands_before_the_record_is_passed_over() -> None:
    made = parsed([f"1422748800000,{senml({'source': 'a'})}"])
    assert (made.columns[1].to_pylist(), list(made.failed)) == (["a"], [])


def test_records_whose_fields_change_places() -> None:
    texts = [senml({"source": "a", "temperature": 1}), senml({"temperature": 2, "humidity": 3, "source": "b"})] * 2
    made = parsed(texts)
    assert [column.to_pylist() for column in made.columns[1:]] == [["a", "b"] * 2, [1, 2] * 2, [None, 3] * 2]


def test_other_columns_stay_if_wanted() -> None:
    work = parse_senml(ParseSenml(columns="value double", keep=True, time=None))
    batch = pa.record_batch({"id": [1, 2, 3], "value": ['{"e":[{"n":"value","v":7}]}', "x", '{"e":[]}']})
    made = work(batch)
    assert [column.to_pylist() for column in made.columns] == [[1, 3], [7.0, None]]


def test_bad_rows_become_letters_and_times_stay_with_their_rows() -> None:
    options = ParseSenml(columns="v double", time=None)
    batch = pa.record_batch(
        {"value": pa.array([b'{"e":[{"n":"v","v":1}]}', b"\xff{", b'{"e":[{"n":"v","v":3}]}'], pa.binary())}
    )
    batch = batch.set_column(0, "value", batch.column(0).cast(pa.string(), safe=False))
    batch = batch.append_column(CARRIED, pa.array([10, 20, 30]))
    schema = pa.schema([("v", pa.float64())])
    rows, letters = run_batches(parse_senml(options), iter([batch]), schema, Guard("t", letters=True))
    assert rows.to_pydict() == {"v": [1.0, 3.0], CARRIED: [10, 30], LETTER: [None, None]}
    (letter,) = letters.to_pylist()
    assert letter[LETTER]["record"] == '{"value": "\\ufffd{"}'
    assert letter[LETTER]["error"].startswith("no SenML: ")
    with pytest.raises(TaskRaised, match=r"\[task t\] no SenML"):
        list(run_batches(parse_senml(options), iter([batch]), schema, Guard("t")))


def test_types_that_parsers_do_not_make() -> None:
    with pytest.raises(InputError, match=r"column 'a' is of type array<int>; it can be one of string, double"):
        parse_senml(ParseSenml(columns="a array<int>"))


@given(st.lists(st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=4), st.booleans()), max_size=6))
def test_a_typed_column_has_what_fits_and_tells_of_the_rest(given_values: list[Any]) -> None:
    for kind in arrow_types().values():
        bad: dict[int, str] = {}
        made = typed("c", given_values, kind, bad)
        assert len(made) == len(given_values)
        assert made.type == kind
        for place in bad:
            assert made[place].as_py() is None


def test_xml_is_what_the_dom_reads() -> None:
    text = (
        '<class><student rollno="393"><name><first>Ana</first></name><marks>85</marks></student>'
        '<student rollno="493"><name><first>Ben</first></name><marks> 95.5 </marks></student></class>'
    )
    options = ParseXml(
        columns="roll bigint, first string, marks double, grade string",
        each="student",
        paths={"roll": "@rollno", "first": "name/first"},
        keep=True,
    )
    made = parse_xml(options)(pa.record_batch({"id": [7, 8], "value": [text, "<class/>"]}))
    document: Any = xml.dom.minidom.parseString(text)
    wanted = [
        (
            7,
            int(student.getAttribute("rollno")),
            student.getElementsByTagName("first")[0].firstChild.data,
            float(student.getElementsByTagName("marks")[0].firstChild.data),
        )
        for student in document.getElementsByTagName("student")
    ]
    ids, rolls, firsts, marks, grades = (column.to_pylist() for column in made.columns)
    assert list(zip(ids, rolls, firsts, marks, strict=True)) == wanted
    assert grades == [None, None]
    assert made.origin is not None
    assert made.origin.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<a><b></a>", "mismatched tag"),
        ("", "no element found"),
        ('<!DOCTYPE a [<!ENTITY x "boom">]><a>&x;</a>', "it declares a document type"),
        ("<a/>", "it lacks n"),
        ("<a><n>many</n></a>", "n is 'many', which is no double"),
        ("<a><n>1</n>" + " " * 200 + "</a>", "bytes, and 100 are allowed"),
        (b"<a><n>\xe9</n></a>", "not well-formed"),
        (None, "there is nothing"),
    ],
)
def test_what_is_no_xml_is_left_out_with_the_reason(text: Any, message: str) -> None:
    work = parse_xml(ParseXml(columns="n double", required=("n",), longest=100))
    raw = text.encode() if isinstance(text, str) else text
    made = work(pa.record_batch({"value": pa.array([b"<a><n>1</n></a>", raw, b"<a><n>2</n></a>"], pa.binary())}))
    ((place, reason),) = made.failed
    assert (place, made.columns[0].to_pylist()) == (1, [1.0, 2.0])
    assert message in reason


@pytest.mark.skipif(not SHARED.is_dir(), reason="RIoTBench's sample streams are not at hand")
@pytest.mark.parametrize("name", ["sys", "taxi", "fit"])
def test_the_real_samples(name: str) -> None:
    lines = gzip.decompress((SHARED / f"{name}_senml.csv.gz").read_bytes()).decode().splitlines()
    names, _, kinds = ((SHARED / f"schema_{name}.csv").read_text().splitlines())[:3]
    fields = {n: k for n, k in zip(names.split(","), kinds.split(","), strict=True) if n != "timestamp"}
    columns = ", ".join(f"{n} {'string' if k == 'sv' else 'double'}" for n, k in fields.items())
    made = parsed(lines, columns=columns, required=list(fields))
    assert not made.failed
    for place, line in enumerate(lines):
        record = json.loads(line.partition(",")[2])
        assert made.columns[0][place].as_py() == datetime.fromtimestamp(int(record["bt"]) / 1e3, UTC)
        outcome = {entry["n"]: entry.get("v", entry.get("sv")) for entry in record["e"]}
        for at, (field, kind) in enumerate(fields.items(), start=1):
            assert made.columns[at][place].as_py() == (outcome[field] if kind == "sv" else float(outcome[field]))
