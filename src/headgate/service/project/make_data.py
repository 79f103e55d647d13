"""Write readings of five sensors into data/: one file for each minute, one JSON object in a line."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

MINUTES, SENSORS = 10, 5


def main() -> None:
    """Write the files; each appears whole, because it is renamed when it is complete."""
    chance = random.Random(1)
    start = datetime(2026, 11, 1, 12, tzinfo=UTC)
    folder = Path("data")
    folder.mkdir(exist_ok=True)
    for minute in range(MINUTES):
        rows = [
            {
                "sensor": f"s{sensor}",
                "t": (start + timedelta(minutes=minute, seconds=second)).isoformat(),
                "temperature": round(25 + 3 * sensor + chance.gauss(0, 2), 2),
            }
            for second in range(0, 60, 5)
            for sensor in range(SENSORS)
        ]
        path = folder / f"{minute:02}.jsonl"
        unfinished = path.with_suffix(".part")
        unfinished.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        unfinished.replace(path)
    print(f"{MINUTES * SENSORS * 12} readings in {MINUTES} files in {folder}/")


if __name__ == "__main__":
    main()
