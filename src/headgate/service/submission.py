"""What to do with dataflows that are given to an engine which may be running some of them already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.errors import InputError
from headgate.sharing.deduplicate import SignedDataflow
from headgate.sharing.running import RunningSet

__all__ = ["SubmissionSplit", "split_submission"]


@dataclass(frozen=True, slots=True)
class SubmissionSplit:
    """Which dataflows are new, which simply go on, and which take the place of a running one of their name."""

    new: tuple[SignedDataflow, ...] = ()
    continued: tuple[SignedDataflow, ...] = ()
    replacing: tuple[SignedDataflow, ...] = ()


def split_submission(running: RunningSet, given: Sequence[SignedDataflow], replace: bool) -> SubmissionSplit:
    """Sort dataflows by what has to be done; raises :class:`InputError` for a name that two different ones have.

    >>> from headgate.model.dataflow import Dataflow
    >>> one, other = (SignedDataflow(Dataflow("a", (), description=text), {}) for text in ("", "changed"))
    >>> running, _ = RunningSet().submit(one)
    >>> split_submission(running, [one], replace=False).continued == (one,)
    True
    >>> split_submission(running, [other], replace=False)
    Traceback (most recent call last):
        ...
    headgate.errors.InputError: a different version of dataflow 'a' is running; ...
    """
    seen: dict[str, SignedDataflow] = {}
    for signed in given:
        if seen.setdefault(signed.name, signed) is not signed:
            message = f"two of the files hold a dataflow '{signed.name}'; give one of them another name"
            raise InputError("NAME_TAKEN", message)
    known = {signed.name: running.submitted.get(signed.name) for signed in given}
    new = tuple(signed for signed in given if known[signed.name] is None)
    there = [(signed, one) for signed in given if (one := known[signed.name]) is not None]
    continued = tuple(signed for signed, one in there if one.written == signed.dataflow)
    changed = tuple(signed for signed, one in there if one.written != signed.dataflow)
    if changed and not replace:
        names = ", ".join(f"'{signed.name}'" for signed in changed)
        are = f"a different version of dataflow {names} is" if len(changed) == 1 else f"other versions of {names} are"
        message = f"{are} running; use --replace to update: tasks that are the same keep their state"
        raise InputError("DATAFLOW_CHANGED", message)
    return SubmissionSplit(new, continued, changed)
