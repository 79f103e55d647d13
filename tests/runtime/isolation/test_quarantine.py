"""The search for tasks that raise, and how long they rest."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2

from hypothesis import given
from hypothesis import strategies as st

from headgate.runtime.isolation.quarantine import FIRST_REST_S, LONGEST_REST_S, Quarantine, behind, find_culprits


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    feeds: dict[str, list[str]] = {}
    for number in range(draw(st.integers(1, 40))):
        known = list(feeds)
        feeds[f"t{number}"] = draw(st.lists(st.sampled_from(known), max_size=3, unique=True)) if known else []
    return feeds


def ancestors(task: str, feeds: dict[str, list[str]]) -> set[str]:
    found: set[str] = set()
    todo = list(feeds[task])
    while todo:
        found.add(todo[-1])
        todo += feeds[todo.pop()]
    return found


@given(graphs(), st.data())
def test_culprits_are_those_that_raise_and_are_reached(feeds: dict[str, list[str]], data: st.DataObject) -> None:
    raising = set(data.draw(st.lists(st.sampled_from(list(feeds)), unique=True, max_size=5)))
    trials = 0

    def trial(tasks: Sequence[str]) -> str | None:
        nonlocal trials
        trials += 1
        for task in tasks:
            assert ancestors(task, feeds) <= set(tasks), "a trial has all that feeds its tasks"
        return next((f"{task} raised" for task in tasks if task in raising), None)

    found = find_culprits(feeds, trial)
    assert set(found) == {task for task in raising if not ancestors(task, feeds) & raising}
    assert all(reason == f"{task} raised" for task, reason in found.items())
    assert trials <= 2 + len(found) * (3 + ceil(log2(len(feeds))))


@given(graphs(), st.data())
def test_what_is_behind(feeds: dict[str, list[str]], data: st.DataObject) -> None:
    some = set(data.draw(st.lists(st.sampled_from(list(feeds)), unique=True, max_size=3)))
    assert behind(some, feeds) == {task for task in feeds if task in some or ancestors(task, feeds) & some}


def test_rows_that_fail_by_themselves_are_nobodys_fault() -> None:
    assert find_culprits({"a": [], "b": ["a"]}, lambda _: "no source") == {}


def test_rests_grow_and_end() -> None:
    now = 0.0
    quarantine = Quarantine(lambda: now)
    rests = []
    for _ in range(12):
        quarantine.put("t", "boom")
        began = now
        while not quarantine.due():
            assert quarantine.resting() == {"t"}
            now += 0.5
        rests.append(now - began)
        assert quarantine.reasons == {"t": "boom"}
        # It does not come back before it has been tried, and is not tried twice at once.
        assert quarantine.resting() == {"t"}
        quarantine.try_now({"t"})
        assert quarantine.due() == set()
    assert rests[0] == FIRST_REST_S
    assert rests[-1] == LONGEST_REST_S
    assert rests == sorted(rests)
    quarantine.passed({"t", "other"})
    assert quarantine.resting() == quarantine.due() == set()
    assert quarantine.reasons == {}


def test_who_raises_again_soon_rests_longer() -> None:
    now = 0.0
    quarantine = Quarantine(lambda: now)

    def comes_back() -> float:
        nonlocal now
        began = now
        while not quarantine.due():
            now += 0.5
        quarantine.try_now({"t"})
        quarantine.passed({"t"})
        return now - began

    quarantine.put("t", "boom")
    assert comes_back() == FIRST_REST_S
    quarantine.put("t", "boom")
    assert comes_back() == 2 * FIRST_REST_S
    now += 2 * FIRST_REST_S
    quarantine.passed({"t"})  # an epoch with it went well, long after
    quarantine.put("t", "boom")
    assert comes_back() == FIRST_REST_S


def test_what_does_no_harm_comes_back_without_a_trial() -> None:
    now = 0.0
    quarantine = Quarantine(lambda: now)
    quarantine.put("t", "boom", by_trial=False)
    quarantine.miss({"t"}, 1_500)
    assert quarantine.reasons == {"t": "boom (1,500 rows have passed it since)"}
    assert quarantine.resting() == {"t"}
    now = FIRST_REST_S
    assert quarantine.resting() == quarantine.due() == set()
    quarantine.passed({"t"})
    assert quarantine.reasons == {}
