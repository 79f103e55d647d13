"""What to do with dataflows that are handed to an engine which may be running some of them already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headgate.errors import InputError
from headgate.model.dataflow import Dataflow

__all__ = ["SubmissionSplit", "split_submission"]


@dataclass(frozen=True, slots=True)
class SubmissionSplit:
    """Which dataflows are new, which simply go on, and which take the place of a running one of their name."""

    new: tuple[Dataflow, ...] = ()
    continued: tuple[Dataflow, ...] = ()
    replacing: tuple[Dataflow, ...] = ()


def split_submission(running: Iterable[Dataflow], given: Sequence[Dataflow], replace: bool) -> SubmissionSplit:
    """Sort dataflows by what has to be done; raises :class:`InputError` for a name that stands for two things.

    >>> from headgate.model.dataflow import Dataflow
    >>> one, other = Dataflow("a", ()), Dataflow("a", (), description="changed")
    >>> split_submission([one], [one], replace=False).continued == (one,)
    True
    >>> split_submission([one], [other], replace=False)
    Traceback (most recent call last):
        ...
    headgate.errors.InputError: dataflow 'a' is running already and is not what the file says; ...
    """
    known = {dataflow.name: dataflow for dataflow in running}
    seen: dict[str, Dataflow] = {}
    for dataflow in given:
        if seen.setdefault(dataflow.name, dataflow) is not dataflow:
            told = f"two of the files hold a dataflow '{dataflow.name}'; give one of them another name"
            raise InputError("NAME_TAKEN", told)
    changed = tuple(flow for flow in given if flow.name in known and known[flow.name] != flow)
    if changed and not replace:
        names = ", ".join(f"'{flow.name}'" for flow in changed)
        are = (
            "dataflow {} is running already and is not" if len(changed) == 1 else "dataflows {} are running and are not"
        )
        told = f"{are.format(names)} what the file says; --replace withdraws it and submits the file's, from the start"
        raise InputError("DATAFLOW_CHANGED", told)
    new = tuple(flow for flow in given if flow.name not in known)
    continued = tuple(flow for flow in given if known.get(flow.name) == flow)
    return SubmissionSplit(new, continued, changed)
