"""What is measured: rates of nodes, the bottleneck, the last hour of a history."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from headgate.service.console.bottleneck import bottleneck
from headgate.service.console.graph import GraphLevel
from headgate.service.console.rates import graph_rates
from headgate.service.console.recent import Recent, flow_moments
from headgate.store.observations import ObservationHistory
from tests.service.console.samples import observation, shared, signature

RUNNING = shared().running


def test_rates_belong_to_the_nodes_that_are_drawn() -> None:
    seen = observation(RUNNING, waiting=100)
    rates = graph_rates(RUNNING, [seen], snapshot=1, level=GraphLevel.TASKS)
    by_id = {node.id: node for node in rates.nodes}
    part = by_id[signature(RUNNING, "flow1", "part")]
    assert (part.in_per_s, part.cores) == (100.0, 0.1)
    assert part.share == 0.2, "five tasks cost the same"
    assert part.own_delay_s == 4.0 / 5 + 1.0, "a batch, and what waits at 100 rows a second"
    assert by_id[signature(RUNNING, "flow1", "out")].delay_s == 1.0, "measured at the sink"
    collapsed = graph_rates(RUNNING, [seen], snapshot=1, level=GraphLevel.DATAFLOWS)
    assert len(collapsed.nodes) == 4
    assert sum(node.cores or 0 for node in collapsed.nodes) == sum(node.cores or 0 for node in rates.nodes)


def test_the_bottleneck_is_where_rows_wait_longest() -> None:
    fine = bottleneck([observation(RUNNING, waiting=50)])
    assert fine.cause == "none"
    assert "keeps up" in fine.sentence
    seen = observation(RUNNING, waiting=5_000, taken=500, arrived=900)
    stuck = bottleneck([seen])
    assert (stuck.cause, stuck.growing, stuck.waiting, stuck.waiting_s) == ("cpu", True, 5_000, 50.0)
    victim = replace(seen.fragments[0], id="victim", tasks=(), rows_behind=20)
    both = bottleneck([replace(seen, fragments=(victim, *seen.fragments))])
    assert both.name == stuck.name
    idle = replace(seen.fragments[0], rows_in=0, batches=0, batch_s=0.0)
    assert bottleneck([replace(seen, fragments=(idle,))]).cause == "stalled"
    assert bottleneck([seen, replace(seen, fragments=(idle,))]).cause == "cpu", "a batch may take longer than a look"
    assert bottleneck([]).cause == "none"


def test_moments_of_dataflows() -> None:
    moments = flow_moments(observation(RUNNING, waiting=40))
    assert set(moments) == {"flow0", "flow1", "flow2"}
    one = moments["flow2"]
    assert (one.in_per_s, one.out_per_s, one.waiting, one.p50_s, one.p99_s) == (100.0, 50.0, 40, 1.0, 3.0)


def test_the_last_hour_is_there_when_a_page_opens(tmp_path: Path) -> None:
    history = ObservationHistory(tmp_path / "observations")
    now = time.time()
    seen = observation(RUNNING)
    for number in range(20):
        history.append(replace(seen, ended=now - 100 + 5 * number))
    recent = Recent(tmp_path)
    last = recent.last()
    assert last is not None
    assert last.ended == now - 5
    assert recent.flow("flow1", "in_per_s") == [100.0] * 20
    assert len(recent.times()) == 20
    assert recent.task(signature(RUNNING, "flow1", "own"), "out_per_s")[-1] == 100.0
    assert recent.flow("none", "in_per_s") == []
    other = shared(4).running
    recent._take(replace(observation(other), ended=now))
    assert recent.flow("flow3", "in_per_s") == [None] * 20 + [100.0], "it was not there before"
    assert recent.flow("flow1", "p99_s")[-1] == 3.0
