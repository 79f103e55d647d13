"""No traceback for any input whatever: generated and hand-made broken files, thousands of them.

The number of generated inputs is counted: each test says how many it makes and checks that it made them.
"""

from __future__ import annotations

import codecs
import json
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st

from headgate.documents import FORMATS, parse
from headgate.errors import InvalidDataflow
from headgate.model.config import Config
from tests.hostile import check_holds, check_told, damaged, deep_list, places, ran, rearranged, with_value
from tests.samples import DATAFLOW, DOCUMENT, TEXTS
from tests.strategies import ODD_TEXTS, documents

RANDOM_BYTES, RANDOM_TEXTS, DAMAGED, REARRANGED, WRONG_GRAPHS = 100, 100, 400, 200, 150

WRONG_VALUES: list[Any] = [
    *(None, True, -1.5, 10**30, 10**4100, "", "read", "\x1b[2J\n", "\ud800\x00"),
    *([], [[None]], {"\ud800\x00": {}}, {"from": "read"}, deep_list(70)),
    {"function-before[x]": 1, "nullable": 2, "[key]": 3},
]
PLACES = list(places(DOCUMENT))
EVERYWHERE = len(PLACES) * len(WRONG_VALUES)


def test_at_least_five_thousand_inputs_are_generated() -> None:
    generated = len(FORMATS) * (RANDOM_BYTES + RANDOM_TEXTS + DAMAGED + REARRANGED) + 3 * WRONG_GRAPHS + EVERYWHERE
    print(f"{generated:,} generated inputs")
    assert generated >= 5_000


@pytest.mark.parametrize("form", FORMATS)
def test_random_bytes(form: str) -> None:
    assert ran(RANDOM_BYTES, st.binary(max_size=200), lambda data: check_holds(data, form)) >= RANDOM_BYTES


@pytest.mark.parametrize("form", FORMATS)
def test_random_texts(form: str) -> None:
    # Lone surrogates are among them: a caller may hand in any str.
    odd = st.text(st.characters(codec=None), max_size=60)
    signs = st.text(st.sampled_from(list("[]{}:,-&*!|>'\"%@`#?~ \n\tabc019.<>/=")), max_size=60)
    assert ran(RANDOM_TEXTS, st.one_of(odd, signs), lambda data: check_holds(data, form)) >= RANDOM_TEXTS


@pytest.mark.parametrize("form", FORMATS)
def test_damaged_bytes_of_a_valid_file(form: str) -> None:
    assert ran(DAMAGED, damaged(TEXTS[form]), lambda data: check_holds(data, form)) >= DAMAGED


@pytest.mark.parametrize("form", FORMATS)
def test_rearranged_lines_of_a_valid_file(form: str) -> None:
    assert ran(REARRANGED, rearranged(TEXTS[form]), lambda data: check_holds(data, form)) >= REARRANGED


def test_a_wrong_value_at_every_place() -> None:
    checked = 0
    for place in PLACES:
        for value in WRONG_VALUES:
            check_told(json.dumps(with_value(DOCUMENT, place, value)), "json")
            checked += 1
    assert checked == EVERYWHERE


@st.composite
def wrong_graphs(draw: st.DrawFn) -> dict[str, Any]:
    """Documents whose parts are fine and do not fit: ids twice, unknown types and ends of streams, cycles."""
    document = json.loads(json.dumps(draw(documents())))
    tasks = document["tasks"]
    for _ in range(draw(st.integers(1, 3))):
        task, other = draw(st.sampled_from(tasks)), draw(st.sampled_from(tasks))
        kind = draw(st.integers(0, 7))
        if kind == 0:
            task["id"] = other["id"]
        elif kind == 1:
            task["type"] = draw(st.sampled_from(["fliter", "", "Filter", "x" * 600, "a.b", "rate"]))
        elif kind == 2:
            feed = draw(st.sampled_from(["nowhere", ":", "a:", ":out", "a:b:c", "", other["id"] + ":nope", "x" * 299]))
            task.setdefault("inputs", []).append(feed)
        elif kind == 3:
            task.setdefault("inputs", []).append(other["id"])
        elif kind == 4:
            task.setdefault("inputs", []).append({"from": other["id"], "feedback": True, "to": "in"})
        elif kind == 5:
            tasks.append(other)
        elif kind == 6:
            task["config"] = other.get("config", {})
        else:
            task["ports"] = {"inputs": ["a", "a"], "outputs": [{"name": "b", "gather": "join", "columns": "c int"}]}
    return dict(document)


