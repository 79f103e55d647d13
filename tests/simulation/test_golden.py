"""With a pool of its own for each task, the simulator does what it did when the runs were recorded, to the last bit."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.golden import figures, replayed, stored


@pytest.mark.parametrize("world", [pytest.param(each, id=f"{n}-{each['by']}") for n, each in enumerate(stored())])
def test_a_recorded_run_comes_out_the_same_to_the_last_bit(world: dict[str, Any]) -> None:
    assert figures(replayed(world)) == world["figures"]
