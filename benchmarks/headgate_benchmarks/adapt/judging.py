"""What a run was worth: the judge's verdict from raw files, and the engine's own figures of the same time beside it."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from headgate.adaptation.evaluating import evaluated
from headgate.adaptation.joining import joined
from headgate.billing.journal import read_usage
from headgate.billing.lifecycle import charged
from headgate.model.cluster.vm_class import BillingPeriod
from headgate.store.decision_entries import DecisionEnded, DecisionMade, DecisionOutcome, DecisionVerified, StepChanged
from headgate.store.journal import read_journal
from headgate.store.observations import history_of
from headgate_benchmarks.adapt.live import Pace, Ran
from headgate_benchmarks.adapt.worlds import Scenario

__all__ = ["Verdict", "judged", "series"]

Verdict = dict[str, Any]
Lines = Sequence[Mapping[str, Any]]
SLIDE_S = 5.0


def judged(scenario: Scenario, ran: Ran, pace: Pace) -> Verdict:
    """The fields of a run, all but those that need a simulation."""
    from tests.judge.profit import judge_profit

    lost, doubled = _clean(ran, scenario)
    verdict = judge_profit(_files(scenario, ran, pace), ran.began, ran.ended, pace.window_s)
    flows = list(verdict.dataflows.values())
    return {
        "theta": verdict.theta,
        "omega": statistics.mean(each.omega for each in flows),
        "gamma": statistics.mean(each.gamma for each in flows),
        "violations": statistics.mean(each.violations for each in flows),
        "latency_s": statistics.mean(each.latency_s or 0.0 for each in flows),
        "core_hours": verdict.core_hours,
        "cost": float(Fraction(verdict.bill)),
        "rows": ran.generated,
        "lost": lost,
        "doubled": doubled,
        "converge_s": _converged(scenario, ran, pace),
        "controller_cpu": ran.controller_s / max(ran.running_s, 1.0),
        "load_before": ran.load[0],
        "load_after": ran.load[1],
        **_decisions(ran),
        **_judge_error(ran, pace, Fraction(verdict.bill)),
    }


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def _clean(ran: Ran, scenario: Scenario) -> tuple[int, int]:
    """Rows that did not come out in the end, and that came out again; the judge counts the first time of each.

    Of a dataflow that joins later only what it has can be counted.
    """
    lost = doubled = 0
    generated = {line["id"] for line in _lines(ran.folder / "generated.jsonl")}
    for flow in scenario.flows:
        file = ran.folder / "sinks" / f"{flow.name}.jsonl"
        first: dict[int, dict[str, Any]] = {}
        for line in _lines(file):
            doubled += line["id"] in first
            first.setdefault(line["id"], line)
        file.write_text("".join(json.dumps(line) + "\n" for line in first.values()))
        lost += 0 if flow.joins else len(generated - first.keys())
    return lost, doubled


def _files(scenario: Scenario, ran: Ran, pace: Pace) -> Path:
    """Put the files that the judge reads where it looks for them."""
    promises = {flow.name: scenario.promise(flow) for flow in scenario.flows if not flow.joins}
    (ran.folder / "promises.json").write_text(json.dumps(promises))
    (ran.folder / "billing.json").write_text(json.dumps({"period_s": pace.period_s, "least_s": 0}))
    machines = (ran.cluster / "acquisitions.jsonl").read_bytes()
    (ran.folder / "acquisitions.jsonl").write_bytes(machines)
    return ran.folder


def _converged(scenario: Scenario, ran: Ran, pace: Pace) -> float | None:
    """From each jump of the rate until two windows in a row are as agreed; the longest. None if that never came."""
    from tests.judge.profit import _latency, _rows, omega_of

    rows, flow = _rows(ran.folder), scenario.flows[0]
    want, span_s = {"of": 1, "is": 0}, ran.ended - ran.began

    def good(since: float) -> bool:
        until = since + pace.window_s
        late = _latency(rows, {flow.name: want}, since, until)
        enough = omega_of(rows, flow.name, want, since, until) >= 0.75
        return enough and (late is None or late <= scenario.latency_max_s)

    took = []
    ends = [*scenario.steps_at[1:], 1.0]
    for step, end in zip(scenario.steps_at, ends, strict=True):
        at, until = ran.began + step * span_s, ran.began + end * span_s
        starts = [at + n * SLIDE_S for n in range(int((until - at - 2 * pace.window_s) / SLIDE_S) + 1)]
        reached = next((start for start in starts if good(start) and good(start + pace.window_s)), None)
        if reached is None:
            return None
        took.append(reached - at)
    return max(took, default=0.0)


def _entries(ran: Ran, kind: type[Any]) -> list[Any]:
    return [entry for _, entry in read_journal(ran.state / "journal", kind)]


def _decisions(ran: Ran) -> Verdict:
    """What was changed, how far off predictions were, and when changes were seen in rows."""
    during = [each for each in _entries(ran, DecisionMade) if ran.began <= each.at <= ran.ended]
    ended = {each.number: each for each in _entries(ran, DecisionEnded)}
    verified = [each.error for each in _entries(ran, DecisionVerified) if each.error is not None]
    done = [each for each in during if each.steps and ended.get(each.number)]
    finished = [each for each in done if ended[each.number].outcome is DecisionOutcome.DONE]
    carried: dict[int, set[int]] = {each.number: set() for each in during}
    for step in _entries(ran, StepChanged):
        if step.state == "done" and step.decision in carried:
            carried[step.decision].add(step.step)
    unexplained = [
        each
        for each in done
        if ended[each.number].outcome is DecisionOutcome.ABANDONED and not ended[each.number].reason
    ]
    return {
        "changes": sum(_changes(each, place) for each in during for place in sorted(carried[each.number])),
        "decisions": len(during),
        "abandoned": len(done) - len(finished),
        "unexplained": len(unexplained),
        "prediction_error": statistics.median(verified) if verified else None,
        "verified": len(verified),
        "late_epochs": _late_epochs(ran, during),
    }


def _changes(made: DecisionMade, place: int) -> int:
    """How many actions a step is; to wait for a machine is none."""
    step = made.steps[place]
    return {"publish": len(step.get("actions", ())), "await_ready": 0}.get(step["step"], 1)


def _late_epochs(ran: Ran, decisions: Sequence[DecisionMade]) -> int | None:
    """Epochs after the one under way that still ran the alternate of before a switch; the most of all switches."""
    steps = {(each.decision, each.step): each for each in _entries(ran, StepChanged) if each.state == "done"}
    switches = [
        (steps[made.number, place].at, action["alternate"])
        for made in decisions
        for place, step in enumerate(made.steps)
        if step["step"] == "publish" and (made.number, place) in steps
        for action in step["actions"]
        if action["action"] == "switch_alternate"
    ]
    if not switches:
        return None
    epochs: dict[float, set[str]] = {}
    for file in (ran.folder / "sinks").glob("*.jsonl"):
        for line in _lines(file):
            epochs.setdefault(line["at"], set()).add(line["label"]["score"])
    worst = 0
    for (at, way), until in zip(switches, [*(each for each, _ in switches[1:]), ran.ended], strict=True):
        after = [epochs[moment] for moment in sorted(epochs) if at < moment < until]
        wrong = next((place for place, ways in enumerate(after) if ways == {way}), len(after))
        worst = max(worst, wrong - 1)
    return max(worst, 0)


def _judge_error(ran: Ran, pace: Pace, bill: Fraction) -> Verdict:
    """How far the engine's own figures are from the judge's over the same time, as a share; money to the last digit."""
    from tests.judge.profit import judge_profit

    seen = [each for each in history_of(ran.state).read(ran.began) if each.ended <= ran.ended + SLIDE_S]
    whole = evaluated(joined(seen))
    again = judge_profit(ran.folder, whole.ended - whole.seconds, whole.ended, whole.seconds)
    errors: dict[str, float] = {}
    for flow in whole.dataflows:
        if flow.name not in again.dataflows or flow.figures is None:
            continue
        by_judge = again.dataflows[flow.name]
        for name in ("omega", "gamma", "cost_per_h"):
            own = getattr(flow.figures, name)
            if own is not None:
                other = getattr(by_judge, name)
                errors[name] = max(errors.get(name, 0.0), abs(own - other) / max(abs(other), 1e-9))
    record = read_usage(ran.state)
    charges = charged(record.machines, record.intervals, 0.0, ran.ended, BillingPeriod(pace.period_s))
    return {
        "judge_error": max(errors.values(), default=None),
        **{f"judge_error_{name}": error for name, error in errors.items()},
        "money_error": float(abs(charges.total - bill)),
    }


def series(scenario: Scenario, ran: Ran, every_s: float = SLIDE_S) -> dict[str, list[float]]:
    """What came, what was done, what waited and what machines there were, for pictures and comparison."""
    came = [line["at"] for line in _lines(ran.folder / "generated.jsonl")]
    done = [line["at"] for line in _lines(ran.folder / "sinks" / f"{scenario.flows[0].name}.jsonl")]
    edges = [ran.began + n * every_s for n in range(int((ran.ended - ran.began) / every_s) + 1)]
    held = list(_held(_lines(ran.folder / "acquisitions.jsonl")))
    return {
        "at_s": [edge - ran.began for edge in edges[1:]],
        "came_per_s": _per_s(came, edges),
        "done_per_s": _per_s(done, edges),
        "waiting": [float(sum(at < edge for at in came) - sum(at < edge for at in done)) for edge in edges[1:]],
        "machines": [float(sum(since <= edge < until for since, until in held)) for edge in edges[1:]],
        "gamma": _gamma(scenario, ran, edges[1:]),
    }


def _per_s(times: Sequence[float], edges: Sequence[float]) -> list[float]:
    return [sum(first <= at < last for at in times) / (last - first) for first, last in pairwise(edges)]


def _held(events: Lines) -> Iterator[tuple[float, float]]:
    """From being asked for to being gone."""
    begun = {line["machine"]: line["at"] for line in events if line["event"] == "acquired"}
    gone = {line["machine"]: line["at"] for line in events if line["event"] in ("released", "lost")}
    yield from ((at, gone.get(name, float("inf"))) for name, at in begun.items())


def _gamma(scenario: Scenario, ran: Ran, edges: Sequence[float]) -> list[float]:
    values = {way.name: way.value for way in scenario.ways}
    labels = sorted(
        (line["at"], values[line["label"]["score"]])
        for line in _lines(ran.folder / "sinks" / f"{scenario.flows[0].name}.jsonl")
    )
    result, place, value = [], 0, 1.0
    for edge in edges:
        while place < len(labels) and labels[place][0] <= edge:
            value, place = labels[place][1], place + 1
        result.append((scenario.tasks - 1 + value) / scenario.tasks)
    return result