@pytest.mark.parametrize("form", ["json", "yaml", "python"])
def test_graphs_that_do_not_fit(form: str) -> None:
    def check(document: dict[str, Any]) -> None:
        if form == "python":
            lines = ["from headgate import Flow", "flow = Flow('f')", f"document = {document!r}"]
            lines += ["for task in document['tasks']:", "    flow._tasks.put(task, (2, None))"]
            check_holds("\n".join(lines), form)
        else:
            check_holds(json.dumps(document), form)

    assert ran(WRONG_GRAPHS, wrong_graphs(), check) >= WRONG_GRAPHS


@pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
def test_odd_texts_as_values_and_keys(text: str) -> None:
    for place in [("name",), ("description",), ("tasks", 0, "config", "path"), ("tasks", 2, "inputs", 0, "where")]:
        changed = with_value(DOCUMENT, place, text)
        check_holds(json.dumps(changed), "json")
        check_told(yaml.safe_dump(changed, allow_unicode=True), "yaml")
    options = {"label": text, "options": {text: text}}
    check_holds(json.dumps({text: 1, "tasks": [{"id": "a", "type": "opaque", "config": options}]}), "json")
    flow = parse(json.dumps({"tasks": [{"id": "a", "type": "opaque", "config": options}]}), "json").dataflow
    assert flow.tasks[0].config["options"] == Config({text: text})
    check_holds(json.dumps({"tasks": [{"id": "a", "type": "rate", text: 1, "config": {text: text}}]}), "json")


def _nested(count: int) -> dict[str, dict[str, str]]:
    inner = "[" * count + "]" * count
    return {
        "yaml": {
            "flow lists": inner,
            "open flow lists": "[" * count,
            "flow mappings": "{a: " * count + "}" * count,
            "block lists": "- " * count + "x",
            "block mappings": "".join(" " * depth + "a:\n" for depth in range(min(count, 500))),
            "explicit keys": "? " * count + "x",
            "in a config": f"tasks: [{{id: a, type: opaque, config: {{options: {{x: {inner}}}}}}}]",
            "in a task": f"tasks: [{inner}]",
            "anchors": "".join(f"&a{i} [" for i in range(count)) + "]" * count,
        },
        "json": {
            "lists": inner,
            "open lists": "[" * count,
            "mappings": '{"a":' * count + "1" + "}" * count,
            "in a config": f'{{"tasks": [{{"id": "a", "type": "opaque", "config": {{"options": {{"x": {inner}}}}}}}]}}',
            "in a task": f'{{"tasks": [{inner}]}}',
            "in a name": f'{{"name": {inner}, "tasks": []}}',
        },
        "xml": {
            "elements": "<a>" * count + "</a>" * count,
            "open elements": "<dataflow>" * count,
            "options": f'<dataflow><PE id="a"><alternate impl="opaque"><option name="options" type="json">{inner}'
            "</option></alternate></PE></dataflow>",
        },
        "python": {
            "lists": "x = " + inner,
            "calls": "f(" * count + ")" * count,
            "signs": "x = " + "-" * count + "1",
            "attributes": "x = a" + ".b" * count,
            "sums": "x = " + "1+" * count + "1",
            "blocks": "".join(" " * depth + "if 1:\n" for depth in range(min(count, 500))),
        },
    }


