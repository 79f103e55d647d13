"""What owners use, and which of their sources are limited."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headgate.access.principal import AccessRole, Principal
from headgate.access.quota import OwnerUse, Quota, check_quotas, use_by_owner
from headgate.access.rules import TenantRules
from headgate.documents import parse
from headgate.documents.project_tables import ProjectTables, QuotasTable
from headgate.errors import InputError
from headgate.model.cluster.observation import (
    DataflowObservation,
    FragmentObservation,
    Observation,
    SourceObservation,
    TaskObservation,
    TaskProfile,
)
from headgate.model.names import Signature
from headgate.model.service_level import ServiceLevel
from headgate.service.owner_use import MeasuredUse, use_in
from headgate.service.principal_engine import PrincipalEngine
from headgate.service.submit import submit as submit_documents
from headgate.service.throttling import Throttle, source_limits
from headgate.store.observations import ObservationHistory
from headgate.tasks.registry import default_registry
from tests.api.fake import FakeEngine
from tests.api.samples import document

FLOWS = {"a": "city", "b": "city", "c": "rail"}


def submit(engine: Any, name: str) -> None:
    submit_documents(engine, [document(name, owner="city")], default_registry())


def source(name: str, rows: int, *dataflows: str, waiting: float = 0.0) -> SourceObservation:
    return SourceObservation(Signature(name), name, dataflows, rows, float(rows), waiting)


def minute(*sources: SourceObservation, **more: Any) -> Observation:
    flows = tuple(DataflowObservation(name, owner, ServiceLevel()) for name, owner in FLOWS.items())
    return Observation(60.0, 10.0, sources=sources, dataflows=flows, **more)


def test_own_sources_share_what_their_owner_may_take() -> None:
    seen = minute(source("s", 9_000, "a"), source("t", 3_000, "b"), source("u", 5_000, "c"), source("v", 900, "a", "c"))
    quotas = {"city": Quota(rows_per_s=600.0)}
    assert source_limits([seen], quotas, Quota(), 0.5, {}) == {"s": 225, "t": 75}
    assert source_limits([seen], {}, Quota(), 0.5, {}) == {}


def test_a_limit_stays_while_rows_wait_and_goes_when_it_is_calm() -> None:
    quotas, before = {"city": Quota(rows_per_s=600.0)}, {"s": 300}
    full = minute(source("s", 6_000, "a", waiting=50_000.0))
    assert source_limits([full], quotas, Quota(), 0.5, before) == before
    calm = minute(source("s", 1_000, "a"))
    assert source_limits([calm], quotas, Quota(), 0.5, before) == {}
    busy = minute(source("s", 5_800, "a"))
    assert source_limits([busy], quotas, Quota(), 0.5, before) == before


def test_what_is_shared_is_divided() -> None:
    profile = TaskProfile(1_000, 0.001, 0.001, 0.0, 0, None)
    tasks = tuple(
        TaskObservation(Signature(name), name, "derive", name, flows, None, 1_000, 1_000, profile=profile)
        for name, flows in {"own": ("a", "b"), "shared": ("b", "c")}.items()
    )
    used = use_in([minute(source("s", 100, "a", "c"), tasks=tasks)])
    assert used["city"] == OwnerUse(rows_per_s=10.0, cores=pytest.approx(0.15))  # type: ignore[arg-type]
    assert used["rail"] == OwnerUse(rows_per_s=10.0, cores=pytest.approx(0.05))  # type: ignore[arg-type]


def test_over_quota_is_refused_with_the_figure(tmp_path: Path) -> None:
    (tmp_path / "version").write_text("5", encoding="utf-8")
    engine = FakeEngine(tmp_path)
    fragment = FragmentObservation("source-1", "source", (Signature("t"),), 1, 1, 0, 1.0, 0.0, 0.0, 1.0, 0.0)
    task = TaskObservation(Signature("t"), "t", "derive", "t", ("a",), None, 10, 10)
    ObservationHistory(tmp_path / "observations").append(
        minute(source("s", 6_000, "a"), tasks=(task,), fragments=(fragment,))
    )
    (tmp_path / "fragments" / "source-1").mkdir(parents=True)
    (tmp_path / "fragments" / "source-1" / "state").write_bytes(b"x" * 5_000)
    who = Principal("ana", AccessRole.ADMIN)
    said = {
        "takes 600 rows/s, and may take 100;": Quota(rows_per_s=100.0),
        "has 5,000 bytes of state and files, and may have 4,999;": Quota(kept_bytes=4_999),
    }
    for text, quota in said.items():
        use = MeasuredUse(tmp_path, clock=lambda: 61.0)
        guarded = PrincipalEngine(engine, who, TenantRules(quotas={"city": quota}), use)
        with pytest.raises(InputError, match=text):
            submit(guarded, "more")
    assert engine.dataflows == ()


def test_limits_reach_the_engine_and_are_lifted(tmp_path: Path) -> None:
    (tmp_path / "version").write_text("5", encoding="utf-8")
    engine = FakeEngine(tmp_path)
    submit(engine, "a")
    (submitted,) = engine.shared.running.submitted.values()
    task, signature = next(iter(submitted.signatures.items()))
    history, now = ObservationHistory(tmp_path / "observations"), [61.0]
    history.append(minute(source(signature, 12_000, "a")))
    throttle = Throttle(engine, TenantRules(quotas={"city": Quota(rows_per_s=600.0)}), 0.5, lambda: now[0])
    throttle.look()
    assert engine.done[-1:] == [("limit", "a", task, 300)]
    history.append(replace(minute(source(signature, 1_000, "a")), ended=1_000.0))
    now[0] = 1_001.0
    throttle.look()
    assert engine.done[-1:] == [("limit", "a", task, None)]


def test_different_sources_are_counted_once() -> None:
    flows = [parse(json.dumps(document(name, owner="city")), "json").dataflow for name in ("a", "b")]
    fast = document("c", owner="city")
    fast["tasks"][0]["config"] = {"rows_per_s": 9}
    flows.append(parse(json.dumps(fast), "json").dataflow)
    assert use_by_owner(flows)["city"] == OwnerUse(dataflows=3, tasks=9, sources=2)
    with pytest.raises(InputError, match="would have 2 sources, and may have 1"):
        check_quotas({}, Quota(sources=1), use_by_owner(flows), ["city"])


def test_a_time_budget_is_no_longer_than_the_owner_may_have(tmp_path: Path) -> None:
    engine = FakeEngine(tmp_path)
    slow = document("slow", owner="city")
    slow["tasks"][1]["time_budget"] = "2min"
    rules = ProjectTables(quotas=QuotasTable(time_budget="90s")).rules()
    who = Principal("ana", AccessRole.ADMIN)
    with pytest.raises(InputError, match="'slow' has a time budget of 120 s: 'city' may have 90 s"):
        submit_documents(PrincipalEngine(engine, who, rules), [slow], default_registry())
    submit_documents(PrincipalEngine(engine, who), [slow], default_registry())
