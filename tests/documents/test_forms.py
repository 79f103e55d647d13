"""What is particular to each format."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from headgate.documents import form_of, json_form, parse, python_form, read, write, xml_form, yaml_form
from headgate.errors import InputError, InvalidDataflow
from headgate.model.config import Config
from headgate.model.dataflow import Dataflow
from headgate.tasks.registry import default_registry
from tests.samples import DATAFLOW


def _options(value: str) -> object:
    flow = parse(f"tasks: [{{id: a, type: opaque, config: {{options: {{x: {value}}}}}}}]", "yaml").dataflow
    options = flow.tasks[0].config["options"]
    assert isinstance(options, Config)
    return options["x"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("on", "on"),
        ("no", "no"),
        ("Yes", "Yes"),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("null", None),
        ("'null'", "null"),
        ("1e3", 1000),
        ("1_000", "1_000"),
        ("0o17", 15),
        ("017", 17),
        ("0x1F", 31),
        ("12:30", "12:30"),
        ("2020-01-01", "2020-01-01"),
        ("-.5", -0.5),
        ("+1", 1),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("! 1", "1"),
        ("<<", "<<"),
        ("1.", 1),
        (".", "."),
        ("'-'", "-"),
        ("=", "="),
    ],
)
def test_yaml_scalars_are_those_of_yaml_1_2(written: str, meant: object) -> None:
    assert _options(written) == meant
    assert type(_options(written)) is type(meant)


def test_yaml_aliases_are_values_of_their_own() -> None:
    text = """
    shared: &shared {path: in, columns: "a int"}
    tasks: []
    """
    with pytest.raises(InvalidDataflow, match="unknown field 'shared'"):
        parse(text, "yaml")
    text = "tasks:\n- {id: a, type: read_files, config: &c {path: p, columns: a int}}\n"
    text += "- {id: b, type: read_files, config: *c}\n"
    first, second = parse(text, "yaml").dataflow.tasks
    assert first.config == second.config


def test_yaml_keys_are_texts() -> None:
    flow = parse("tasks: [{id: a, type: opaque, config: {options: {1: a, true: b, 1.5: c, ~: d}}}]", "yaml").dataflow
    assert flow.tasks[0].config.as_dict()["options"] == {"1": "a", "true": "b", "1.5": "c", "~": "d"}


def test_yaml_is_written_for_people() -> None:
    text = "name: f\ntasks:\n- id: a\n  type: opaque\n  config:\n    label: |-\n      two\n      lines\n"
    assert write(parse(text, "yaml").dataflow, "yaml") == "version: 1\n" + text


def test_a_dataflow_without_a_name_is_called_after_its_file(tmp_path: Path) -> None:
    for name, called in (("city.yaml", "city"), ("what is this.yaml", "dataflow")):
        (tmp_path / name).write_text("tasks: [{id: a, type: rate}]", encoding="utf-8")
        assert read(tmp_path / name).dataflow.name == called
    assert parse("tasks: [{id: a, type: rate}]", "yaml").dataflow.name == "dataflow"


@pytest.mark.parametrize(
    ("name", "form"), [("a.YAML", "yaml"), ("a.yml", "yaml"), ("a.b.json", "json"), ("a.py", "python")]
)
def test_the_format_is_told_by_the_ending(name: str, form: str) -> None:
    assert form_of(Path(name)) == form


def test_there_is_no_other_format() -> None:
    with pytest.raises(InputError, match="unknown format 'toml'"):
        parse("", "toml")
    with pytest.raises(InputError, match="unknown format 'toml'"):
        write(DATAFLOW, "toml")


FIGURE_1 = """
<dataflow name="tweets">
  <PE id="parser"><in id="raw" type="string"/><out id="cleaned" type="string"/><alternate impl="Parser.Clean"/></PE>
  <PE id="classifier">
    <in id="cleaned_twt" type="string"/>
    <out id="tpc_twt" type="string"/>
    <alternate impl="Classifier.Bayes" value="0.65"/>
    <alternate impl="Classifier.LDA" value="0.70"/>
    <alternate impl="Classifier.MWE" value="1.0"/>
  </PE>
  <edge source="parser:cleaned" sink="classifier:cleaned_twt"/>