@pytest.mark.parametrize("count", [63, 64, 99, 101, 199, 1_000, 20_000])
@pytest.mark.parametrize("form", FORMATS)
def test_deep_nesting(form: str, count: int) -> None:
    for text in _nested(count)[form].values():
        check_holds(text, form)


DIGITS = ["9" * 4_300, "9" * 4_301, "9" * 100_000, "-" + "9" * 5_000, "0x" + "f" * 6_000, "1" + "0" * 400 + ".5"]
STRANGE = ["1e999", "-1e999", "1e-999", ".nan", ".inf", "-.INF", "NaN", "Infinity", "nan", "inf"]


@pytest.mark.parametrize("number", [*DIGITS, *STRANGE], ids=lambda number: number[:12])
def test_huge_and_strange_numbers(number: str) -> None:
    for place in ("cost_s: {}", "selectivity: {}", "config: {{options: {{x: {}}}}}", "id: {}", "config: {{label: {}}}"):
        check_holds(f"tasks: [{{id: b, type: opaque, {place.format(number)}}}]", "yaml")
    check_holds(f"tasks: [{{id: b, alternates: [{{type: opaque, value: {number}}}]}}]", "yaml")
    for name in DOCUMENT["service_level"]:
        check_holds(f"service_level: {{{name}: {number}}}\ntasks: [{{id: a, type: rate}}]", "yaml")
        check_holds(f'{{"service_level": {{"{name}": {number}}}, "tasks": [{{"id": "a", "type": "rate"}}]}}', "json")
        check_holds(
            f'<dataflow><service_level {name}="{number}"/><PE id="a"><alternate impl="rate"/></PE></dataflow>', "xml"
        )
    check_holds(f'{{"tasks": [{{"id": "a", "type": "rate", "config": {{"rows_per_s": {number}}}}}]}}', "json")
    check_holds(f"from headgate import Flow\nFlow('a').source('rate', rows_per_s={number})", "python")


def test_every_huge_or_strange_number_of_a_file_is_reported() -> None:
    tasks = [
        f'{{"id": "{n}", "type": "rate",\n "cost_s": {bad}}}' for n, bad in enumerate(["9" * 5_000, "NaN", "1e999"])
    ]
    with pytest.raises(InvalidDataflow) as told:
        parse(f'{{"tasks": [\n{",".join(tasks)}]}}', "json", file="f.json")
    assert [(fault.condition, fault.place.line) for fault in told.value.faults] == [
        ("HUGE_NUMBER", 3),
        ("NOT_JSON", 4),
        ("BAD_VALUE", 5),
    ]


def _bombs() -> dict[str, str]:
    doubling = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10))
    return {
        "billion laughs": f"a0: &a0 [lol]\n{doubling}tasks: *a9",
        "in a config": f"a0: &a0 [lol]\n{doubling}tasks: [{{id: a, type: opaque, config: {{options: {{x: *a9}}}}}}]",
        "long texts": f"a: &a {'x' * 50_000}\ntasks: [{{id: a, type: opaque, config: {{x: [{'*a, ' * 9_000}]}}}}]",
        "many tasks": f"a: &a {{id: 1}}\ntasks: [{'*a, ' * 9_000}]",
        "self": "a: &a [*a]",
        "self in a mapping": "&a {tasks: *a}",
        "self as key": "&a {*a : 1}",
        "each other": "[&a [*b], &b [*a]]",
        "no anchor": "tasks: *nowhere",
        "merge key": "a: &a {id: x}\ntasks: [{<<: *a, type: rate}]",
        "anchor twice": "[&a x, &a y, *a]",
        "alias as key": "{&a x: 1, *a : 2}",
        "tags": "!!python/object/apply:os.system ['true']",
        "binary": "tasks: !!binary aGVsbG8=",
        "set": "tasks: !!set {a, b}",
        "timestamp": "name: !!timestamp 2020-01-01",
        "directive": "%YAML 9.9\n---\na",
        "tag directive": "%TAG ! tag:x,2000:\n---\n!a b",
        "two documents": "tasks: []\n---\ntasks: []",
        "list as key": "{[a]: b}",
        "mapping as key": "{{a: b}: c}",
        "keys twice": "tasks: []\ntasks: []\nname: a\nname: b",
    }


