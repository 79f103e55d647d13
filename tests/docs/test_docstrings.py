"""The examples in the docstrings of the rooms that need no Spark."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import headgate

NEED_SPARK = ("headgate.runtime", "headgate.tasks.frames")
ELSEWHERE = ("headgate_benchmarks.riotbench.peers.",)
"""Programs that run where other packages are."""

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(headgate.__path__, "headgate.", onerror=lambda _: None)
    if not module.name.startswith((*NEED_SPARK, *ELSEWHERE)) and not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_module_run(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0
