"""Every figure of a plan has an origin, and examples without costs can be planned."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from headgate.errors import HeadgateError, InputError
from headgate.model.cluster.alternate_cost import Origin
from headgate.model.graph import Graph
from headgate.planning.greedy import Centralised
from headgate.planning.known_figures import Figure, known_figures
from headgate.planning.measured_figures import Measured
from headgate.planning.plan import Plan
from headgate.service.capacity import CapacityRequest, problem_of
from headgate.service.figures import figures_of, figures_tables
from headgate.service.load import load
from headgate.tasks.registry import default_registry

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FOLDERS = ("city", "linear_road", "logos", "micro", "nexmark", "patterns", "riotbench", "sentiment", "tweets")
FILES = [
    *(path for name in FOLDERS for path in sorted((EXAMPLES / name).iterdir()) if path.suffix in (".yaml", ".xml")),
    *(EXAMPLES / "simulation" / f"{name}.yaml" for name in ("linear_road", "ten_stages")),
    EXAMPLES / "city" / "archive.json",
    *(EXAMPLES / f"word_count.{ending}" for ending in ("json", "xml", "yaml")),
]


def _planned(path: Path) -> str:
    """How planning answers: with a plan, or why not."""
    registry = default_registry()
    flow = load(path, registry).dataflow
    rates = tuple(f"{name}=5" for name in Graph(flow).sources())
    try:
        problem = problem_of(CapacityRequest(rates), flow, path.parent, figures_of(flow, registry))
        answer = Centralised().plan(problem)
    except HeadgateError as error:
        return error.condition
    return "plan" if isinstance(answer, Plan) else answer.condition


def test_examples_are_planned_although_hardly_any_states_a_cost() -> None:
    """None is refused for its costs: 37 of 39 are planned, one loops, one has a budget below a core for each task."""
    assert Counter(map(_planned, FILES)) == {"plan": 37, "LOOP": 1, "NO_BUDGET": 1}


@pytest.fixture
def flow_path(tmp_path: Path) -> Path:
    path = tmp_path / "flow.yaml"
    path.write_text(
        "tasks:\n"
        "- {id: in, type: rate}\n"
        "- {id: odd, type: filter, config: {where: value > 3}, cost_s: 0.5, selectivity: 0.25, inputs: [in]}\n"
        "- id: way\n"
        "  alternates:\n"
        "  - {name: a, type: derive, config: {columns: {x: value}}}\n"
        "  - {name: b, type: derive, config: {columns: {x: value + 1}}, cost_s: 0.1}\n"
        "  inputs: [odd]\n"
    )
    return path


def test_measured_counts_before_stored_before_declared_before_default(flow_path: Path) -> None:
    flow, registry = load(flow_path, default_registry()).dataflow, default_registry()
    measured = {("odd", "filter"): Measured(None, 0.5), ("way", "a"): Measured(3e-3, None)}
    stored = {("odd", "filter"): Measured(2e-3, 0.9), ("way", "a"): Measured(1.0, 1.0)}
    figures = {(str(each.task), each.alternate): each for each in known_figures(flow, registry, measured, stored)}
    assert figures["odd", "filter"].cost_s == Figure(2e-3, Origin.STORED)
    assert figures["odd", "filter"].selectivity == Figure(0.5, Origin.MEASURED)
    assert figures["way", "a"].cost_s == Figure(3e-3, Origin.MEASURED)
    assert figures["way", "b"].cost_s == Figure(0.1, Origin.DECLARED)
    assert figures["in", "rate"].cost_s.origin is Origin.DEFAULT
    (table,) = figures_tables(tuple(figures.values()), in_full=False)
    assert "1 of 4 costs is the default of the task type" in table.notes[0]


def test_given_costs_win_and_name_what_they_are_for(flow_path: Path) -> None:
    flow, registry = load(flow_path, default_registry()).dataflow, default_registry()
    given = figures_of(flow, registry, ["way=2", "odd/filter=0"], {("way", "a"): Measured(1.0, 1.0)})
    costs = {(each.task, each.alternate): each.cost_s for each in given if each.cost_s.origin is Origin.GIVEN}
    assert {key: each.value for key, each in costs.items()} == {("way", "a"): 2, ("way", "b"): 2, ("odd", "filter"): 0}
    for text, reason in [
        ("wya=2", "did you mean 'way'"),
        ("way/c=2", "has no alternate 'c'"),
        ("way=fast", "neither TASK=SECONDS"),
        ("way=-1", "neither TASK=SECONDS"),
        ("2", "neither TASK=SECONDS"),
        ("way=nan", "neither TASK=SECONDS"),
    ]:
        with pytest.raises(InputError, match=reason):
            figures_of(flow, registry, [text])


def test_without_break_even_costs_the_best_alternate_of_least_cost_stays(flow_path: Path) -> None:
    registry = default_registry()
    flow = load(flow_path, registry).dataflow
    for costs, best in ((["way/a=0.2"], "b"), (["way/a=0.01"], "a")):
        problem = problem_of(CapacityRequest(("5",)), flow, flow_path.parent, figures_of(flow, registry, costs))
        assert problem.shape.alternates[problem.shape.place("way")] == (best,)
