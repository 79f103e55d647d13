"""Long work that is asked for through the API: it runs beside the engine, shows progress, and may be cancelled.

Each operation is a process of its own, with less priority than the engine, so that cancelling it needs nobody's
consent and it cannot hold up an epoch. What it was asked and what it has answered is in a file of the state directory;
the newest ones are kept. One that ran when its engine ended counts as interrupted.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.errors import InputError
from headgate.store.files import read_json, write_json

__all__ = ["Operations"]

MOST_RUNNING, MOST_KEPT = 2, 50
WHAT_IF = "headgate.service.what_if_program"
ENDED = ("done", "failed", "cancelled", "interrupted")

Notify = Callable[[Mapping[str, Any]], None]


@dataclass(slots=True)
class _Work:
    process: subprocess.Popen[str]
    facts: dict[str, Any]
    cancelled: bool = False


@dataclass(slots=True)
class Operations:
    """The operations of an engine. ``notify`` takes the facts of one whenever they change, without its result."""

    state: Path
    notify: Notify
    _running: dict[str, _Work] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def what_if(self, by: str, question: Mapping[str, Any], key: str | None = None) -> dict[str, Any]:
        """Start to answer what the past would have been; the same ``key`` of somebody starts it once."""
        name = uuid.uuid4().hex if key is None else uuid.uuid5(uuid.NAMESPACE_OID, f"{by}\0{key}").hex
        with self._lock:
            known = self._facts(name)
            if known is not None:
                if known["question"] != dict(question):
                    message = f"Request id '{key}' was used for another request. Choose a new id for each request."
                    raise InputError("REQUEST_ID_REUSED", message)
                return known
            if len(self._running) >= MOST_RUNNING:
                message = f"{MOST_RUNNING} operations run already; wait for one of them, or cancel it"
                raise InputError("OPERATIONS_BUSY", message)
            return self._start(name, by, dict(question))

    def _start(self, name: str, by: str, question: dict[str, Any]) -> dict[str, Any]:
        self._folder.mkdir(exist_ok=True)
        facts = {"id": name, "kind": "what-if", "by": by, "question": question, "began": time.time(), "ended": None}
        facts |= {"state": "running", "progress": 0.0, "step": "starting", "problem": None}
        write_json(self._file(name), facts)
        command = [sys.executable, "-m", WHAT_IF, str(self.state), json.dumps(question), str(self._answer(name))]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        work = self._running[name] = _Work(process, facts)
        threading.Thread(target=self._follow, args=(name, work), name=f"operation {name}", daemon=True).start()
        self._prune()
        return dict(facts)

    def listing(self) -> list[dict[str, Any]]:
        """All that are kept, newest first, without results."""
        with self._lock:
            names = {file.name.partition(".")[0] for file in self._folder.glob("*.json")}
            known = [facts for name in names if (facts := self._facts(name)) is not None]
        return sorted(known, key=lambda facts: -float(facts["began"]))

    def get(self, name: str) -> dict[str, Any]:
        """One operation, with its result when it is done."""
        with self._lock:
            facts = self._facts(name)
        if facts is None:
            message = f"no operation '{name[:60]}' is known; the newest {MOST_KEPT} are kept"
            raise InputError("UNKNOWN_OPERATION", message)
        answer = read_json(self._answer(name)) if facts["state"] == "done" else None
        return {**facts, "result": None if answer is None else answer["result"]}

    def cancel(self, name: str) -> dict[str, Any]:
        """End an operation; one that has ended stays as it is."""
        with self._lock:
            work = self._running.get(name)
            if work is not None:
                work.cancelled = True
                work.process.kill()
        until = time.monotonic() + 10.0
        while work is not None and work.facts["state"] not in ENDED and time.monotonic() < until:
            time.sleep(0.01)
        return self.get(name)

    def close(self) -> None:
        """The engine stops: what runs is ended."""
        for name in list(self._running):
            self.cancel(name)

    @property
    def _folder(self) -> Path:
        return self.state / "operations"

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def _answer(self, name: str) -> Path:
        return self._folder / f"{name}.answer"

    def _facts(self, name: str) -> dict[str, Any] | None:
        if name in self._running:
            return dict(self._running[name].facts)
        if not name.isalnum() or (known := read_json(self._file(name))) is None:
            return None
        facts: dict[str, Any] = known
        return {**facts, "state": "interrupted"} if facts["state"] == "running" else facts

    def _follow(self, name: str, work: _Work) -> None:
        """Take what a process says, until it ends."""
        with work.process as process:
            assert process.stdout is not None
            assert process.stderr is not None
            for line in process.stdout:
                with suppress(ValueError):
                    work.facts |= json.loads(line)
                    self.notify(dict(work.facts))
            error = process.stderr.read().strip()
        ended = self._ended(work, read_json(self._answer(name)), error)
        with self._lock:
            work.facts |= {**ended, "ended": time.time()}
            with suppress(OSError):  # a full disk: it is known until the engine ends
                write_json(self._file(name), work.facts)
                self._running.pop(name, None)
        self.notify(dict(work.facts))

    def _ended(self, work: _Work, answer: Mapping[str, Any] | None, error: str) -> dict[str, Any]:
        if answer is not None and "result" in answer:
            return {"state": "done", "progress": 1.0, "step": ""}
        if work.cancelled:
            return {"state": "cancelled", "step": ""}
        last = error.splitlines()[-1] if error else f"the process ended with {work.process.returncode}"
        problem = answer["problem"] if answer is not None else {"condition": "INTERNAL", "message": last[:500]}
        return {"state": "failed", "step": "", "problem": problem}

    def _prune(self) -> None:
        """Forget the oldest."""
        files = sorted(self._folder.glob("*.json"), key=lambda file: file.stat().st_mtime, reverse=True)
        for file in files[MOST_KEPT:]:
            if file.stem not in self._running:
                file.unlink(missing_ok=True)
                file.with_suffix(".answer").unlink(missing_ok=True)
