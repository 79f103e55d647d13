"""Named streams: who reads one shares the tasks that make it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.documents import parse
from headgate.errors import InputError, InvalidDataflow
from headgate.model.dataflow import Dataflow
from headgate.sharing.published import with_streams
from headgate.sharing.shared_set import SharedSet
from headgate.tasks.registry import default_registry

READ = {"id": "read", "type": "read_files", "config": {"path": "in", "columns": "k string, v double"}}
OUT = {"id": "out", "type": "write_console"}


def flow(name: str, *tasks: dict[str, Any], **head: Any) -> Dataflow:
    before = ""
    listed = []
    for task in tasks:
        source = task["type"].startswith("read_")
        listed.append(task if source else {**task, "inputs": [before]})
        before = task["id"]
    return parse(json.dumps({"name": name, **head, "tasks": listed}), "json").dataflow


def reader(name: str, stream: str, *tasks: dict[str, Any], **head: Any) -> Dataflow:
    return flow(name, {"id": "s", "type": "read_stream", "config": {"stream": stream}}, *tasks, OUT, **head)


def warm(publish: str = "warm", **more: Any) -> dict[str, Any]:
    return {"id": "warm", "type": "filter", "config": {"where": "v > 20"}, "publish": publish, **more}


def resolved(dataflow: Dataflow, *others: Dataflow) -> Dataflow:
    return with_streams(dataflow, lambda: others)


def test_a_reader_shares_all_that_makes_the_stream() -> None:
    maker = flow("maker", READ, warm(), OUT, owner="ana")
    made = resolved(reader("late", "warm", {"id": "k", "type": "select", "config": {"columns": ["k"]}}), maker)
    assert [task.id for task in made.tasks] == ["s/read", "s", "k", "out"]
    shared, _ = SharedSet(default_registry(), semantic=False).submit(maker)
    after, submission = shared.submit(made)
    assert [task.id for task in submission.change.shared] == ["s/read", "s"]
    left, _ = after.withdraw("maker")
    assert len(left.running.tasks) == 4, "it outlives the one who publishes it"


def test_a_stream_made_of_a_stream() -> None:
    first = flow("first", READ, warm("one"), OUT)
    hot = {"id": "hot", "type": "filter", "config": {"where": "v > 30"}, "publish": "two"}
    second = reader("second", "one", hot)
    made = resolved(reader("third", "two"), first, second)
    assert [task.id for task in made.tasks] == ["s/s/read", "s/s", "s", "out"]
    assert [task.publish for task in made.tasks] == ["", "", "", ""], "a name is published once"


def test_who_may_read_it_is_what_share_says() -> None:
    own = flow("own", READ, warm(share="owner"), OUT, owner="ana")
    made = resolved(reader("mine", "warm", owner="ana"), own)
    shared, _ = SharedSet(default_registry(), semantic=False).submit(own)
    _, submission = shared.submit(made)
    assert "s" in [task.id for task in submission.change.shared]
    with pytest.raises(InputError, match="stream 'warm' of dataflow 'own' is not shared with 'ben'"):
        resolved(reader("other", "warm", owner="ben"), own)
    private = flow("private", READ, warm(), OUT, owner="ana", share="never")
    with pytest.raises(InputError, match="is not shared with 'ana'"):
        resolved(reader("mine", "warm", owner="ana"), private)


def test_names_that_nobody_or_another_one_publishes() -> None:
    maker = flow("maker", READ, warm(), OUT)
    with pytest.raises(InputError, match=r"nobody publishes a stream 'worm'.*did you mean 'warm'"):
        resolved(reader("late", "worm"), maker)
    with pytest.raises(InputError, match="dataflow 'maker' publishes a stream 'warm' already"):
        resolved(flow("again", READ, warm(), OUT), maker)
    assert resolved(maker, maker) is maker, "a new version of itself may"
    with pytest.raises(InputError, match="nobody publishes a stream 'mine'"):
        resolved(reader("self", "mine", warm("mine")))


def test_streams_that_are_made_of_each_other() -> None:
    one, two = reader("one", "b", warm("a")), reader("two", "a", warm("b"))
    with pytest.raises(InputError, match="the streams a -> b -> a are made of each other"):
        resolved(reader("three", "a"), one, two)


def test_what_is_no_stream_cannot_be_published() -> None:
    with pytest.raises(InvalidDataflow, match="needs a task that puts rows out at 'out', which 'out' does not"):
        flow("bad", READ, {**OUT, "publish": "rows"})
    with pytest.raises(InvalidDataflow, match="'x' is published by task 'read' already"):
        flow("bad", {**READ, "publish": "x"}, warm("x"), OUT)
