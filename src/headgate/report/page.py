"""Results as one HTML page that needs nothing else: tables, and pictures inside the page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["html_page"]

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2937; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem } p.note { color: #6b7280 }
table { border-collapse: collapse; margin: 1rem 0 } th, td { padding: .25rem .7rem; border-bottom: 1px solid #e5e7eb }
caption { text-align: left; font-weight: 600; padding: .25rem 0 }
th { text-align: left; font-weight: 600 } td.number { text-align: right; font-variant-numeric: tabular-nums }
figure { margin: 1rem 0; overflow-x: auto } figure svg { max-width: 100%; height: auto }
"""


def html_page(title: str, sections: Sequence[tuple[str, str | bytes]], note: str = "") -> str:
    """A page of sections, each with a heading and HTML, or the bytes of an SVG picture.

    >>> "<h1>a &amp; b</h1>" in html_page("a & b", [("numbers", "<p>1</p>")])
    True
    """
    parts = []
    for heading, content in sections:
        inner = content if isinstance(content, str) else _inline(content)
        parts.append(f"<h2>{escape(heading)}</h2>\n{inner}")
    intro = f"<p class=note>{escape(note)}</p>" if note else ""
    head = f"<meta charset=utf-8><title>{escape(title)}</title><style>{_STYLE}</style>"
    body = "\n".join(parts)
    return f"<!doctype html>\n<html lang=en>{head}\n<h1>{escape(title)}</h1>\n{intro}\n{body}\n</html>\n"


def _inline(svg: bytes) -> str:
    """An SVG without its XML declaration, which is allowed only at the start of a file."""
    text = svg.decode("utf-8")
    return f"<figure>{text[text.index('<svg') :]}</figure>"
