"""Where the past of a dataflow ends, and when what has waited follows it: on plans and folders, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from headgate.runtime.compile.plan import Fragment, later
from headgate.runtime.engine.catching_up import CatchUps
from headgate.runtime.engine.plans import Plans
from headgate.runtime.engine.standing import fragment_of
from headgate.runtime.engine.state import StateDirectory
from headgate.runtime.epochs.fragment import RunningFragment
from headgate.runtime.exchange.files import FileExchange
from headgate.runtime.file_source.read_until import ReadUntil
from headgate.runtime.io.outbox import SinkOutbox
from tests.runtime.engine.test_starting import COUNT, POSITIVE, Running, small


@dataclass(slots=True)
class BetweenEpochs:
    """A source whose last epoch was committed and, if so, delivered."""

    fragment: Fragment
    delivered: bool

    def is_delivered(self) -> bool:
        return self.delivered

    def between_epochs(self, do: Callable[[Mapping[str, Any]], None], patience_s: float = 0.0) -> bool:
        del patience_s
        do({"rows": 0, "batch": 0})
        return True


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDirectory]:
    state = StateDirectory(tmp_path / "state")
    yield state
    state.close()


def catch_ups(state: StateDirectory, running: Running, fragments: Mapping[str, BetweenEpochs]) -> CatchUps:
    plans = Plans(state, running.snapshot.shared.registry)
    plans.snapshot, plans.current = running.snapshot, running.plan
    sources = cast("Mapping[str, RunningFragment]", fragments)
    return CatchUps(state, plans, sources, FileExchange(state.path / "exchange"), cast("SinkOutbox", None))


def test_nothing_follows_a_past_before_all_that_waits_was_delivered(state: StateDirectory, tmp_path: Path) -> None:
    running = Running()
    running.submit(small("base", POSITIVE))
    running.submit(small("own", COUNT))
    (topic,) = (t.id for one in running.plan.fragments.values() for t in one.writes if t.id == later(t.id[:16]))
    topic = topic[:16]
    running.caught_up()
    running.submit(small("late", POSITIVE))
    (bounded,) = (source for source, reading in running.snapshot.readings.items() if reading.bounded)
    (host,) = (one for one in running.plan.fragments.values() if topic in {t.id for t in one.writes})
    source = BetweenEpochs(host, delivered=False)
    catching = catch_ups(state, running, {host.id: source})
    (tmp_path / "rows").write_text("rows", encoding="utf-8")
    catching.exchange.publish(later(topic), 0, 2, [(str(tmp_path / "rows"), 1)], 0)
    catching.settle_idle()
    bound = state.fragment(fragment_of(bounded)) / "files"
    assert ReadUntil.stored(bound) is not None, "it is settled where the past of the last one ends"
    assert catching.exchange.waited_for() == {topic}, "more of what waits is committed, and numbered"
    (tmp_path / "rows").write_text("more", encoding="utf-8")
    catching.exchange.publish(later(topic), 1, 2, [(str(tmp_path / "rows"), 1)], 0)
    catching.settle(host, running.snapshot.number, {"rows": 0, "batch": 0})
    texts = [file.read_text(encoding="utf-8") for file in sorted((catching.exchange.root / topic).glob("*.arrow"))]
    assert (texts, catching.exchange.waited_for()) == (["rows", "more"], set())
