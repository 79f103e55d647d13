"""What people come to the console for, in a real browser with a live engine behind.

With ``HEADGATE_PICTURES=1`` the pictures in the documentation are made anew.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from headgate.runtime.isolation.dead_letters import read_letters
from headgate.service.what_if import WhatIf, replay_past, what_if_facts
from tests.console.city import COMFORT, FROST, MENDED, City
from tests.console.visitor import Visitor, visiting
from tests.runtime.small import wait_for

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def somebody(browser: Browser, city: City) -> Iterator[Visitor]:
    with visiting(browser, city) as visitor:
        yield visitor


def test_sign_in_with_a_token(browser: Browser, city: City) -> None:
    context = browser.new_context()
    page = context.new_page()
    visitor = Visitor(page, city.url)
    visitor.expected = (401,)
    visitor.goes_to("/overview?team=records")
    token = visitor.finds("textbox", "Token")
    token.fill("hg_wrong")
    visitor.finds("button", "Sign in").click()
    visitor.finds("alert", "")
    visitor.checks("sign-in")
    token.fill(city.token)
    visitor.finds("button", "Sign in").click()
    visitor.finds("link", "archive", exact=True)
    assert visitor.query() == "team=records", "where somebody wanted to go is not lost"
    assert page.locator("tbody tr").count() == 1
    context.close()


def test_find_what_holds_others_up(somebody: Visitor) -> None:
    """The overview says it in words; the filter, the order and the rows work by keyboard, and stay in the address."""
    somebody.goes_to("/")
    somebody.finds("link", "alarms", exact=True)
    somebody.waits_until("document.querySelector('#bottleneck')?.innerText.match(/keeps up|bottleneck/)")
    somebody.waits_until(FLOWS, timeout_s=240.0)
    somebody.page.reload()
    somebody.waits_until("document.querySelectorAll('.spark path[d*=L]').length > 3")
    somebody.checks("overview")
    keys = somebody.page.keyboard
    keys.press("/")
    keys.type("env")
    somebody.waits_until("document.querySelectorAll('tbody tr').length === 2")
    keys.press("Escape")
    somebody.finds("button", "Waiting").click()
    assert somebody.query() == "q=env&sort=waiting-down"
    somebody.page.reload()
    somebody.finds("link", "quality", exact=True)
    assert somebody.page.locator("tbody tr").count() == 2, "the address has the filter"
    keys.press("j")
    keys.press("Enter")
    somebody.finds("button", "alarms.read")
    assert somebody.path() == "/graph"
    keys.press("g")
    keys.press("o")
    somebody.finds("heading", "Overview")
    keys.press("?")
    somebody.finds("heading", "Keys")
    keys.press("Escape")
    before = somebody.sees("measured").inner_text()
    keys.press("t")
    somebody.waits_until("text => !document.querySelector('.filters .note').innerText.includes(text)", arg="CE")
    assert "CE" in before, "the zone is always there"
    assert somebody.faults == []


FLOWS = """async () => {
  const seen = await (await fetch('/v1/overview')).json();
  const flow = name => seen.dataflows.find(one => one.name === name);
  return ['alarms', 'map', 'archive', 'comfort'].every(name => flow(name).in_per_s > 0 && flow(name).p99_s !== null)
    && seen.dataflows.every(one => !['degraded', 'catching up'].includes(one.state));
}"""
"""Rows have reached everybody. On a machine with other work, Spark's workers may need some attempts to start."""


