"""What dataflows may touch: roots, links, the state directory, each other's folders, and circles through files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headgate.access.principal import AccessRole, Principal
from headgate.access.rules import TenantRules
from headgate.documents import parse
from headgate.documents.settings import project_tables
from headgate.errors import InputError
from headgate.model.dataflow import Dataflow
from headgate.service.touched_places import check_places
from headgate.tasks.registry import default_registry

REGISTRY = default_registry()
ADMIN = Principal("root", AccessRole.ADMIN)
ANA = Principal("ana", AccessRole.SUBMITTER, frozenset({"city"}))


def flow(name: str, *, owner: str = "city", source: Any = None, sink: Any = None, step: Any = None) -> Dataflow:
    tasks: list[dict[str, Any]] = [{"id": "in", **(source or {"type": "rate"})}]
    for id, task in (("step", step), ("out", sink)):
        if task is not None:
            tasks.append({"id": id, "inputs": [tasks[-1]["id"]], **task})
    return parse(json.dumps({"name": name, "owner": owner, "tasks": tasks}), "json").dataflow


def reads(path: object, **more: Any) -> dict[str, Any]:
    return {"type": "read_files", "config": {"path": str(path), "format": "text", **more}}


def writes(path: object) -> dict[str, Any]:
    return {"type": "write_files", "config": {"path": str(path)}}


def table(url: str) -> dict[str, Any]:
    return {"type": "write_table", "config": {"url": url, "table": "t"}}


Allow = dict[str, list[Any]]


def check(
    tmp_path: Path,
    *new: Dataflow,
    who: Principal = ADMIN,
    running: tuple[Dataflow, ...] = (),
    allow: Allow | None = None,
) -> None:
    rules = TenantRules(allow={name: tuple(map(str, places)) for name, places in (allow or {}).items()})
    check_places(who, rules, tmp_path / "state", new, running, REGISTRY)


def test_without_rules_operators_touch_all_but_the_state_and_others_nothing(tmp_path: Path) -> None:
    everything = [
        flow("a", source=reads("/etc/*.conf"), sink=writes(tmp_path / "out")),
        flow("b", source={"type": "read_socket", "config": {"port": 1}}, sink=table("postgresql://db/x")),
        flow("c", step={"type": "python", "config": {"function": "os.path.join"}}),
    ]
    check(tmp_path, *everything)
    check(tmp_path, flow("d", sink={"type": "write_memory", "config": {"name": "m"}}), who=ANA)
    for dataflow in everything:
        with pytest.raises(InputError, match=r"nothing is allowed .* see (read|write|hosts|modules) in \[allow\]"):
            check(tmp_path, dataflow, who=ANA)


@pytest.mark.parametrize("path", ["state", "state/journal", "state/../state/x", "link", "link/deeper", "out/../state"])
def test_nobody_touches_the_state_directory(tmp_path: Path, path: str) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "state")
    for dataflow in (
        flow("w", sink=writes(tmp_path / path)),
        flow("r", source=reads(tmp_path / path / "*.json")),
        flow("t", sink=table(f"sqlite:///{tmp_path / path}/x.db")),
        flow("m", source=reads(tmp_path, after="move", move_to=str(tmp_path / path))),
    ):
        with pytest.raises(InputError, match="state directory of the engine") as caught:
            check(tmp_path, dataflow)
        assert caught.value.condition == "NOT_ALLOWED"


def test_roots_hold_for_all_and_links_do_not_lead_out(tmp_path: Path) -> None:
    for folder in ("in/city", "in/rail", "out", "other"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "in/city/link").symlink_to(tmp_path / "other")
    allow: Allow = {"read": [tmp_path / "in" / "{owner}"], "write": [tmp_path / "out"]}
    for who in (ADMIN, ANA):
        check(
            tmp_path,
            flow("a", source=reads(tmp_path / "in/city/*.txt"), sink=writes(tmp_path / "out/a")),
            who=who,
            allow=allow,
        )
        for source in ("in/rail", "in/city/link", "in/city/../rail", "in/citylike", "in", "other", "in/*/x"):
            with pytest.raises(InputError, match="may not be used"):
                check(tmp_path, flow("a", source=reads(tmp_path / source)), who=who, allow=allow)
        for sink in ("out/../other", "in/city", "outside"):
            with pytest.raises(InputError, match="may not be used"):
                check(tmp_path, flow("a", sink=writes(tmp_path / sink)), who=who, allow=allow)
        with pytest.raises(InputError, match="may not be used"):  # it would delete what it may only read
            check(tmp_path, flow("a", source=reads(tmp_path / "in/city", after="delete")), who=who, allow=allow)


@pytest.mark.parametrize(
    ("what", "allowed"),
    [
        (table("postgresql://app:${secret:A}@db:5432/city"), True),
        (table("postgresql://db:5432/city?host=evil"), False),
        (table("postgresql://db:5432/citylike"), False),
        (table("postgresql://db:5432@evil/city"), False),
        (table("postgresql://evil/postgresql://db:5432/city"), False),
        (table("sqlite:////tmp/x.db"), False),
        ({"type": "write_kafka", "config": {"servers": "kafka:9092", "topic": "t"}}, True),
        ({"type": "write_kafka", "config": {"servers": "kafka:9092,evil:9092", "topic": "t"}}, False),
        ({"type": "write_kafka", "config": {"servers": "kafka.evil:9092", "topic": "t"}}, False),
        ({"type": "write_call", "config": {"function": "city.alarms.page"}}, True),
        ({"type": "write_call", "config": {"function": "citylike.page"}}, False),
        ({"type": "write_call", "config": {"function": "subprocess:run"}}, False),
    ],
)
def test_urls_hosts_and_modules(tmp_path: Path, what: dict[str, Any], allowed: bool) -> None:
    allow: Allow = {"write": ["postgresql://db:5432/city"], "hosts": ["kafka"], "modules": ["city"]}
    if allowed:
        check(tmp_path, flow("a", sink=what), who=ANA, allow=allow)
    else:
        with pytest.raises(InputError, match="may not be used"):
            check(tmp_path, flow("a", sink=what), who=ANA, allow=allow)


@pytest.mark.parametrize("path", ["out", "out/deeper", "."])
def test_nobody_writes_where_another_owner_does(tmp_path: Path, path: str) -> None:
    theirs = flow("theirs", owner="rail", sink=writes(tmp_path / "out"))
    with pytest.raises(InputError, match="another owner's dataflow writes") as caught:
        check(tmp_path, flow("a", sink=writes(tmp_path / path)), running=(theirs,))
    assert caught.value.condition == "TARGET_TAKEN"
    check(tmp_path, flow("a", sink=writes(tmp_path / path)), running=(flow("own", sink=writes(tmp_path / "out")),))


def test_nobody_reads_what_it_has_written(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    with pytest.raises(InputError, match="for ever") as caught:
        check(tmp_path, flow("one", source=reads(a / "*.json"), sink=writes(a)))
    assert caught.value.condition == "CYCLE_OF_FILES"
    with pytest.raises(InputError, match=r"'one' -> 'two' -> 'one'|'two' -> 'one' -> 'two'"):
        check(
            tmp_path,
            flow("one", source=reads(a), sink=writes(b)),
            running=(flow("two", source=reads(b), sink=writes(a)),),
        )
    with pytest.raises(InputError, match="for ever"):
        check(tmp_path, flow("one", source=reads(tmp_path / "**" / "*.json"), sink=writes(b)))
    check(tmp_path, flow("one", source=reads(a, after="delete"), sink=writes(b)), flow("two", source=reads(b)))
    check(tmp_path, flow("one", source=reads(a / "*.json"), sink=writes(a / "out")))


def test_the_table_of_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "headgate.toml"
    file.write_text('[allow]\nread = ["in", "s3://bucket/in"]\nmodules = []\n')
    assert project_tables(file).rules().allow == {"read": (str(tmp_path / "in"), "s3://bucket/in"), "modules": ()}


def test_every_option_that_names_a_place_is_marked() -> None:
    """Also those of types to come: a path, URL, host or function without a mark would be nobody's business."""
    names = {
        "path",
        "url",
        "host",
        "servers",
        "move_to",
        "folder",
        "model",
        "function",
        "file",
        "ca_file",
        "broker",
        "address",
    }
    for task_type in map(REGISTRY.__getitem__, REGISTRY):
        for name, field in task_type.config.model_fields.items():
            if name in names:
                assert any(type(mark).__name__ == "Touch" for mark in field.metadata), f"{task_type.name}.{name}"
