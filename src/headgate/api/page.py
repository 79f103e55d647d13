"""The page of the service: built files of the package, served with a policy that lets nothing else be loaded."""

from __future__ import annotations

from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["DIST", "Page", "SecurityHeaders"]

DIST = Path(__file__).parents[1] / "web" / "dist"

NOT_BUILT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Headgate</title>
<p>This installation of Headgate has no page; the API is under <code>/v1</code>.</p></html>"""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; "
        "form-action 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
NEVER_CHANGES = "public, max-age=31536000, immutable"


class SecurityHeaders:
    """Tells browsers what the page and the answers may do: load nothing from elsewhere, be framed nowhere."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)


class Page:
    """What answers where no route does: files of the page, and the page itself for its own addresses."""

    def __init__(self, folder: Path = DIST) -> None:
        self._folder = folder
        self._files = StaticFiles(directory=folder) if (folder / "index.html").is_file() else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] != "http" or path.startswith(("/v1/", "/problems/")) or scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(404, "not found")
        if self._files is None:
            if path != "/":
                raise HTTPException(404, "not found")
            await HTMLResponse(NOT_BUILT)(scope, receive, send)
        elif "." in path.rpartition("/")[2]:
            response = await self._files.get_response(path.lstrip("/"), scope)
            # Built files are named after what is in them.
            response.headers["Cache-Control"] = NEVER_CHANGES if path.startswith("/assets/") else "no-cache"
            await response(scope, receive, send)
        else:
            index = FileResponse(self._folder / "index.html", headers={"Cache-Control": "no-cache"})
            await index(scope, receive, send)