def test_see_who_shares_a_task_and_do_it_another_way(somebody: Visitor, city: City) -> None:
    somebody.goes_to("/graph")
    node = somebody.finds("button", "alarms.smooth")
    somebody.waits_until("document.querySelector('.node .rate')?.textContent.endsWith('/s')")
    valid = somebody.finds("button", "alarms.valid").get_attribute("aria-label") or ""
    assert "used by alarms, archive, comfort, map" in valid
    node.focus()
    somebody.page.keyboard.press("Enter")
    somebody.finds("heading", "alarms.smooth")
    somebody.page.wait_for_selector(".chart canvas")
    somebody.checks("graph")
    somebody.finds("button", "Use moving_average").click()
    somebody.sees("no policy changes it until it is released")
    status = city.engine.plan.tasks[city.signature("alarms", "smooth")]
    assert status.alternate.name == "moving_average", "the engine does it so"
    somebody.finds("button", "Release it").click()
    somebody.waits_until("!document.querySelector('.panel').innerText.includes('Release it')")
    somebody.goes_to("/graph?select=map&at=2")
    somebody.finds("button", "map.tiles")
    assert somebody.page.get_by_role("button", name="comfort").count() == 0, "it came later"
    slider = somebody.finds("slider", "Plan snapshot")
    assert "submit map" in (slider.get_attribute("aria-valuetext") or "")
    somebody.goes_to("/graph?level=teams")
    somebody.page.wait_for_selector(".node-group")
    total = somebody.page.evaluate("fetch('/v1/graph?level=teams').then(r => r.json())")
    assert sum(node["tasks"] for node in total["nodes"]) == total["running"]
    somebody.expected = (404,)
    somebody.goes_to("/graph?select=alrams")
    somebody.sees("did you mean 'alarms'")
    assert somebody.faults == []


def test_look_at_a_plan_and_submit_it(somebody: Visitor, city: City) -> None:
    somebody.expected = (422,)
    somebody.goes_to("/plan")
    text = somebody.finds("textbox", "Dataflow")
    text.fill(FROST.replace("type: filter", "type: fliter"))
    somebody.finds("button", "Preview").click()
    line = next(n for n, one in enumerate(FROST.splitlines(), 1) if "type: filter" in one)
    somebody.sees(f"line {line}")
    somebody.sees("Did you mean filter?")
    text.fill(FROST)
    somebody.finds("button", "Preview").click()
    somebody.sees("60%")
    rows = somebody.finds("region", "Tasks of the preview").locator("tbody tr").all_inner_texts()
    assert [row.split("\t")[2] for row in rows] == ["reused", "reused", "reused", "new", "new"]
    somebody.checks("plan")
    planned = _money(somebody, "Bills before and after", "frost", 2)
    somebody.finds("button", "Submit frost").click()
    somebody.sees("frost runs with plan snapshot")
    assert "frost" in city.engine.shared.running
    somebody.finds("link", "Show it in the graph").click()
    somebody.finds("button", "frost.crews")
    somebody.goes_to("/overview")
    somebody.finds("link", "frost", exact=True)
    # While it catches up, it pays for that too.
    wait_for(lambda: not city.engine.snapshot.catch_ups, "what had passed")
    wait_for(lambda: _paid(somebody, "frost") == pytest.approx(float(planned), abs=1e-4), "the cost of the preview")
    assert somebody.faults == []


def _paid(somebody: Visitor, dataflow: str) -> float:
    overview = somebody.page.evaluate("fetch('/v1/overview').then(r => r.json())")
    return float(next(row["cost_per_h"] for row in overview["dataflows"] if row["name"] == dataflow))


def test_follow_a_bill_to_its_tasks(somebody: Visitor) -> None:
    somebody.goes_to("/bills")
    somebody.sees("that is what the machines cost")
    somebody.finds("link", "alarms", exact=True).click()
    somebody.finds("heading", "alarms: what it pays for")
    somebody.sees("as on the bill")
    somebody.checks("bills")
    answer = somebody.page.evaluate("fetch('/v1/bill/dataflows/alarms').then(r => r.json())")
    assert sum(Decimal(line["cost"]) for line in answer["lines"]) == Decimal(answer["total"])
    sharers = {line["task"]: len(line["sharers"]) for line in answer["lines"]}
    assert sharers["smooth"] == 1
    assert max(len(line["sharers"]) for line in answer["lines"] if line["task"] == "parse") >= 5
    assert somebody.query() == "open=alarms"


