"""Fails the build when a page would load something from the network: scripts, styles, fonts or pictures."""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preload|icon))[^>]*\bhref=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|(?:@import|url\()\s*["']?((?:https?:)?//[^"')\s]+)"""
)


def remote_resources(text: str) -> list[str]:
    """The addresses that a browser would fetch to show a page or apply a style; links are not among them.

    >>> remote_resources('<script src="https://cdn.example/x.js"></script><a href="https://example.org">link</a>')
    ['https://cdn.example/x.js']
    """
    return [next(filter(None, groups)) for groups in LOADED.findall(text)]


def _check(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    for path in sorted(Path(app.outdir).rglob("*")):
        if path.suffix in (".html", ".css") and (addresses := remote_resources(path.read_text(encoding="utf-8"))):
            raise ExtensionError(f"{path.relative_to(app.outdir)} loads {addresses[0]} from the network")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
