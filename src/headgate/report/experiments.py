"""An experiment as a picture: throughput and cost of each policy in each world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headgate.report.figures import SHADES, figure_bytes

__all__ = ["draw_experiment"]

Row = Mapping[str, Any]


def draw_experiment(groups: Sequence[Row], ending: str) -> bytes:
    """A column for each dataflow and rate; relative throughput above, cost below; bars are 95 % intervals."""
    worlds = list(dict.fromkeys((row["dataflow"], row["rates"]) for row in groups))
    policies = list(dict.fromkeys(row["policy"] for row in groups))
    places = list(dict.fromkeys(row["variability"] for row in groups))

    def draw(figure: Any) -> None:
        panels = figure.subplots(2, len(worlds), sharex=True, squeeze=False)
        for column, world in enumerate(worlds):
            mine = [row for row in groups if (row["dataflow"], row["rates"]) == world]
            for line, (name, label) in enumerate((("omega", "relative throughput Ω"), ("cost", "cost"))):
                axes = panels[line][column]
                for number, policy in enumerate(policies):
                    shift = (number - (len(policies) - 1) / 2) * 0.8 / len(policies)
                    rows = [row for row in mine if row["policy"] == policy]
                    axes.bar(
                        [places.index(row["variability"]) + shift for row in rows],
                        [row[name] for row in rows],
                        0.7 / len(policies),
                        yerr=[row[f"{name}_error"] for row in rows],
                        capsize=2,
                        color=SHADES[number % len(SHADES)],
                        label=policy,
                    )
                axes.set_xticks(range(len(places)), places)
                axes.grid(axis="y")
                if column == 0:
                    axes.set_ylabel(label)
            panels[0][column].set(ylim=(0, 1.05), title=f"{world[0]}, {world[1]}")
            panels[1][column].set_xlabel("variability of machines")
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=len(policies))

    return figure_bytes(draw, ending, (max(5.5, 3.2 * len(worlds)), 6))