</dataflow>
"""


def test_the_figure_of_the_paper_is_read() -> None:
    flow = parse(FIGURE_1, "xml").dataflow
    parser, classifier = flow.tasks
    assert [way.name for way in classifier.alternates] == ["Classifier.Bayes", "Classifier.LDA", "Classifier.MWE"]
    assert {way.type for way in classifier.alternates} == {"python"}
    assert classifier.alternates[1].config["function"] == "Classifier.LDA"
    assert classifier.relative_values == (0.65, 0.70, 1.0)
    assert parser.alternates[0].config["function"] == "Parser.Clean"
    assert str(flow.streams[0]) == "parser:cleaned -> classifier:cleaned_twt"
    assert classifier.ports is not None
    assert str(classifier.ports.inputs[0].schema) == "value string"


def test_much_white_space_in_xml_is_read_in_time() -> None:
    many = 10_000
    lines = [f'<PE id="t{n}"><alternate impl="rate"/></PE>' for n in range(many)]
    started = time.process_time()
    located = xml_form.read("<dataflow>\n" + f"\n{' ' * 500}".join(lines) + "\n</dataflow>", default_registry())
    assert time.process_time() - started < 3
    assert (len(located.value["tasks"]), located.place(["tasks", many - 1]).line) == (many, many + 1)


def test_options_in_xml_are_text_or_json() -> None:
    text = '<dataflow><PE id="a"><alternate impl="opaque"><option name="{}"{}>{}</option></alternate></PE></dataflow>'
    flow = parse(text.format("label", "", " 1 "), "xml").dataflow
    assert flow.tasks[0].config["label"] == " 1 "
    flow = parse(text.format("options", ' type="json"', '{"a": 1}'), "xml").dataflow
    assert flow.tasks[0].config.as_dict() == {"options": {"a": 1}}
    for kind, value, says in (
        (' type="jsn"', "1", "type is 'jsn'"),
        (' type="json"', "{", "is not JSON"),
        (' type="json"', "NaN", "is not JSON"),
        (' type="json"', '{"a": 1, "a": 2}', "key 'a' is given twice"),
        (' type="json"', "[" * 50_000, "nested deeper"),
        (' type="json"', "9" * 5_000, "digits"),
    ):
        with pytest.raises(InvalidDataflow, match=says) as told:
            parse(text.format("options", kind, value), "xml")
        assert {fault.task for fault in told.value.faults} == {"a"}


def _python(*lines: str) -> Dataflow:
    return parse("\n".join(["from headgate import Flow", *lines]), "python", file="f.py").dataflow


def test_a_python_file_may_build_its_flow_in_any_way() -> None:
    flow = _python(
        "def make():", "    flow = Flow('made')", "    flow.source('rate')", "    return flow", "x = y = make()"
    )
    assert flow.name == "made"


def test_a_python_file_makes_one_flow() -> None:
    with pytest.raises(InvalidDataflow, match="2 flows made in this file"):
        _python("a = Flow('a')", "b = Flow('b')")


def test_a_python_file_is_not_touched_by_our_own_imports() -> None:
    flow = _python(
        "class A:", "    x: int = 1", "flow = Flow('f')", "flow.source('rate', rows_per_s=A.__annotations__['x'](7))"
    )
    assert flow.tasks[0].config["rows_per_s"] == 7


def test_faults_of_a_flow_that_the_file_itself_builds_are_told() -> None:
    with pytest.raises(InvalidDataflow, match="unknown task type 'raet'"):
        _python("flow = Flow('f')", "flow.source('raet')", "flow.build()")


def test_interrupting_a_python_file_is_not_its_fault() -> None:
    with pytest.raises(KeyboardInterrupt):
        _python("raise KeyboardInterrupt")


def test_a_python_file_leaves_nothing_behind(capsys: pytest.CaptureFixture[str]) -> None:
    before = set(sys.modules)
    _python("print('seen')", "flow = Flow('f')", "flow.source('rate')")
    assert "__headgate__" not in set(sys.modules) - before
    assert capsys.readouterr() == ("", "seen\n")


def test_python_is_written_for_people() -> None:
    text = "name: f\nowner: o\ntasks:\n- {id: in-1, type: rate}\n- {id: class, type: union, inputs: [in-1]}\n"
    text += "- {id: flow, type: write_memory, config: {name: x}, inputs: [{from: class, where: value > 1}]}\n"
    assert write(parse(text, "yaml").dataflow, "python").splitlines() == [
        "from headgate import Flow",
        "",
        "flow = Flow('f', owner='o')",
        "",
        "in_1 = flow.task('rate', id='in-1')",
        "class_ = flow.task('union', id='class')",
        "flow_2 = flow.task('write_memory', id='flow', config={'name': 'x'})",
        "",
        "in_1 >> class_",
        "class_.where('value > 1') >> flow_2",
    ]


@pytest.mark.parametrize(
    ("form", "text", "place"),
    [
        ("yaml", "a: 1\n b: 2", "f:2:3"),
        ("json", '{"a":\n  x}', "f:2:3"),
        ("xml", "<a>\n  <b></a>", "f:2:8"),
        ("python", "x = 1\ny = = 2", "f:2:5"),
    ],
)
def test_what_cannot_be_parsed_is_told_with_line_and_column(form: str, text: str, place: str) -> None:
    with pytest.raises(InvalidDataflow) as told:
        parse(text, form, file="f")
    assert [str(fault.place) for fault in told.value.faults] == [place]


def test_every_value_has_its_line_and_column() -> None:
    yaml_text = "name: a\ntasks:\n  - id: b\n    config: {x: [1,\n      2]}\n"
    located = yaml_form.read(yaml_text, "f")
    assert str(located.place(["tasks", 0, "config", "x", 1])) == "f:5:7"
    assert str(located.place(["tasks", 0, "config", "x", 9])) == "f:4:14"
    assert str(located.place(["nowhere"])) == "f:1:1"
    json_text = '{"a\\"b": [1,\n {"c": 2}],\n "d": {}}'
    located = json_form.read(json_text, "f")
    paths: list[list[str | int]] = [[], ['a"b'], ['a"b', 1, "c"], ["d"]]
    assert [str(located.place(path)) for path in paths] == [
        "f:1:1",
        "f:1:2",
        "f:2:3",
        "f:3:2",
    ]
    located = python_form.read("from headgate import Flow\nflow = Flow('f')\n\nflow.source('rate')", "f.py")
    assert str(located.place(["tasks", 0, "config"])) == "f.py:4"
