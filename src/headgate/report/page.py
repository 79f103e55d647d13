"""Results as one HTML page that needs nothing else: tables, and pictures inside the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

__all__ = ["html_page", "html_table"]

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2937; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem } p.note { color: #6b7280 }
table { border-collapse: collapse; margin: 1rem 0 } th, td { padding: .25rem .7rem; border-bottom: 1px solid #e5e7eb }
th { text-align: left; font-weight: 600 } td.n { text-align: right; font-variant-numeric: tabular-nums }
figure { margin: 1rem 0; overflow-x: auto } figure svg { max-width: 100%; height: auto }
"""


def html_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as a table; the columns are the keys of the first."""
    if not rows:
        return "<p class=note>nothing to show</p>"
    names = list(rows[0])
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(_cell(row.get(name)) for name in names)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"<td class=n>{value:,.4g}</td>"
    if isinstance(value, int):
        return f"<td class=n>{value:,}</td>"
    return f"<td>{'–' if value is None else escape(str(value))}</td>"


def html_page(title: str, sections: Sequence[tuple[str, str | bytes]], note: str = "") -> str:
    """A page of sections, each with a heading and HTML, or the bytes of an SVG picture.

    >>> "<h1>a &amp; b</h1>" in html_page("a & b", [("numbers", html_table([{"x": 1}]))])
    True
    """
    parts = []
    for heading, content in sections:
        inner = content if isinstance(content, str) else _inline(content)
        parts.append(f"<h2>{escape(heading)}</h2>\n{inner}")
    message = f"<p class=note>{escape(note)}</p>" if note else ""
    head = f"<meta charset=utf-8><title>{escape(title)}</title><style>{_STYLE}</style>"
    body = "\n".join(parts)
    return f"<!doctype html>\n<html lang=en>{head}\n<h1>{escape(title)}</h1>\n{message}\n{body}\n</html>\n"


def _inline(svg: bytes) -> str:
    """An SVG without its XML head, which may stand only at the top of a file of its own."""
    text = svg.decode("utf-8")
    return f"<figure>{text[text.index('<svg') :]}</figure>"
