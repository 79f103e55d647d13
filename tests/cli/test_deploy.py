"""``headgate profile`` and ``headgate deploy`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.documents import parse
from headgate.model.cluster.alternate_cost import AlternateCost, Origin
from headgate.model.cluster.observation import Observation, SinkObservation, TaskObservation, TaskProfile
from headgate.sharing.signature import sign
from headgate.store.observations import ObservationHistory
from tests.cli.terminal import headgate

FLOW = """
name: line
tasks:
  - {id: in, type: rate}
  - {id: work, type: filter, cost_s: 0.001, selectivity: 0.5, config: {where: value > 0}, inputs: [in]}
  - {id: out, type: write_console, inputs: [work]}
"""


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "line.yaml"
    path.write_text(FLOW)
    return path


def test_profiles_have_origins_and_are_read_back(flow: Path) -> None:
    facts = json.loads(headgate("profile", str(flow), "--json", "--out", "p.json").out)
    work = next(one for one in facts["profiles"] if one["task"] == "work")
    assert (work["cpu_s"], work["origins"]["cpu_s"], work["selectivity"]) == (0.001, "declared", {"out": 0.5})
    assert work["origins"]["transfer_s"] == "default"
    document = json.loads(Path("p.json").read_text())
    document["profiles"][1]["cpu_s"] = 0.002
    Path("p.json").write_text(json.dumps(document))
    again = json.loads(headgate("profile", str(flow), "--profiles", "p.json", "--json").out)
    work = next(one for one in again["profiles"] if one["task"] == "work")
    assert (work["cpu_s"], work["origins"]["cpu_s"]) == (0.002, "given")


def test_a_dry_run_plans_and_measures_nothing(flow: Path) -> None:
    facts = json.loads(headgate("deploy", str(flow), "--rate", "3000", "--latency", "1s", "--dry-run", "--json").out)
    assert facts["reached"] is None
    assert facts["iterations"] == []
    work = next(one for one in facts["instances"] if one["task"] == "work")
    # 3,000 rows of a millisecond fill three cores; with 90 % of them used, four instances.
    assert (work["bound"], work["instances"]) == ("CPU", 4)
    assert facts["price_per_h"] == pytest.approx(0.24)
    assert sum(site["cpu"] for site in facts["sites"]) >= 3.0


def test_a_simulated_deployment_reaches_its_target(flow: Path) -> None:
    ran = headgate("deploy", str(flow), "--rate", "3000", "--latency", "1s", "--simulate", "--plot", "d.svg")
    assert ran.status == 0
    assert "Reached: " in ran.out
    assert "Not enforced: everything: it was measured in a simulated cloud." in ran.out
    assert Path("d.svg").read_text().startswith("<?xml")


def test_a_target_that_is_not_reached_is_status_2(flow: Path) -> None:
    ran = headgate("deploy", str(flow), "--rate", "9000", "--latency", "1s", "--simulate", "--budget", "0.30/h")
    assert ran.status == 2
    assert "budget is 0.30" in ran.out


def test_room_on_machines_that_are_there_is_used_first(flow: Path) -> None:
    headgate("deploy", str(flow), "--rate", "500", "--latency", "1s", "--dry-run", "--out", "first.json")
    asked = ("deploy", str(flow), "--rate", "500", "--latency", "1s", "--dry-run", "--json", "--beside", "first.json")
    facts = json.loads(headgate(*asked).out)
    (site,) = facts["sites"]
    assert site["name"] == "m1"
    assert site["others_cpu"] == pytest.approx(site["cpu"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rate", "no=5"], "a rate is given for 'no', which is no source"),
        (["--rate", "100", "--budget", "much"], "--budget is 'much'; expected an amount per hour"),
        (["--rate", "100", "--alpha", "0"], "alpha is 0"),
        (["--rate", "100", "--fill", "2"], "fill is 2"),
        (["--rate", "100", "--packer", "metix"], "unknown packer 'metix'"),
        (["--rate", "100", "--beside", "line.yaml"], "line.yaml is no deployment"),
        (["--rate", "100", "--profiles", "bad.yaml"], "cpu_s"),
        (["--rate", "100", "--simulate"], "--dry-run measures nothing"),
        (["--rate", "100000", "--machines", "2"], "2 machines do not hold all instances"),
    ],
)
def test_bad_requests_are_sentences(flow: Path, options: list[str], message: str) -> None:
    Path("bad.yaml").write_text("profiles: [{task: work, cpu_s: -1}]")
    ran = headgate("deploy", str(flow), "--latency", "1s", "--dry-run", *options)
    assert ran.status == 2
    assert message in ran.err


def test_profiles_of_a_name_that_nobody_knows(flow: Path) -> None:
    ran = headgate("profile", "nobody")
    assert ran.status == 2
    assert "headgate:" in ran.err


def _recorded(state: Path) -> None:
    """An engine's recordings of the dataflow: the task ``work`` measured at two rates."""
    flow = parse(FLOW, "yaml").dataflow
    named = {str(name): signature for name, signature in sign(flow).items()}
    state.mkdir()
    (state / "version").write_text("1")
    history = ObservationHistory(state / "observations")
    for number, rows in enumerate((500, 1_000), start=1):
        profile = TaskProfile(rows, 0.002, 0.005, 1e-6, 2**20, None)
        work = TaskObservation(
            named["work"], "work", "filter", "filter", ("line",), None, rows, rows // 4, profile=profile
        )  # fmt: skip
        sink = SinkObservation(named["out"], "out", ("line",), rows // 4, None, inputs=(named["work"],))
        cost = AlternateCost(named["work"], "filter", 0.002, Origin.MEASURED, wait_s=0.003)
        history.append(Observation(1_000.0 + 5 * number, 5.0, (work,), (sink,), costs=(cost,)))


def test_profiles_of_what_an_engine_has_recorded(flow: Path) -> None:
    _recorded(Path(".headgate"))
    ran = headgate("profile", "line", "--json", "--plot", "costs.svg")
    assert ran.status == 0, ran.err
    by_name = json.loads(ran.out)
    (work,) = by_name["profiles"]
    assert (work["cpu_s"], work["sojourn_s"], work["origins"]["cpu_s"]) == (0.002, 0.005, "measured")
    assert work["selectivity"] == {"out": 0.25}
    assert "rows/s" in Path("costs.svg").read_text()
    by_file = json.loads(headgate("profile", str(flow), "--json").out)
    again = next(one for one in by_file["profiles"] if one["task"] == "work")
    assert (again["cpu_s"], again["sojourn_s"], again["selectivity"]) == (0.002, 0.005, {"out": 0.25})
    assert again["origins"]["transfer_s"] == "measured"
    planned = json.loads(headgate("deploy", str(flow), "--rate", "900", "--latency", "1s", "--dry-run", "--json").out)
    bound = next(one for one in planned["instances"] if one["task"] == "work")
    # 900 rows of 5 ms hold four and a half instances; 90 % of their time is planned with.
    assert (bound["kind"], bound["instances"]) == ("sojourn-bound", 5)
