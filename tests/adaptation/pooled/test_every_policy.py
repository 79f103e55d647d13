"""What holds of every policy on shared pools, on random windows of a platform with Spark's capabilities."""

from __future__ import annotations

import json

import numpy as np
import pytest

from headgate.adaptation.look_ahead import PolicySettings
from headgate.adaptation.policy import Capabilities, Decision, Memory
from headgate.adaptation.pooled.catalogue import POOLED, pooled_policy
from headgate.errors import InputError
from tests.adaptation.pooled import windows
from tests.adaptation.pooled.fake_spark import FakeSpark

SETTINGS = PolicySettings(forecaster="holt", horizon_s=600.0, alternates_every=2)


def _begun(name: str, of: windows.Made) -> Memory | None:
    try:
        return pooled_policy(name, SETTINGS).begin(of.terms, of.capabilities)
    except InputError as error:
        if error.condition not in ("NO_BREAK_EVEN", "NO_LATENCY"):
            raise
        return None


def _written(memory: Memory, name: str) -> Memory:
    text = json.dumps(memory.document(), allow_nan=False)
    assert len(text) < 256_000
    again = Memory.of(json.loads(text), name, 1)
    assert again is not None
    return again


def _is_explained(decision: Decision) -> bool:
    told = decision.reason.rule != "none" and decision.reason.sentences and decision.reason.figures
    return bool(told) or not decision.actions


def _checked(name: str, graphs: int) -> tuple[int, int]:
    """How many windows were decided on, three of each graph, and how many decisions had actions."""
    policy, decided, acted = pooled_policy(name, SETTINGS), 0, 0
    for seed in range(graphs):
        rng = np.random.default_rng(seed)
        of = windows.made(rng)
        memory = _begun(name, of)
        if memory is None:
            continue
        seen = windows.window(rng, of)
        for _ in range(3):
            decision, after = policy.decide(seen, memory)
            assert policy.decide(seen, _written(memory, name))[0] == decision
            FakeSpark(seen).apply(decision.actions)
            assert _is_explained(decision), decision
            assert decision.prediction is not None
            assert 0 <= (decision.prediction.omega or 0.0) <= 1
            decided, acted = decided + 1, acted + bool(decision.actions)
            memory, seen = after, windows.later(rng, seen, of)
    return decided, acted


@pytest.mark.parametrize("name", list(POOLED))
def test_spark_accepts_all_that_is_decided_and_memories_can_be_written_down(name: str) -> None:
    decided, acted = _checked(name, 2 if name == "receding" else 10)
    assert decided >= 6
    assert acted >= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", list(POOLED))
def test_spark_accepts_all_that_is_decided_on_many_windows(name: str) -> None:
    decided, acted = _checked(name, 160)
    assert decided >= 300
    assert acted > 50


@pytest.mark.parametrize("name", list(POOLED))
def test_tasks_with_cores_of_their_own_are_refused(name: str) -> None:
    of = windows.made(np.random.default_rng(1))
    with pytest.raises(InputError) as caught:
        pooled_policy(name).begin(of.terms, Capabilities(("t0",), exclusive=True))
    assert caught.value.condition == "EXCLUSIVE"


def test_a_policy_that_hands_out_cores_is_named() -> None:
    with pytest.raises(InputError, match="policy 'ga' hands out cores that tasks own; on shared cores: static"):
        pooled_policy("ga")
    with pytest.raises(InputError, match="unknown policy 'exakt'"):
        pooled_policy("exakt")
