"""Small dataflows, clouds and deployments to simulate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from headgate import parse
from headgate.model.cluster.deployment import Deployment, Machine
from headgate.model.cluster.observation import Observation
from headgate.model.cluster.vm_class import HOURLY, BillingPeriod, Cloud, VmClass
from headgate.model.dataflow import Dataflow
from headgate.simulation.rates import Constant
from headgate.simulation.setting import Setting

OBSERVATION = TypeAdapter(Observation)


def lines_of(observations: Iterable[Observation]) -> str:
    """Observations as an engine writes them, a line each."""
    return "".join(f"{OBSERVATION.dump_json(each).decode()}\n" for each in observations)


def write_observations(path: Path, observations: Iterable[Observation]) -> None:
    path.write_text(lines_of(observations), encoding="utf-8")


def dataflow(tasks: Mapping[str, tuple[float, float]], streams: Sequence[tuple[str, str]] = ()) -> Dataflow:
    """Opaque tasks of given (cost_s, selectivity), in any shape."""
    lines = ["name: small", "tasks:"]
    for name, (cost, selectivity) in tasks.items():
        inputs = [source for source, target in streams if target == name]
        ports = (["inputs: [in]"] if inputs else []) + (
            ["outputs: [out]"] if not inputs or name in {source for source, _ in streams} else []
        )
        lines += [
            f"  - id: {name}",
            "    type: opaque",
            f"    config: {{label: {name}}}",
            f"    cost_s: {cost}",
            f"    selectivity: {selectivity}",
            f"    ports: {{{', '.join(ports)}}}",
        ]
        if inputs:
            lines.append(f"    inputs: [{', '.join(inputs)}]")
    return parse("\n".join(lines), "yaml").dataflow


def cloud(billing: BillingPeriod = HOURLY, mbit: float = 1e6, boot_s: float = 0.0, **more: Any) -> Cloud:
    small = VmClass("small", 1, 1.0, mbit, Decimal("0.06"), boot_s, **more)
    large = VmClass("large", 4, 2.0, mbit, Decimal("0.48"), boot_s, **more)
    return Cloud("little", (small, large), billing)


def each_alone(cores: Mapping[str, int]) -> Deployment:
    """Every core on a small machine of its own."""
    return Deployment(tuple(Machine("small", {task: 1}) for task, count in cores.items() for _ in range(count)))


def setting(flow: Dataflow, rate_per_s: float, **more: Any) -> Setting:
    """A setting in which every source has the same constant rate."""
    sources = [task.id for task in flow.tasks if task.id not in {stream.target for stream in flow.streams}]
    made = Setting(flow, cloud(), {source: Constant(rate_per_s) for source in sources}, intervals=30)
    return replace(made, **more)
