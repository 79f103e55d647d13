"""Measure what the ways to find features are worth and what each operator costs, and write a file for `headgate size`.

    .venv/bin/python examples/logos/measure_logos.py --clips 30 --write examples/sizing/logos_measured.yaml

Clips and logos are of another seed than thresholds were chosen with. The value of an alternate is its F1 score by
frames over that of the best. Times are processor seconds in one process, without Spark; `service_scv` is their squared
coefficient of variation.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from check_logos import Interval, Score, by_frame, by_showing
from clips import FRAMES, SEARCHED, film, write_logos
from logo_detection import WAYS, aggregate, extract, match

__all__ = ["found_by", "main"]

SEED = 2
"""Thresholds were chosen with clips and logos of seed 1."""

RATE_PER_S = 104
"""Frames in a second: eight videos of 13, which is the paper's rate."""


class Times:
    """Processor seconds that a function took, call by call."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def of(self, function: Callable[..., Any], *given: Any, **options: Any) -> Any:
        began = time.process_time()
        made = function(*given, **options)
        self.seconds.append(time.process_time() - began)
        return made

    @property
    def per_s(self) -> float:
        return float(1 / np.mean(self.seconds))

    @property
    def scv(self) -> float:
        return float(np.var(self.seconds) / np.mean(self.seconds) ** 2)


def found_by(way: str, clips: int, searched: str, seed: int) -> tuple[list[Interval], dict[str, Times]]:
    """What is found in the first clips, and how long each operator took."""
    times = {name: Times() for name in ("extract", "match", "aggregate")}
    showings: list[Interval] = []
    extract(film({"value": 0}, seed), way)  # the first call sets things up
    for clip in range(clips):
        states: dict[str, Any] = {}
        for frame in range(FRAMES):
            row = times["extract"].of(extract, film({"value": clip * FRAMES + frame}, seed), way)
            for seen in times["match"].of(match, row, searched):
                logo = seen["logo"]
                states[logo], result = times["aggregate"].of(aggregate, states.get(logo), seen, FRAMES)
                showings += [(clip, logo, one["first"], one["last"]) for one in result["intervals"]] if result else []
    return showings, times


def sizing(times: dict[str, Times], logos: int) -> str:
    """The operators as `headgate size` reads them."""
    routes = {"extract": "to: {match: 1}", "match": f"to: {{aggregate: {logos}}}", "aggregate": ""}
    lines = [
        "# Logos in a video stream as examples/logos finds them: service rates of one processor of the machine that",
        "# examples/logos/measure_logos.py ran on, for frames of 320 x 240. Those in logos.yaml are the paper's.",
        "name: logos_measured",
        "latency_max_s: 0.1",
        "model: ggk",
        "operators:",
    ]
    for name, route in routes.items():
        arrival = f"arrival_rate_per_s: {RATE_PER_S}, " if name == "extract" else ""
        served = f"service_rate_per_s: {float(f'{times[name].per_s:.3g}'):g}, service_scv: {times[name].scv:.2g}"
        lines.append(f"  - {{name: {name}, {arrival}{served}{', ' if route else ''}{route}}}")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure value and cost.")
    parser.add_argument("--clips", type=int, default=10, help="how many clips to look at")
    parser.add_argument("--seed", type=int, default=SEED, help="of clips and logos")
    parser.add_argument("--write", type=Path, help="where to write the file for headgate size")
    given = parser.parse_args()
    scores: dict[str, tuple[Score, Score]] = {}
    measured: dict[str, dict[str, Times]] = {}
    with tempfile.TemporaryDirectory() as searched:
        write_logos(Path(searched), given.seed)
        for way in WAYS:
            showings, measured[way] = found_by(way, given.clips, searched, given.seed)
            asked = range(given.clips), given.seed
            scores[way] = by_frame(showings, *asked), by_showing(showings, *asked)
    best = max(frames.f1 for frames, _ in scores.values())
    for way, (frames, showings) in scores.items():
        costs = ", ".join(f"{name} {1_000 / some.per_s:.2f} ms" for name, some in measured[way].items())
        print(f"{way}: value {frames.f1 / best:.2f}; {costs}\n  frames    {frames}\n  showings  {showings}")
    if given.write is not None:
        given.write.write_text(sizing(measured["sift"], len(SEARCHED)), encoding="utf-8")


if __name__ == "__main__":
    main()
