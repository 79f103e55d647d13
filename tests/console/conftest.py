"""A browser, and a city that runs behind it; without a browser these tests are skipped with one sentence."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pyspark.sql import SparkSession

    from tests.console.city import City


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        message = "no chromium here: scripts/setup.sh installs it where it may, or install your system's package"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium)
        yield started
        started.close()


@pytest.fixture(scope="module")
def city(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[City]:
    from tests.console.city import City

    with City(tmp_path_factory.mktemp("city"), spark).running() as running:
        yield running


@pytest.fixture(autouse=True)
def _no_query_left() -> None:
    """The city goes on from test to test."""
