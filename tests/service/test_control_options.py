"""What a file of settings says about deciding, as a controller gets it."""

from __future__ import annotations

import pytest

from headgate.adaptation.controller.live_policies import live_policy
from headgate.adaptation.policies.pooled_target import PooledTarget
from headgate.documents.project_tables import ControlTable
from headgate.errors import InputError
from headgate.service.control import control_options


def test_settings_of_policies_and_guard_rails_are_those_of_the_file() -> None:
    table = ControlTable(
        horizon="10min", forecaster="holt", reallocate_after="5s", freeze="2min", season="1h", catch_up="20s"
    )
    options = control_options(table, "lookahead", "auto")
    assert options.policy_settings == {
        "catch_up_s": 20.0,
        "forecaster": "holt",
        "horizon_s": 600.0,
        "reallocation_interval_s": 5.0,
        "season_s": 3_600.0,
    }
    assert options.rails.freeze_s == 120.0
    assert live_policy("threshold", options.policy_settings) == PooledTarget(catch_up_s=20.0)
    assert live_policy("threshold") == PooledTarget(catch_up_s=120.0), "as before there was a setting"


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (ControlTable(forecaster="crystal"), "crystal"),
        (ControlTable(forecaster="oracle:0.1"), "only simulations have oracles"),
        (ControlTable(window="100d"), "window_s"),
    ],
)
def test_what_makes_no_sense_is_refused(table: ControlTable, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        control_options(table)
