"""Isolation classes in files: what is read, what is left out when written, and slips."""

from __future__ import annotations

import pytest

from headgate import Flow
from headgate.documents import FORMATS, parse, write
from headgate.errors import InvalidDataflow
from headgate.model.share import Share

TEXT = """owner: ana
share: {0}
tasks:
- {{id: a, type: rate, share: {1}}}
- {{id: b, type: write_console, inputs: [a]}}
"""


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_carries_it(form: str) -> None:
    dataflow = parse(TEXT.format("owner", "never"), "yaml").dataflow
    assert (dataflow.share, [task.share for task in dataflow.tasks]) == (Share.OWNER, [Share.NEVER, None])
    assert parse(write(dataflow, form), form).dataflow == dataflow
    plain = write(parse(TEXT.format("anyone", "null"), "yaml").dataflow, form)
    assert "share" not in plain


def test_a_slip_is_told_with_its_line_and_the_nearest_class() -> None:
    with pytest.raises(InvalidDataflow) as caught:
        parse(TEXT.format("owner", "nevr"), "yaml")
    (fault,) = caught.value.faults
    assert (fault.condition, fault.place.line, fault.task, fault.nearest) == ("BAD_VALUE", 4, "a", "never")


def test_in_python_a_text_is_the_class_and_a_number_the_option_of_sample() -> None:
    flow = Flow("f", share="owner")
    flow.source("rate", share="anyone") >> flow.task("sample", share=0.5) >> flow.sink("write_console")
    dataflow = flow.build()
    assert (dataflow.share, dataflow.tasks[0].share, dataflow.tasks[1].share) == (Share.OWNER, Share.ANYONE, None)
    assert dataflow.tasks[1].config["share"] == 0.5