def test_see_who_is_late(somebody: Visitor) -> None:
    somebody.goes_to("/levels?open=comfort")
    somebody.finds("heading", "comfort: the last hour")
    somebody.page.wait_for_selector(".chart canvas")
    somebody.checks("levels")
    ink = "canvas => [...new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data)].length"
    assert somebody.page.locator(".chart canvas").first.evaluate(ink) > 10, "something is drawn"
    somebody.waits_until(HAS_COLOUR, arg="82,96,109")
    somebody.page.emulate_media(color_scheme="dark")
    somebody.waits_until(HAS_COLOUR, arg="163,177,191")
    assert somebody.faults == []


HAS_COLOUR = """colour => {
  const canvas = document.querySelector('.chart canvas');
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  for (let at = 0; at < data.length; at += 4)
    if (data[at + 3] === 255 && `${data[at]},${data[at + 1]},${data[at + 2]}` === colour) return true;
  return false;
}"""
"""Canvas does not follow the scheme by itself: axes must be drawn anew, in the ink of the other one."""


def test_see_why_rows_failed(somebody: Visitor, city: City) -> None:
    somebody.goes_to("/letters")
    somebody.finds("heading", "comfort.index")
    somebody.sees("DIVIDE_BY_ZERO")
    somebody.checks("letters")
    (cause,) = somebody.page.evaluate("fetch('/v1/dead-letters/causes').then(r => r.json())")["causes"]
    files = (city.folder / "data" / "city").glob("*.jsonl")
    rows = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    dustless = [row for row in rows if row["dust"] < 1 and (row["temperature"] or 0) < 50]
    assert 0 < cause["rows"] <= len(dustless)
    given = {(row["sensor"], row["humidity"]) for row in dustless}
    assert {(one["record"]["sensor"], one["record"]["humidity"]) for one in cause["samples"]} <= given
    assert "div cast(dust as int)" in COMFORT


def test_see_what_runs_on_the_machines(somebody: Visitor) -> None:
    somebody.goes_to("/machines")
    somebody.finds("heading", "Fragments")
    somebody.page.wait_for_selector(".heat rect")
    somebody.checks("machines")
    view = somebody.page.evaluate("fetch('/v1/usage').then(r => r.json())")
    assert somebody.finds("region", "Fragments").locator("tbody tr").count() == len(view["fragments"])


def test_mend_a_dataflow_and_offer_its_rows_again(somebody: Visitor, city: City) -> None:
    """What failed before is at the sink afterwards, each row once."""
    somebody.goes_to("/plan")
    somebody.finds("textbox", "Dataflow").fill(MENDED)
    somebody.finds("checkbox", "replace the one of this name").check()
    somebody.finds("button", "Preview").click()
    somebody.finds("button", "Replace comfort").click()
    somebody.sees("comfort runs with plan snapshot")
    failed = [json.loads(one.record) for one in read_letters(city.engine.state.path)]
    assert failed
    somebody.goes_to("/letters")
    somebody.finds("button", f"Offer {len(failed)} row").click()
    somebody.sees("none failed")
    somebody.checks("letters-redriven")
    somebody.sees("No dead letters")
    assert list(read_letters(city.engine.state.path)) == []
    files = (city.folder / "out/comfort").glob("*.json")
    rows = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    arrived = Counter((*_reading(row), round(row["comfort"], 6)) for row in rows if "comfort" in row)
    wanted = Counter((*_reading(row), round(row["temperature"] - 100, 6)) for row in failed if row["temperature"])
    assert wanted
    assert {key: arrived[key] for key in wanted} == dict(wanted)
    entries = somebody.page.evaluate("fetch('/v1/audit?limit=1000').then(r => r.json())")["entries"]
    assert ["redrive", ["comfort.index"], "ana"] in [[e["action"], e["objects"], e["principal"]] for e in entries]


def _reading(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in ("sensor", "district", "temperature", "humidity", "dust"))


