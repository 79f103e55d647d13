"""The examples in the docstrings of RIoTBench's package."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import headgate_riotbench

MODULES = [module.name for module in pkgutil.iter_modules(headgate_riotbench.__path__)]


@pytest.mark.parametrize("name", [name for name in MODULES if name != "mqtt_reader"])
def test_examples_of_the_module_run(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(f"headgate_riotbench.{name}"), optionflags=doctest.ELLIPSIS)
    assert failed == 0
