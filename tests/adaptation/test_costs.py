"""The best knowledge of a cost wins, and what nobody knows is left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.adaptation.costs import CostedTask, alternate_costs
from headgate.model.cluster.alternate_cost import Origin
from headgate.model.cluster.observation import TaskProfile
from headgate.model.names import Signature, TaskId
from headgate.model.task import Alternate, Task
from headgate.model.task_type import TaskConfig, TaskType

WAYS = ("one", "two", "three")


def profile(cpu_s: float) -> TaskProfile:
    return TaskProfile(1_000, cpu_s, cpu_s * 3, 0.0, 0, 0.01)


@given(
    st.lists(st.one_of(st.none(), st.floats(1e-6, 1.0)), min_size=3, max_size=3),
    st.dictionaries(st.sampled_from(WAYS), st.floats(1e-6, 1.0)),
    st.dictionaries(st.sampled_from(WAYS), st.floats(1e-6, 1.0)),
    st.sampled_from(WAYS),
    st.booleans(),
    st.floats(0.1, 2.0),
)
def test_the_best_origin_wins(
    declared: list[float | None],
    here: dict[str, float],
    before: dict[str, float],
    active: str,
    known: bool,
    speed: float,
) -> None:
    ways = tuple(Alternate(name, "opaque", cost_s=cost) for name, cost in zip(WAYS, declared, strict=True))
    task = CostedTask(Signature("s"), Task(TaskId("t"), ways), active)
    measured = {(Signature("s"), name): profile(cost) for name, cost in here.items()}
    kinds = {"opaque": TaskType("opaque", TaskConfig, cost_s=5e-6)} if known else {}
    stored = {(Signature("s"), name): profile(cost) for name, cost in before.items()}
    costs = {cost.alternate: cost for cost in alternate_costs([task], kinds, measured, stored, speed)}
    of_active = here[active] * speed if active in here else before.get(active)
    for way in ways:
        if way.name in here:
            wanted = Origin.MEASURED, here[way.name] * speed
        elif way.name in before:
            wanted = Origin.STORED, before[way.name]
        elif way.cost_s is None:
            assert (way.name in costs) == known
            if not known:
                continue
            wanted = Origin.DEFAULT, 5e-6
        elif of_active is not None and (said := declared[WAYS.index(active)]) is not None:
            wanted = Origin.SCALED, way.cost_s * of_active / said
        else:
            wanted = Origin.DECLARED, way.cost_s
        assert (costs[way.name].origin, costs[way.name].cpu_s) == wanted
        waits = wanted[0].is_measured or wanted[0] is Origin.SCALED
        assert (costs[way.name].wait_s > 0) == waits
