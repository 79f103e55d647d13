"""Answers a what-if in a process of its own, which may be killed at any time.

``python -m headgate.service.what_if_program STATE QUESTION FILE`` writes a line of JSON for each step, and the answer,
or what is wrong with the question, into the file.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from headgate.errors import BadValue, HeadgateError
from headgate.service.what_if import WhatIf, replay_past, what_if_facts
from headgate.store.files import write_json

__all__ = ["main"]

EVERY_S = 0.2
"""How often progress is reported."""


def main(state: str, question: str, file: str) -> None:
    """Answer one question."""
    os.nice(10)  # dataflows come first
    reported = 0.0

    def notify(done: float, what: str) -> None:
        nonlocal reported
        if time.monotonic() - reported >= EVERY_S or done >= 1.0:
            reported = time.monotonic()
            print(json.dumps({"progress": done, "step": what}), flush=True)

    given = json.loads(question)
    try:
        asked = WhatIf(**{**given, "policies": tuple(given["policies"])})
        answer = {"result": what_if_facts(replay_past(Path(state), asked, notify))}
    except BadValue as error:
        answer = {"problem": {"condition": "BAD_SETTING", "message": error.sentence}}
    except HeadgateError as error:
        answer = {"problem": {"condition": error.condition, "message": error.message}}
    write_json(Path(file), answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