def test_read_why_something_was_decided_and_undo_it(somebody: Visitor, city: City) -> None:
    """Somebody has made a task do the lesser thing; a policy sees that there are cores to spare."""
    city.engine.switch("alarms", "smooth", "moving_average")
    city.engine.release_task("alarms", "smooth")
    somebody.goes_to("/decisions")
    somebody.sees("does nothing")
    somebody.finds("combobox", "Mode").select_option("auto")
    somebody.sees("does what it decides")
    somebody.waits_until(IS_DECIDED, timeout_s=240.0)
    somebody.finds("link", "1", exact=True).click()
    somebody.finds("heading", "Decision 1: why")
    somebody.finds("region", "What it saw")
    somebody.checks("decisions")
    somebody.finds("combobox", "Mode").select_option("off")
    somebody.finds("button", "Undo it: alarms.smooth by moving_average").click()
    somebody.sees("no policy changes that")
    assert city.engine.plan.tasks[city.signature("alarms", "smooth")].alternate.name == "moving_average"
    somebody.finds("button", "Let policies choose again").click()
    somebody.finds("button", "Undo it: alarms.smooth by moving_average")
    assert somebody.faults == []


IS_DECIDED = """async () => {
  const seen = await (await fetch('/v1/decisions')).json();
  return seen.decisions.length > 0 && seen.decisions[0].outcome === 'done';
}"""


def test_ask_what_would_have_been(somebody: Visitor, city: City) -> None:
    """The answer on the page is what the command computes of the same past."""
    somebody.goes_to("/what-if?policies=static-peak,ds2&rates=2")
    somebody.waits_until("fetch('/v1/observations?limit=100').then(r => r.json()).then(o => o.observations.length > 8)")
    assert somebody.finds("checkbox", "ds2").is_checked()
    somebody.finds("button", "Replay it").click()
    table = somebody.finds("region", "What would have been")
    assert [row.split("\t")[0] for row in table.locator("tbody tr").all_inner_texts()] == [
        "as measured",
        "as it was, simulated",
        "static-peak",
        "ds2",
    ]
    somebody.page.wait_for_selector(".chart canvas")
    somebody.checks("what-if")
    operation = somebody.page.evaluate("fetch('/v1/operations').then(r => r.json())")["operations"][0]
    answer = somebody.page.evaluate(f"fetch('/v1/operations/{operation['id']}').then(r => r.json())")["result"]
    asked = WhatIf(**{**operation["question"], "policies": ("static-peak", "ds2")})
    computed = what_if_facts(replay_past(city.engine.state.path, asked))
    assert answer["since"] == computed["since"]
    for row, run in zip(table.locator("tbody tr").all()[1:], answer["runs"], strict=True):
        assert row.locator("td").first.inner_text() == f"${run['cost']:.4f}"
    somebody.finds("button", "Make ds2 the policy").click()
    somebody.sees("it decides now")
    assert somebody.faults == []


def test_the_page_follows_events_also_when_the_service_comes_back(somebody: Visitor, city: City) -> None:
    asked: list[str] = []
    somebody.page.on("request", lambda request: asked.append(request.url.removeprefix(city.url)))
    somebody.goes_to("/overview")
    row = somebody.page.locator("tbody tr", has=somebody.page.get_by_role("link", name="map", exact=True))
    row.get_by_text("running").wait_for()
    city.engine.pause("map")
    row.get_by_text("paused").wait_for(timeout=8_000)
    somebody.faults = []
    city.restarts()
    city.engine.resume("map")
    row.get_by_text("running").wait_for(timeout=20_000)
    streams = [one for one in asked if one.startswith("/v1/events")]
    assert len(streams) >= 2
    assert all("after=" in one or one == "/v1/events" for one in streams)
    assert {fault for fault in somebody.faults if "foreign" in fault} == set()


@pytest.mark.parametrize(
    "address", ["/overview", "/graph?node=alarms.smooth", "/plan", "/bills", "/levels", "/letters", "/what-if"]
)
def test_a_phone_shows_every_page(browser: Browser, city: City, address: str) -> None:
    with visiting(browser, city, 390, 800) as visitor:
        visitor.goes_to(address)
        visitor.page.wait_for_selector("main table, main textarea, main form, main .empty")
        wide = visitor.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, "only tables and pictures scroll sideways"
        assert visitor.faults == []


def _money(somebody: Visitor, region: str, row: str, column: int) -> str:
    cells = somebody.finds("region", region).get_by_role("row", name=row).locator("th, td").all_inner_texts()
    return cells[column].strip("$")
