"""Somebody at a browser, who notes what nobody should see: errors, requests to other hosts, what few people can use."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from PIL import Image

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Locator, Page

    from tests.console.city import City

PICTURES = Path(__file__).parents[2] / "docs" / "pictures" / "console"
WIDTH, HEIGHT = 1280, 800
PATIENCE_MS = 180_000
"""Things come when the engine has them, on a machine that others use too."""


class Visitor:
    """A page in a browser, with what went wrong on it."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self._url = page, url
        self.expected: tuple[int, ...] = ()
        """Refusals that belong to the journey; a browser logs them as errors."""

        self.faults: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: self._note(self._is_error(message), f"console: {message.text}"))
        page.on("pageerror", lambda error: self._note(True, f"error: {error}"))
        page.on("request", lambda request: self._note(self._is_foreign(request.url), f"foreign: {request.url}"))

    def goes_to(self, address: str) -> None:
        self.page.goto(self._url + address)

    def sees(self, text: str) -> Locator:
        """Wait for a text, and return what has it."""
        element = self.page.get_by_text(text).first
        try:
            element.wait_for()
        except Exception as error:
            error.add_note(f"the page at {self.page.url} says:\n{self.page.inner_text('body')}")
            raise
        return element

    def finds(self, role: Any, name: str, exact: bool = False) -> Locator:
        """Wait for what has a role and a name, as a screen reader does."""
        element = self.page.get_by_role(role, name=name, exact=exact).first
        element.wait_for()
        return element

    def waits_until(self, expression: str, arg: Any = None, timeout_s: float = PATIENCE_MS / 1000) -> None:
        """Wait until an expression is true, or a function of ``arg``.

        The browser's own waiting evaluates text in the page, which the service's policy forbids.
        """
        until = time.monotonic() + timeout_s
        while not self.page.evaluate(expression, arg):
            assert time.monotonic() < until, f"still not: {expression}"
            self.page.wait_for_timeout(100)

    def query(self) -> str:
        return urlsplit(self.page.url).query

    def path(self) -> str:
        return urlsplit(self.page.url).path

    def checks(self, picture: str) -> None:
        """Nothing has gone wrong so far, and everybody can use the page, in light and in dark."""
        from axe_playwright_python.sync_playwright import Axe

        rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
        for scheme in ("light", "dark"):
            self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            self.waits_until(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
            seen = Axe().run(self.page, options=rules).response
            wrong = [(one["id"], one["nodes"][0]["html"][:200]) for one in seen["violations"]]
            assert wrong == [], f"{picture} in {scheme}"
            if scheme == "light":
                self._keep(picture)
        self.page.emulate_media(color_scheme="light")
        assert self.faults == []

    def _keep(self, name: str) -> None:
        """With HEADGATE_PICTURES set, the documentation gets its pictures here."""
        if os.environ.get("HEADGATE_PICTURES"):
            PICTURES.mkdir(parents=True, exist_ok=True)
            image = Image.open(io.BytesIO(self.page.screenshot()))
            few = image.convert("RGB").quantize(200, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
            few.save(PICTURES / f"{name}.png", optimize=True)

    def _note(self, wrong: bool, what: str) -> None:
        if wrong:
            self.faults.append(what)

    def _is_error(self, message: ConsoleMessage) -> bool:
        return message.type == "error" and not any(f"status of {code}" in message.text for code in self.expected)

    def _is_foreign(self, url: str) -> bool:
        return not url.startswith((self._url, "data:", "blob:"))


@contextmanager
def visiting(browser: Browser, city: City, width: int = WIDTH, height: int = HEIGHT) -> Iterator[Visitor]:
    """Somebody who has signed in."""
    context = browser.new_context(viewport={"width": width, "height": height}, timezone_id="Europe/Berlin")
    try:
        if city.token:
            signed = context.request.post(f"{city.url}/v1/session", data={"token": city.token})
            assert signed.ok, signed.text()
        yield Visitor(context.new_page(), city.url)
    finally:
        context.close()
