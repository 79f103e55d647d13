"""The bill of a provider's machines is what a judge makes of their life cycle and of what was acknowledged."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.machines.provider import MachineState
from headgate.runtime.engine.engine import Engine
from headgate.service.bill import bill, bill_span
from tests.judge.profit import Machine, core_hours, machine_bill
from tests.machines.fake_provider import FakeProvider
from tests.runtime.small import files, flow, memory, numbered, put, wait_for

pytestmark = pytest.mark.spark


def machines_of(record: Path) -> list[Machine]:
    """As the provider's own record has them."""
    machines: dict[str, Machine] = {}
    for event in map(json.loads, record.read_text().splitlines()):
        if event["event"] == "acquired":
            kind = event["vm_class"]
            price = Fraction(kind["price_per_h"])
            machines[event["machine"]] = Machine(event["machine"], kind["cores"], price, event["at"])
        elif event["event"] == "released":
            machines[event["machine"]].gone = event["at"]
    return list(machines.values())


def test_money_is_exact(spark: SparkSession, tmp_path: Path) -> None:
    provider, state = FakeProvider(tmp_path, time.time, drain_s=0.0), tmp_path / "state"
    for name in ("small", "large"):
        provider.acquire(name)
    put(tmp_path / "in", "0", numbered(0, 20))
    source, where = {"id": "src", **files(tmp_path / "in")}, {"type": "filter", "config": {"where": "id > 3"}}
    usage = []
    with Engine(state, spark=spark, trigger_s=0.1, provider=provider) as engine:
        engine.submit(flow("a", source, memory("a")))
        usage.append((time.time(), [["a"], ["a"]]))
        engine.submit(flow("b", source, where, memory("b")))
        usage.append((time.time(), [["a", "b"], ["a"], ["b"], ["b"]]))
        engine.wait_until_idle()
        began = time.time()
        wait_for(lambda: time.time() > began + 3.0, "some seconds of use")
        provider.release("small-1")
        wait_for(lambda: provider.list(gone=True)[0].state is MachineState.RELEASED, "it is gone")
        observed = time.time()
        wait_for(lambda: time.time() > observed + 2.0, "use without it")
    for period_s in (1.0, 3_600.0):
        drawn = bill(state, bill_span(period_s=period_s))
        machines = machines_of(tmp_path / "acquisitions.jsonl")
        assert [machine.gone is None for machine in machines] == [False, True]
        ended = drawn.end.timestamp()
        whole, lines = machine_bill(machines, usage, {"period_s": period_s, "least_s": 0}, ended)
        assert drawn.total == round(whole / Fraction(1, 10_000)) * Decimal("0.0001")
        assert drawn.total == sum((line.cost for line in drawn.lines), drawn.idle)
        # Usage is known by the second.
        a_second = sum(machine.price_per_h for machine in machines) / 3_600
        for line in drawn.lines:
            assert abs(Fraction(line.cost) - lines[line.dataflow]) <= 3 * a_second + Fraction(1, 10_000)
        assert core_hours(machines, machines[0].acquired, ended) > 0
    assert drawn.unused > Decimal("0.04"), "most of an hour at 0.05 is paid, and not used"
