"""Versions of a mapping, against copies of a dict."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.sharing.versioned import VersionedMap

keys = st.integers(0, 5)
steps = st.lists(
    st.tuples(st.integers(0, 100), st.dictionaries(keys, st.integers(), max_size=3), st.sets(keys)), max_size=20
)


@settings(max_examples=200)
@given(steps)
def test_every_version_stays_what_it_was_whichever_is_changed(
    changes: list[tuple[int, dict[int, int], set[int]]],
) -> None:
    versions: list[tuple[VersionedMap[int, int], dict[int, int]]] = [(VersionedMap(), {})]
    for which, added, dropped in changes:
        version, copy = versions[which % len(versions)]
        without = dropped & set(copy)
        made = version.updated(added, without=without)
        versions.append((made, {key: value for key, value in copy.items() if key not in without} | added))
        for other, wanted in versions:
            assert other.as_dict() == wanted
            assert len(other) == len(wanted)
            assert all(other.get(key) == wanted.get(key) and (key in other) == (key in wanted) for key in range(6))


def test_removing_what_is_not_there_changes_nothing() -> None:
    version = VersionedMap({"a": 1})
    with pytest.raises(KeyError):
        version.updated({"b": 2}, without=["c"])
    assert dict(version) == {"a": 1}


def test_equal_versions_are_equal_and_a_version_is_no_key() -> None:
    version = VersionedMap({"a": 1})
    assert version == version.updated({"b": 2}).updated({}, without=["b"])
    assert version != version.updated({"a": 2})
    with pytest.raises(TypeError):
        hash(version)


def test_a_long_chain_of_versions_is_reached_and_freed() -> None:
    first = VersionedMap({0: 0})
    last = first
    for number in range(100_000):
        last = last.updated({0: number})
    assert (first[0], last[0]) == (0, 99_999)
    del last
    assert first[0] == 0
    del first


def test_threads_that_use_different_versions_see_their_own() -> None:
    versions = [VersionedMap({"n": 0})]
    for number in range(1, 50):
        versions.append(versions[-1].updated({"n": number}))
    wrong: list[int] = []

    def read(number: int) -> None:
        wrong.extend(number for _ in range(200) if versions[number]["n"] != number)

    threads = [threading.Thread(target=read, args=(number,)) for number in (0, 10, 49, 25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
