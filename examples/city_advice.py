"""The two ways in which city/advice.yaml finds out how muggy it feels."""

import time

ANSWER_S = 0.004
"""How long the weather service takes. It is imitated: nothing is asked."""


def ask(row: dict) -> dict:
    """Ask the weather service."""
    time.sleep(ANSWER_S)
    return {**formula(row), "by": "service"}


def formula(row: dict) -> dict:
    """Steadman's formula without wind."""
    feels = row["temperature"] + 0.33 * row["humidity"] / 100 * 24 - 4
    return {"sensor": row["sensor"], "t": row["t"], "feels": round(feels, 1), "by": "formula"}