@pytest.mark.parametrize("bomb", _bombs())
def test_yaml_bombs(bomb: str) -> None:
    assert check_told(_bombs()[bomb], "yaml") is None


def _entities(text: str, inside: str = "") -> str:
    return f'<!DOCTYPE dataflow [{text}]><dataflow name="a">{inside}<PE id="a"><alternate impl="rate"/></PE></dataflow>'


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
XML_BOMBS = {
    "billion laughs": _entities('<!ENTITY l0 "lol">' + LAUGHS, "<description>&l9;</description>"),
    "quadratic": _entities(f'<!ENTITY a "{"x" * 50_000}">', f"<description>{'&a;' * 5_000}</description>"),
    "external": _entities('<!ENTITY x SYSTEM "file:///etc/passwd">', "<description>&x;</description>"),
    "network": _entities('<!ENTITY x SYSTEM "http://localhost:1/x">', "<description>&x;</description>"),
    "parameter": _entities('<!ENTITY % x SYSTEM "file:///etc/passwd"> %x;'),
    "parameter inside": _entities('<!ENTITY % a "&#60;!ENTITY b &#39;c&#39;&#62;"> %a;'),
    "external DTD": '<!DOCTYPE dataflow SYSTEM "file:///etc/passwd"><dataflow/>',
    "public DTD": '<!DOCTYPE dataflow PUBLIC "-//x" "http://localhost:1/x.dtd"><dataflow/>',
    "default attribute": _entities('<!ATTLIST dataflow owner CDATA "mallory">'),
    "unparsed": _entities('<!NOTATION n SYSTEM "n"><!ENTITY x SYSTEM "x" NDATA n>'),
    "only a doctype": "<!DOCTYPE dataflow>",
    "undefined": "<dataflow><description>&nothing;</description></dataflow>",
    "inclusion": '<x:include xmlns:x="http://www.w3.org/2001/XInclude" href="/etc/passwd"/>',
    "stylesheet": '<?xml-stylesheet href="file:///etc/passwd"?><dataflow/>',
    "null": "<dataflow name='&#0;'/>",
    "surrogate": "<dataflow name='&#xD800;'/>",
    "huge reference": "<dataflow name='&#99999999999999999999;'/>",
    "many attributes": "<dataflow " + " ".join(f'a{n}="1"' for n in range(5_000)) + "/>",
    "attribute twice": "<dataflow name='a' name='b'/>",
    "prefix without namespace": "<a:dataflow/>",
    "namespaces": "<dataflow xmlns='urn:x'><PE id='a'/></dataflow>",
}


@pytest.mark.parametrize("bomb", XML_BOMBS)
def test_xml_bombs(bomb: str) -> None:
    assert check_told(XML_BOMBS[bomb], "xml") is None


@pytest.mark.parametrize("bomb", ["billion laughs", "quadratic", "external", "network", "parameter", "external DTD"])
def test_entities_are_neither_expanded_nor_fetched(bomb: str) -> None:
    with pytest.raises(InvalidDataflow) as told:
        parse(XML_BOMBS[bomb], "xml")
    assert [fault.condition for fault in told.value.faults] == ["DOCTYPE"]


