"""What executors must have and see, checked before anything runs on them.

The engine's job of an epoch ends with executors writing into the state directory, and readers of files run there too.
"""

from __future__ import annotations

import glob
import platform
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headgate import __version__
from headgate.errors import InputError
from headgate.model.names import Signature
from headgate.model.work import SourceWork
from headgate.runtime.compile.plan import CompiledPlan
from headgate.runtime.io.secret_options import used_options
from headgate.runtime.spark_internals.executors import Executors
from headgate.runtime.spark_internals.failures import JOB_FAILURES, reason_of
from headgate.runtime.spark_internals.protocol import ExecutorInfo

__all__ = ["check_executors", "check_paths", "paths_read"]

COME_S = 120.0
"""How long the first executor may take."""


def check_executors(executors: Executors, state: Path, patience_s: float = COME_S) -> None:
    """Raise :class:`InputError` unless every executor runs this Headgate and shares the state directory."""
    there = _first_ones(executors, patience_s)
    hosts = {executor.id: executor.host for executor in there}
    folder = state / f"probe-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    try:
        (folder / "driver").write_text("seen", encoding="utf-8")
        for executor, answer in _on_each(executors, _look_at(str(folder), __version__)).items():
            where = f"the executor on {hosts.get(executor, 'a new host')}"
            _check_answer(answer, where, state)
            if not (folder / answer["wrote"]).is_file():
                raise InputError("STATE_NOT_SHARED", _not_shared(where, state, "what it writes there is not seen here"))
    finally:
        for entry in folder.iterdir():
            entry.unlink(missing_ok=True)
        folder.rmdir()


def check_paths(executors: Executors, paths: Mapping[str, str]) -> None:
    """Raise :class:`InputError` unless every executor sees files at the paths of sources, by task."""
    wanted = dict(paths)
    if not wanted or executors.local:
        return

    def look() -> list[str]:
        return [task for task, path in wanted.items() if not glob.glob(path)]  # noqa: PTH207  (patterns are absolute)

    hosts = {executor.id: executor.host for executor in executors.list()}
    for executor, missing in _on_each(executors, look).items():
        for task in missing:
            where = f"the executor on {hosts.get(executor, 'a new host')}"
            remedy = "put them on storage that the driver and all workers see under the same path"
            message = f"task '{task}': {where} sees no files at '{wanted[task]}'; {remedy}"
            raise InputError("SOURCE_NOT_SHARED", message)


def paths_read(plan: CompiledPlan, known: CompiledPlan, tasks: Iterable[Signature]) -> dict[str, str]:
    """The paths that executors read for some tasks of a plan and did not read for the one before, by task."""
    paths = {}
    for signature in tasks:
        task = plan.tasks.get(signature)
        if task is None or not isinstance(task.work, SourceWork) or signature in known.tasks:
            continue
        with used_options(task) as options:
            path = task.work.path(options)
        if path is not None:
            paths[task.name] = str(Path(path).absolute())
    return paths


def _first_ones(executors: Executors, patience_s: float) -> Sequence[ExecutorInfo]:
    until = time.monotonic() + patience_s
    while not (there := executors.list()):
        if time.monotonic() > until:
            asked = executors.context.getConf().get("spark.executor.memory", "1g")
            message = f"no executor started within {patience_s:g} s: {executors.context.master} has no machine with"
            raise InputError("NO_EXECUTORS", f"{message} {asked} of free memory (spark.executor.memory)")
        time.sleep(0.1)
    return there


def _look_at(folder: str, version: str) -> Callable[[], dict[str, Any]]:
    """The function that an executor runs to show that it is fit.

    It is sent as it is, since it is no module's function, and so can say that there is no Headgate.
    """

    def look() -> dict[str, Any]:
        import os
        import uuid

        answer: dict[str, Any] = {"headgate": None, "sees": False, "wrote": "", "error": ""}
        try:
            from headgate import __version__ as version_here

            answer["headgate"] = version_here
        except ImportError:
            return answer
        try:
            answer["sees"] = os.path.exists(f"{folder}/driver")  # noqa: PTH110
            if answer["sees"]:
                answer["wrote"] = f"executor-{uuid.uuid4().hex}"
                with open(f"{folder}/{answer['wrote']}", "w", encoding="utf-8") as file:  # noqa: PTH123
                    file.write(version)
        except OSError as error:
            answer["error"] = (error.strerror or str(error)).lower()
        return answer

    return look


def _check_answer(answer: Mapping[str, Any], where: str, state: Path) -> None:
    if answer["headgate"] is None:
        remedy = "install it there, or let PYSPARK_PYTHON name a Python that has it on every machine"
        raise InputError("EXECUTOR_UNFIT", f"{where} has no headgate in its Python; {remedy}")
    if answer["headgate"] != __version__:
        versions = f"headgate {answer['headgate']}, and this is {__version__}"
        raise InputError("EXECUTOR_UNFIT", f"{where} has {versions}; install the same everywhere")
    if not answer["sees"]:
        raise InputError("STATE_NOT_SHARED", _not_shared(where, state, "it does not see it"))
    if answer["error"]:
        raise InputError("STATE_NOT_SHARED", _not_shared(where, state, f"it cannot write there ({answer['error']})"))


def _not_shared(where: str, state: Path, why: str) -> str:
    remedy = "give a directory on storage that the driver and all workers see under the same path, with --state"
    return f"{where} does not share the state directory {state}: {why}; {remedy}"


def _on_each(executors: Executors, work: Callable[[], Any]) -> dict[str, Any]:
    try:
        return executors.on_each(work)
    except JOB_FAILURES as error:
        raise InputError("EXECUTOR_UNFIT", _unfit(str(error))) from None


def _unfit(failure: str) -> str:
    if match := re.search(r'Cannot run program "([^"]+)"', failure):
        remedy = "let PYSPARK_PYTHON name a Python that every machine has"
        return f"executors have no Python at {match[1]}; {remedy}"
    if "PYTHON_VERSION_MISMATCH" in failure:
        mine = ".".join(platform.python_version_tuple()[:2])
        return f"executors run another Python than this one, {mine}; let PYSPARK_PYTHON name one of the same version"
    return f"executors cannot run Python: {reason_of(failure)}"
