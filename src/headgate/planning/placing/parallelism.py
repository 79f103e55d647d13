"""How many instances an operator needs, and which bound decides: CPU, transfer, time, memory, or a machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, isfinite

from headgate.errors import BadValue, Infeasible, counted
from headgate.model.cluster.vm_class import VmClass
from headgate.planning.placing.loads import OperatorLoads
from headgate.planning.placing.profiles import OperatorProfile

__all__ = ["Bound", "InstanceLimits", "Parallelism", "parallelism_of"]

SLACK = 1e-9
INSTANCES_MAX = 10_000
"""Of a plan: ten times what is known to be packed in a second."""


class Bound(StrEnum):
    """What keeps an instance from taking more rows; the first four are the kinds of operators of P-DEPLOY."""

    CPU = "CPU"
    IO = "I/O"
    SOJOURN = "sojourn"
    MEMORY = "memory"
    MACHINE = "machine"
    """No machine holds the share of fewer instances. Ours: the paper's instances always fit."""


@dataclass(frozen=True, slots=True)
class InstanceLimits:
    """What one instance may use; the defaults are those of the paper (Table 4)."""

    alpha: float = 0.1
    """Cores for transfer; the paper's 10 points."""

    beta_bytes: float = 512 * 2.0**20
    """Memory."""

    fill: float = 1.0
    """Share of an instance's time, and of a machine's CPU, that a plan uses; the rest is for what varies."""

    grain: float = 1.0
    """Share of a core that an instance's rows may take; ours. Below 1 there are more, smaller instances."""

    def __post_init__(self) -> None:
        for name in ("alpha", "beta_bytes"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise BadValue(f"{name.removesuffix('_bytes')} is {getattr(self, name):g}", "a number above 0")
        for name in ("fill", "grain"):
            if not 0 < getattr(self, name) <= 1:
                raise BadValue(f"{name} is {getattr(self, name):g}", "a share above 0 and at most 1")


@dataclass(frozen=True, slots=True)
class Parallelism:
    """The instances of an operator, the bound that decides, and what each bound asks for, not rounded."""

    task: str
    instances: int
    bound: Bound
    kind: Bound
    """Of the paper's four kinds: that whose bound asks for most."""

    asked: Mapping[Bound, float]


def parallelism_of(
    loads: OperatorLoads, classes: Sequence[VmClass], limits: InstanceLimits | None = None
) -> tuple[Parallelism, ...]:
    r"""The fewest instances with which each operator keeps up.

    .. math:: P = \max\left(\lceil S c_p \rceil, \lceil S c_t / \alpha \rceil,
              \lceil S t_{soj} \rceil, \lceil S m / \beta \rceil\right)

    with seconds of a core of the slowest class. The paper takes the bound of the operator's kind; the largest of all
    four is never less, and right where an operator is of two kinds. A further bound keeps an instance small enough
    for the largest machine, with all that it sends and receives. Raises :class:`Infeasible` where an operator would
    need more instances than it can have.

    Reference: P-DEPLOY, section 5.2.
    """
    limits = limits or InstanceLimits()
    answers = tuple(_of_one(loads, place, classes, limits) for place in range(len(loads.profiles)))
    total = sum(each.instances for each in answers)
    if total > INSTANCES_MAX:
        most = max(answers, key=lambda each: each.instances)
        message = (
            f"{total:,} instances would be needed, {most.instances:,} of them of '{most.task}' ({most.bound}-bound)"
        )
        raise Infeasible("TOO_MANY_INSTANCES", f"{message}; at most {INSTANCES_MAX:,} are planned: lower the rate")
    return answers


def _of_one(loads: OperatorLoads, place: int, classes: Sequence[VmClass], limits: InstanceLimits) -> Parallelism:
    profile, rows = loads.profiles[place], float(loads.in_per_s[place])
    passing = rows + float(loads.out_per_s[place])
    power = min(each.core_power for each in classes)
    cpu_s, held_s = profile.cpu_s.value / power, profile.sojourn_s.value
    # Work takes longer on a slow core, waiting does not.
    held_s = cpu_s + max(held_s - profile.cpu_s.value, 0.0)
    memory = passing * profile.memory_bytes.value
    asked = {
        Bound.CPU: rows * cpu_s / (limits.fill * limits.grain),
        Bound.IO: rows * profile.transfer_s.value / power / limits.alpha,
        Bound.SOJOURN: rows * held_s / limits.fill if held_s > cpu_s * (1 + SLACK) else 0.0,
        Bound.MEMORY: memory / limits.beta_bytes,
    }
    kind = max(asked, key=lambda bound: asked[bound])
    sent = loads.inside_per_s[place] + loads.out_per_s[place]
    work = rows * profile.cpu_s.value + float(sent) * profile.transfer_s.value
    asked[Bound.MACHINE] = min(_machines_filled(each, work, memory, profile, limits) for each in classes)
    bound = max(asked, key=lambda each: asked[each])
    instances = max(1, ceil(asked[bound] - SLACK))
    if profile.instances_max is not None and instances > profile.instances_max:
        most = profile.instances_max
        rate = rows * most / asked[bound]
        message = f"'{profile.task}' would need {instances} instances for {rows:,.6g} rows/s ({bound}-bound)"
        raise Infeasible(
            "TOO_SLOW_ALONE",
            f"{message} and can have {counted(most, 'instance')}, which does {rate:,.4g} rows/s; make a row cost less "
            f"(now {profile.cpu_s.value:.3g} s of CPU, {profile.sojourn_s.value:.3g} s of time), or lower the rate",
        )
    return Parallelism(profile.task, instances, bound, kind, asked)


def _machines_filled(
    each: VmClass, work: float, memory: float, profile: OperatorProfile, limits: InstanceLimits
) -> float:
    """How many machines of a class an operator would fill if nothing else were on them and all its rows crossed."""
    filled = work / (each.power * limits.fill)
    if not each.memory_bytes:
        return filled
    room = each.memory_bytes - profile.instance_bytes.value
    if room <= 0:
        message = f"an instance of '{profile.task}' takes {profile.instance_bytes.value / 2**20:,.0f} MiB"
        raise Infeasible("NO_MEMORY", f"{message}, more than a machine of class '{each.name}' has")
    return max(filled, memory / room)
