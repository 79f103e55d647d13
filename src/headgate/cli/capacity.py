"""``headgate capacity``: which alternates and machines a dataflow needs for given rates, and whether it pays."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.output import known_types, print_json, write_file
from headgate.cli.span import seconds
from headgate.errors import Infeasible, missing_package, printable

if TYPE_CHECKING:
    from headgate.planning.plan import Answer, Plan
    from headgate.planning.problem import Problem

__all__ = ["capacity"]

COMPARED = ("exact", "ga", "ce", "sh")


def capacity(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A dataflow whose tasks have costs.")],
    rate: Annotated[
        list[str] | None,
        typer.Option(metavar="[SOURCE=]RATE", help="Messages per second from outside, such as 50 or reports=50."),
    ] = None,
    peak: Annotated[bool, typer.Option("--peak", help="Plan for the peak of rates that vary, not the mean.")] = False,
    catalogue: Annotated[str, typer.Option(help="ec2-2013, floe-sim, ec2-2024, or a .yaml file.")] = "ec2-2013",
    algorithm: Annotated[
        list[str] | None, typer.Option(help="auto, exact, ce, sh, ga or br; several stand side by side.")
    ] = None,
    compare: Annotated[bool, typer.Option("--compare", help="exact, ga, ce and sh side by side.")] = False,
    throughput: Annotated[
        float | None, typer.Option(help="The least relative throughput, before the service level's.")
    ] = None,
    budget: Annotated[str | None, typer.Option(help="The most that an hour may cost.")] = None,
    break_even: Annotated[
        str | None, typer.Option(metavar="BEST,WORST", help="What an hour may cost at best and at worst value.")
    ] = None,
    cores: Annotated[int | None, typer.Option(min=1, help="The most cores.")] = None,
    message_bytes: Annotated[float, typer.Option(help="The size of a message.")] = 100.0,
    time_limit: Annotated[str, typer.Option(help="The longest that an algorithm may search.")] = "10s",
    plot: Annotated[Path | None, typer.Option(help="Draw cost against value into this .svg or .png file.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the best plan to this .json file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over existing files.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Plan a dataflow: alternates, cores and machines for given rates, with the reasons.

    Example: [bold]headgate capacity road.yaml --rate reports=50 --rate weather=0.5 --compare --plot plans.svg[/bold]
    """
    try:
        if plot is not None:
            import matplotlib  # noqa: F401 (better missed now than when the picture is drawn)
        import highspy  # noqa: F401

        from headgate.planning.plan import Plan, better
        from headgate.report.figures import check_ending
        from headgate.service.capacity import Wanted, answers_of, problem_of
    except ModuleNotFoundError as error:
        raise missing_package("NO_PLANNING", "planning", error, "planning") from None
    if plot is not None:
        check_ending(plot.suffix.lower())
    wanted = Wanted(
        file, tuple(rate or ()), catalogue, peak, throughput, budget, break_even, cores, message_bytes
    )  # fmt: skip
    problem = problem_of(wanted, known_types())
    names = algorithm or (list(COMPARED) if compare else ["auto"])
    shown = sys.stderr.isatty() and not as_json
    answers = answers_of(problem, names, seconds("--time-limit", time_limit), _progress if shown else None)
    best: Answer | None = None
    for answer in answers:
        best = better(best, answer)
    plans = [answer for answer in answers if isinstance(answer, Plan)]
    if plot is not None and plans:
        _draw(problem, plans, plot, force)
    if as_json:
        print_json(_facts(problem, answers))
    elif plans:
        typer.echo(_text(problem, answers), nl=False)
    if not isinstance(best, Plan):
        first = answers[0]
        assert not isinstance(first, Plan)
        told = "; or ".join(each.sentence for each in first.relaxations)
        raise Infeasible(first.condition, first.reason + (f"; {told}" if told else ""))
    if out is not None:
        import json

        write_file(out, json.dumps(_plan_facts(best), indent=2) + "\n", force)


def _progress(name: str) -> None:
    typer.echo(f"  {name} ...", err=True)


def _draw(problem: Problem, plans: Sequence[Plan], path: Path, force: bool) -> None:
    from headgate.planning.pareto import front
    from headgate.report.plans import draw_plans

    write_file(path, draw_plans(problem, plans, front(problem), path.suffix.lower()), force)


def _text(problem: Problem, answers: Sequence[Answer]) -> str:
    from headgate.planning.plan import Plan

    rates = ", ".join(f"{name} {rate:,.6g}/s" for name, rate in problem.rates.items())
    head = f"{problem.dataflow.name}: {problem.tasks} tasks on {problem.cloud.name}, {rates}, Ω at least "
    lines = [printable(f"{head}{problem.throughput_min:g}"), ""]
    titles = ("Ω", "Γ", "cost/h", "Θ", "gap", "cores", "machines", "seconds")
    lines.append("  algorithm   " + "".join(f"{title:>10}" for title in titles))
    for answer in answers:
        if not isinstance(answer, Plan):
            lines.append(f"  {answer.planner:<12}{printable(answer.reason)}")
            continue
        cells = (
            f"{answer.omega:.4f}",
            f"{answer.gamma:.4f}",
            f"{answer.cost_per_h:,.2f}",
            f"{answer.theta:.4f}",
            "-" if answer.gap is None else f"{answer.gap:.4f}",
            f"{sum(answer.cores.values()):,}",
            f"{len(answer.deployment.machines):,}",
            f"{answer.took_s:.2g}",
        )
        lines.append(f"  {answer.planner:<12}" + "".join(f"{cell:>10}" for cell in cells))
    plans = [answer for answer in answers if isinstance(answer, Plan)]
    best = max(plans, key=lambda each: (each.theta, -each.cost_per_h))
    lines += ["", f"{best.planner}:", *(f"  {printable(sentence)}" for sentence in best.explanation)]
    return "\n".join(lines) + "\n"


def _plan_facts(plan: Plan) -> dict[str, Any]:
    grouped: dict[tuple[str, tuple[tuple[str, int], ...]], int] = {}
    for machine in plan.deployment.machines:
        key = (machine.vm_class, tuple(machine.cores.items()))
        grouped[key] = grouped.get(key, 0) + 1
    machines = [{"vm_class": kind, "count": count, "cores": dict(cores)} for (kind, cores), count in grouped.items()]
    return {
        "algorithm": plan.planner,
        "omega": plan.omega,
        "gamma": plan.gamma,
        "cost_per_h": plan.cost_per_h,
        "theta": plan.theta,
        "bound": plan.bound,
        "gap": plan.gap,
        "took_s": plan.took_s,
        "alternates": dict(plan.deployment.alternates),
        "cores": dict(plan.cores),
        "machines": machines,
        "explanation": list(plan.explanation),
    }


def _facts(problem: Problem, answers: Sequence[Answer]) -> dict[str, Any]:
    from headgate.planning.plan import Plan

    found: list[dict[str, Any]] = []
    for answer in answers:
        if isinstance(answer, Plan):
            found.append(_plan_facts(answer))
            continue
        steps = [
            {"demand": each.demand, "asked": each.asked, "possible": each.possible, "sentence": each.sentence}
            for each in answer.relaxations
        ]
        reason = {"condition": answer.condition, "reason": answer.reason, "relaxations": steps}
        found.append({"algorithm": answer.planner, **reason, "took_s": answer.took_s})
    return {
        "dataflow": str(problem.dataflow.name),
        "catalogue": problem.cloud.name,
        "rates": dict(problem.rates),
        "throughput_min": problem.throughput_min,
        "answers": found,
    }
