"""Clients of a service, for programs.

    from headgate.client import Client

    with Client.at("https://headgate.example:8080", token) as client:
        client.submit([document])

``Client(".headgate")`` reaches the engine of a state directory. :class:`AsyncClient` has the same methods, with
``await``.
"""

from __future__ import annotations

from headgate.api.client import AsyncEngineClient, EngineClient

__all__ = ["AsyncClient", "Client"]

Client = EngineClient
AsyncClient = AsyncEngineClient
