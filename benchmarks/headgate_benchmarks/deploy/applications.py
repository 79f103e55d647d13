"""P-DEPLOY's applications as operators with profiles: micro-benchmarks, word count, Twitter sentiment.

The four kinds of operators are those of section 7.1.1: a CPU-bound one draws 30,000 random numbers, an I/O-bound one
parses JSON, a sojourn-bound one sleeps for 10 ms, a memory-bound one keeps a window of 300 s. The paper prints no
costs. With these, CPU-bound operators need two instances each at 2,000 rows/s, as in its section 7.2, and sentiment at
6,000 rows/s some ten machines (14 there).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from headgate.model.cluster.alternate_cost import Origin
from headgate.planning.known_figures import Figure
from headgate.planning.placing.profiles import OperatorProfile

__all__ = ["Application", "applications", "linear"]

KINDS: Mapping[str, tuple[float, float, float, float]] = {
    "queue": (8e-5, 5e-5, 0.0, 0.0),
    "cpu": (9e-4, 5e-5, 0.0, 0.0),
    "io": (5e-5, 1.5e-4, 0.0, 0.0),
    "wait": (3e-5, 5e-5, 0.010, 0.0),
    "memory": (8e-5, 5e-5, 0.0, 300 * 1_000.0),
    "sink": (2e-5, 5e-5, 0.0, 0.0),
}
"""CPU and transfer seconds of a row, seconds that it waits, bytes for each row per second: 300 s of a kilobyte."""


@dataclass(frozen=True, slots=True)
class Application:
    """Operators and the streams between them."""

    name: str
    profiles: Mapping[str, OperatorProfile]
    streams: Sequence[tuple[str, str]]
    sources: Sequence[str]
    surging: Mapping[str, float]
    """Operators with windows: for a second in ten, a row costs so many times as much."""


def _operator(name: str, kind: str, **out: float) -> OperatorProfile:
    return _costing(name, *KINDS[kind], **out)


def _costing(
    name: str, cpu: float, transfer: float, wait: float = 0.0, memory: float = 0.0, **out: float
) -> OperatorProfile:
    def known(value: float) -> Figure:
        return Figure(value, Origin.STORED)

    return OperatorProfile(
        name,
        name,
        known(cpu),
        known(cpu + wait),
        known(transfer),
        known(memory),
        row_bytes=known(1_000.0),
        selectivity={reader: known(rows) for reader, rows in out.items()},
    )


def _application(
    name: str, profiles: Sequence[OperatorProfile], streams: Sequence[tuple[str, str]], **surging: float
) -> Application:
    fed = {target for _, target in streams}
    sources = [one.task for one in profiles if one.task not in fed]
    return Application(name, {one.task: one for one in profiles}, streams, sources, surging)


def linear(depth: int, kinds: Sequence[str] = ("cpu", "io", "wait", "memory"), name: str = "") -> Application:
    """A queue, ``depth`` operators one after the other, and a sink."""
    middle = [f"op{number + 1}" for number in range(depth)]
    names = ["queue", *middle, "sink"]
    chosen = [kinds[number % len(kinds)] for number in range(depth)]
    profiles = [_operator(each, kind) for each, kind in zip(names, ["queue", *chosen, "sink"], strict=True)]
    surging = {each: 2.0 for each, kind in zip(middle, chosen, strict=True) if kind == "memory"}
    return _application(name or f"linear-{depth}", profiles, list(pairwise(names)), **surging)


def _diamond() -> Application:
    middle = ("cpu", "io", "wait", "memory")
    profiles = [_operator("queue", "queue"), *(_operator(kind, kind) for kind in middle), _operator("together", "sink")]
    streams = [("queue", kind) for kind in middle] + [(kind, "together") for kind in middle]
    return _application("diamond", profiles, streams, memory=2.0)


def _star() -> Application:
    """Two queues, an operator in the middle, two sinks; the middle one of each kind in turn behind the other."""
    profiles = [
        _operator("one", "queue", centre=1.0),
        _operator("two", "queue", centre=1.0),
        _operator("centre", "io", left=1.5, right=1.5),
        _operator("left", "cpu"),
        _operator("right", "wait"),
        _operator("kept", "memory"),
        _operator("sink", "sink"),
    ]
    streams = [("one", "centre"), ("two", "centre"), ("centre", "left"), ("centre", "right")]
    return _application("star", profiles, [*streams, ("left", "kept"), ("right", "sink")], kept=2.0)


def _word_count() -> Application:
    """A queue, a JSON parser, a splitter into ten words, a counter."""
    profiles = [
        _costing("queue", 8e-5, 4e-5),
        _costing("parser", 4e-4, 5e-5),
        _costing("splitter", 2e-4, 1.5e-5, counter=10.0),
        _costing("counter", 2.5e-5, 1.2e-5),
    ]
    return _application("word-count", profiles, [("queue", "parser"), ("parser", "splitter"), ("splitter", "counter")])


def _sentiment() -> Application:
    """Eleven operators in eight stages (Fig. 9)."""
    profiles = [
        _costing("queue", 1e-4, 5e-5),
        _costing("writer", 6e-5, 5e-5, 0.0005),
        _costing("language", 1e-3, 6e-5, feeling=0.6),
        _costing("feeling", 1.4e-3, 6e-5, hashtag=0.5),
        _costing("average", 1e-4, 5e-5, averages=0.1),
        _costing("averages", 5e-5, 5e-5),
        _costing("hashtag", 8e-5, 5e-5),
        _costing("counted", 2e-4, 5e-5, 0.0, 60 * 200.0, ranked=0.1),
        _costing("ranked", 2e-4, 2e-5, ranked_all=0.1),
        _costing("ranked_all", 2e-4, 2e-5),
        _costing("rankings", 2e-5, 2e-5),
    ]
    streams = [
        ("queue", "writer"),
        ("queue", "language"),
        ("language", "feeling"),
        ("feeling", "average"),
        ("average", "averages"),
        ("feeling", "hashtag"),
        ("hashtag", "counted"),
        ("counted", "ranked"),
        ("ranked", "ranked_all"),
        ("ranked_all", "rankings"),
    ]
    return _application("sentiment", profiles, streams, counted=2.0)


def applications() -> dict[str, Application]:
    """The five of the paper; linear with an operator of each kind."""
    five = (linear(4, name="linear"), _diamond(), _star(), _word_count(), _sentiment())
    return {one.name: one for one in five}