ENCODINGS = ["latin-1", "cp500", "utf-7", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "shift-jis"]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_wrong_encodings(form: str, encoding: str) -> None:
    text = TEXTS[form].replace("ana", "aña").replace("odd signs", "ödd sïgns 世界")
    data = text.encode(encoding, errors="replace")
    check_told(data, form)
    check_told(codecs.BOM_UTF8 + data, form)
    check_told(codecs.BOM_UTF16_LE + data, form)
    check_told(data[: len(data) // 2], form)
    check_told(data.replace(b"a", b"\x00"), form)
    if form == "xml":
        check_told(f'<?xml version="1.0" encoding="{encoding}"?>'.encode() + data, form)
        check_told(f'<?xml version="1.0" encoding="{encoding}"?>'.encode(encoding) + data, form)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_utf_8_and_marked_utf_16_are_read(form: str, encoding: str) -> None:
    assert check_told(TEXTS[form].encode(encoding), form) == DATAFLOW


@pytest.mark.parametrize("name", ["", "rot13", "hex", "zip", "idna", "undefined", "nonsense", "utf-8\x00", "a" * 500])
def test_xml_in_encodings_that_are_none(name: str) -> None:
    assert check_told(f'<?xml version="1.0" encoding="{name}"?><dataflow/>'.encode(), "xml") is None


def test_faults_in_files_of_other_encodings_tell_the_right_line() -> None:
    for data, line in (
        (b"a: 1\nb: \xff\n", 2),
        (b"name: \xc3\xbc\xc3\xbc\xc3\xbc\n\n\nb: \x01\n", 4),
        (b"\xff\xfea", 1),
    ):
        with pytest.raises(InvalidDataflow) as told:
            parse(data, "yaml", file="f.yaml")
        assert [fault.place.line for fault in told.value.faults] == [line]


def test_files_full_of_slips_take_no_longer_than_others() -> None:
    many = 1_000
    slips = [{"id": f"task{n}", "type": "union", "inputs": [f"tsak{n}"]} for n in range(many)]
    check_told(json.dumps({"tasks": slips}), "json")
    edges = "".join(f'<edge source="a" sink="tsak{n}"/>' for n in range(many))
    listed = "".join(f'<PE id="task{n}"><alternate impl="rate"/></PE>' for n in range(many))
    check_told(f"<dataflow>{listed}{edges}</dataflow>", "xml")
    wide = ", ".join(f"column{n} int" for n in range(1_000))
    select = {"id": "b", "type": "select", "config": {"columns": [f"colmun{n}" for n in range(many)]}, "inputs": ["a"]}
    read = {"id": "a", "type": "read_files", "config": {"path": "p", "columns": wide}}
    check_told(json.dumps({"tasks": [read, select]}), "json")
    ring = [{"id": f"t{n}", "type": "union", "inputs": [f"t{(n + 1) % many}"]} for n in range(many)]
    check_told(json.dumps({"tasks": ring}), "json")
    ports = {"inputs": ["a"] * 250, "outputs": [f"b{n}" for n in range(256)]}
    check_told(
        json.dumps({"tasks": [{"id": "a", "type": "opaque", "ports": ports, "inputs": ["a:b1"] * many}]}), "json"
    )


SLOW_SQL = ["(" * 4_990, "date(" * 2_000, "date[" * 1_900, "struct<" * 30 + "1" + ">" * 30, "int array " * 900]
SLOW_SQL += ["case when " * 900, "not " * 2_400, "interval + int array " * 400, "- IF " * 900, "f(x -> " * 900]
SLOW_SQL += ["array<" * 900 + "int" + ">" * 900, "'" * 9_999, "/*" * 4_900, "a[" * 4_000, "{" * 9_000, "1+" * 4_900]


@pytest.mark.parametrize("sql", SLOW_SQL, ids=lambda sql: sql[:12])
def test_sql_that_would_keep_its_parser_busy(sql: str) -> None:
    config: dict[str, Any]
    for kind, config in (
        ("filter", {"where": sql}),
        ("cast", {"columns": {"a": sql}}),
        ("parse_json", {"columns": sql}),
        ("sql", {"query": f"select {sql}"}),
        ("sql", {"query": f"select 1 {'join b ' * 50} {sql}"[:9_000]}),
        ("python", {"function": sql[:600]}),
    ):
        check_told(json.dumps({"tasks": [{"id": "a", "type": kind, "config": config, "inputs": ["a"]}]}), "json")
    document = {"tasks": [{"id": "a", "type": "union", "inputs": [{"from": "a", "where": sql, "feedback": True}]}]}
    check_told(json.dumps(document), "json")
