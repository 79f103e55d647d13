"""What a file of settings says about deciding, as a controller gets it."""

from __future__ import annotations

import pytest

from headgate.documents.project_tables import ControlTable
from headgate.errors import InputError
from headgate.service.control import control_options


def test_settings_of_policies_and_guard_rails_are_those_of_the_file() -> None:
    table = ControlTable(horizon="10min", forecaster="holt", reallocate_after="5s", freeze="2min", season="1h")
    options = control_options(table, "lookahead", "auto")
    assert options.policy_settings == {
        "forecaster": "holt",
        "horizon_s": 600.0,
        "reallocation_interval_s": 5.0,
        "season_s": 3_600.0,
    }
    assert options.rails.freeze_s == 120.0


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
