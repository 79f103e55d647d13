"""Small deployments for tests of the loop."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from headgate.adaptation.deploying.correcting import Knowledge
from headgate.adaptation.deploying.loop import Deploying
from headgate.model.cluster.alternate_cost import Origin
from headgate.model.cluster.vm_class import Cloud, VmClass
from headgate.planning.known_figures import Figure
from headgate.planning.placing.deployment_plan import DeployOptions, DeployTarget
from headgate.planning.placing.loads import OperatorLoads
from headgate.planning.placing.profiles import OperatorProfile

CLOUD = Cloud("test", (VmClass("two", 2, 1.0, 1_000.0, Decimal("0.12"), memory_bytes=4 * 2**30),))


def given(value: float) -> Figure:
    return Figure(value, Origin.GIVEN)


def operator(name: str, cpu_s: float, transfer_s: float = 2e-5, wait_s: float = 0.0, **more: Any) -> OperatorProfile:
    return OperatorProfile(name, name, given(cpu_s), given(cpu_s + wait_s), given(transfer_s), **more)


LINE = {one.task: one for one in (operator("in", 2e-5), operator("work", 1e-3), operator("out", 1e-5))}
STREAMS = [("in", "work"), ("work", "out")]


def line_of(
    rate: float = 2_000.0, latency_s: float = 0.5, profiles: Mapping[str, OperatorProfile] = LINE, **limits: Any
) -> Deploying:
    """The loop for three operators in a row."""
    target = DeployTarget({"in": rate}, latency_s, **limits)
    return Deploying(
        target,
        lambda known: OperatorLoads.of(STREAMS, known, {"in": rate}),
        CLOUD,
        DeployOptions(),
        Knowledge(dict(profiles)),
    )
