"""Commands that show and steer a controller, over a real socket, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.api.application import application
from headgate.api.client import EngineClient
from headgate.api.server import serving
from headgate.service.control import ControlLoop
from headgate.service.serve import ServedEngine
from headgate.tasks.registry import default_registry
from tests.api.fake import FakeEngine
from tests.api.fake_control import FakeScaledEngine, fake_control
from tests.cli.terminal import headgate


@pytest.fixture
def loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlLoop]:
    """A controller that has lived through a rush: small machines, and an alternate that was switched."""
    monkeypatch.chdir(tmp_path)
    state = tmp_path / ".headgate"
    state.mkdir()
    control = fake_control(tmp_path)
    with serving(state, application(ServedEngine(FakeEngine(state), default_registry(), control=control))):
        yield control


def test_what_decides_is_shown_and_chosen_and_all_else_stays(loop: ControlLoop) -> None:
    assert headgate("policy", "--json").json["mode"] == "auto"
    assert headgate("policy", "--max-machines", "3", "--budget", "0.4").status == 0
    chosen = headgate("policy", "--mode", "recommend", "--json").json
    assert (chosen["mode"], chosen["machines_max"], chosen["budget_per_h"]) == ("recommend", 3, "0.4")
    assert chosen["by"]
    assert headgate("policy", "--max-machines", "none", "--json").json["machines_max"] is None
    assert loop.controller.choice.rails.machines_max is None
    assert "reference cores are needed" in headgate("policy").out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("policy", "thresold"), "no policy 'thresold' decides for engines"),
        (("policy", "--budget", "much"), "--budget is 'much': expected an amount such as 0.40, or none"),
        (("policy", "--max-machines", "0"), "expected a whole number from 1 on, or none"),
        (("decisions", "--since", "soon"), "--since 'soon' is not a span of time"),
        (("why", "99"), "there is no decision 99: the last one is"),
        (("machines", "acquire", "smal"), "no VM class 'smal' is known"),
        (("machines", "release", "small-99"), "no machine 'small-99' runs"),
    ],
)
def test_what_makes_no_sense_is_refused(loop: ControlLoop, arguments: tuple[str, ...], sentence: str) -> None:
    before, asked = loop.controller.choice, list(loop.engine.world.fake.asked)  # type: ignore[attr-defined]
    ran = headgate(*arguments)
    assert (ran.status, sentence in ran.said) == (2, True), ran.said
    assert loop.controller.choice == before
    assert loop.engine.world.fake.asked == asked  # type: ignore[attr-defined]


def test_decisions_and_why_are_what_the_api_answers(loop: ControlLoop) -> None:
    with EngineClient(Path(".headgate")) as client:
        assert headgate("decisions", "--json").json == client.decisions()
        assert headgate("why", "1", "--json").json == client.why(1)
    assert headgate("decisions", "--since", "1h", "--json").json == {"decisions": []}
    shown = headgate("decisions").out
    assert "above the band" in shown
    assert "acquire a small" in shown
    told = headgate("why", "1", "--again").out
    for text in ("smooth by quick", "above 85%", "wait for", "Made again from its record, it comes to the same."):
        assert text in told, told


def test_machines_say_which_decision_asked_for_them_and_change_by_hand(loop: ControlLoop) -> None:
    machines = headgate("machines", "--json").json["machines"]
    assert machines[0]["decision"] is None
    assert {each["decision"] for each in machines[1:]} == {1}
    assert "executors with 1 cores take work" in headgate("machines").out
    got = headgate("machines", "acquire", "large", "--json").json
    assert got["state"] == "starting"
    assert headgate("machines", "release", got["name"]).status == 0
    assert headgate("scale", "3").status == 0
    engine = loop.engine
    assert isinstance(engine, FakeScaledEngine)
    assert engine.executors == 3


def test_an_engine_without_a_controller_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".headgate").mkdir()
    served = ServedEngine(FakeEngine(tmp_path / ".headgate"), default_registry())
    with serving(tmp_path / ".headgate", application(served)):
        ran = headgate("policy")
    assert (ran.status, "has no controller" in ran.said) == (2, True)
