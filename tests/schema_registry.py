"""A schema registry on the loopback interface, of Confluent's protocol as far as readers use it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["SchemaRegistry", "registry"]


class SchemaRegistry:
    """Schemas by number and by subject; ``asked`` are the paths of requests."""

    def __init__(self) -> None:
        self.pages: dict[str, Mapping[str, Any]] = {"/schemas/types": {}}
        self.asked: list[str] = []
        self.fails = False
        self.url = ""

    def add(self, number: int, kind: str, text: str, **references: str) -> None:
        """A schema; ``references`` are subjects, by the names under which it refers to them."""
        named = [{"name": n.replace("__", "/"), "subject": s, "version": 1} for n, s in references.items()]
        page: dict[str, Any] = {"schema": text, "references": named}
        if kind != "AVRO":  # which registries leave out
            page["schemaType"] = kind
        self.pages[f"/schemas/ids/{number}"] = page

    def add_subject(self, name: str, kind: str, text: str) -> None:
        """A schema to which others refer."""
        self.pages[f"/subjects/{name}/versions/1"] = {"schema": text, "schemaType": kind}


@contextmanager
def registry() -> Iterator[SchemaRegistry]:
    """A registry, for as long as the block lasts."""
    made = SchemaRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            page = made.pages.get(self.path)
            status = 503 if made.fails else 200 if page is not None else 404
            body = json.dumps(page if page is not None else {"error_code": 40403}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
