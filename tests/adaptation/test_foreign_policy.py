"""A policy from an installed package: the one that the guide *Simulating* builds."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import headgate

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guides" / "simulating.md"
ROAD = ROOT / "examples" / "simulation" / "linear_road.yaml"
SIMULATED = ("simulate", ROAD, "--rate", "random-walk:50", "--rate", "weather=0.5", "--hours", "2")


def _install(folder: Path, monkeypatch: pytest.MonkeyPatch, value: str = "evening_shift:POLICY") -> None:
    """What an installer leaves behind: the module, and metadata with the entry points of its pyproject.toml."""
    text = GUIDE.read_text(encoding="utf-8")
    (module,) = re.findall(r"^```python\n# evening_shift\.py\n(.*?)^```$", text, re.M | re.S)
    ((name, declared),) = re.findall(r'^([\w-]+) = "(evening_shift:\w+)"$', text, re.M)
    assert declared == "evening_shift:POLICY"
    (folder / "evening_shift.py").write_text(module, encoding="utf-8")
    metadata = folder / "evening_shift-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: evening-shift\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(f"[headgate.policies]\n{name} = {value}\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "evening_shift", raising=False)


def test_the_policy_of_the_guide_runs_beside_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, monkeypatch)
    ran = headgate(*SIMULATED, "--policy", "evening-shift", "--policy", "ds2", "--explain", "--json")
    assert ran.status == 0, ran.err
    theirs, ours = ran.json["policies"]
    assert theirs["policy"] == "evening-shift"
    assert theirs["omega"] >= ours["omega"]
    assert theirs["core_hours"] > 1.5 * ours["core_hours"]
    assert {each["reason"] for each in ran.json["reasons"]} == {"twice what comes in"}
    unknown = headgate(*SIMULATED, "--policy", "evening-shit")
    assert unknown.status == 2
    assert "did you mean 'evening-shift'?" in unknown.err


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("evening_shift:POLICIES", "cannot be loaded from 'evening_shift:POLICIES'"),
        ("evening_shifts:POLICY", "cannot be loaded from 'evening_shifts:POLICY'"),
        ("evening_shift:EveningShift", "is of type type; expected a headgate.adaptation.catalogue.PolicyEntry"),
    ],
)
def test_a_policy_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, reason: str
) -> None:
    _install(tmp_path, monkeypatch, value)
    assert headgate(*SIMULATED).status == 0, "others are not affected"
    ran = headgate(*SIMULATED, "--policy", "evening-shift")
    assert ran.status == 2
    assert reason in ran.err
