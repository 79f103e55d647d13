"""The service that the command line speaks to: that of ``--url`` or ``HEADGATE_URL``, else a state directory's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.cli.output import sentence_to_stderr
from headgate.cli.root_options import ROOT_OPTIONS
from headgate.errors import InputError, os_reason

if TYPE_CHECKING:
    from headgate.api.client import EngineClient
    from headgate.model.cluster.observation import Observation

__all__ = ["TOKEN", "TOKEN_FILE", "URL", "client_of", "remote_latest", "remote_observations", "service_url"]

URL, TOKEN, TOKEN_FILE, CERTIFICATES = "HEADGATE_URL", "HEADGATE_TOKEN", "HEADGATE_TOKEN_FILE", "HEADGATE_CERTIFICATES"
A_PAGE = 200


def service_url() -> str | None:
    """The URL of a service, if the command line is pointed at one."""
    return ROOT_OPTIONS.get().url or os.environ.get(URL) or None


def client_of(state: Path) -> EngineClient:
    """A client of the service at the URL that was given, else of the engine of a state directory."""
    from headgate.api.client import EngineClient
    from headgate.api.target import SocketTarget, UrlTarget

    url, certificates = service_url(), os.environ.get(CERTIFICATES)
    target = (
        SocketTarget(state) if url is None else UrlTarget(url, _token(), Path(certificates) if certificates else None)
    )
    return EngineClient(target, lambda reason: sentence_to_stderr(f"{reason} Waiting for it."))


def remote_observations(since: float) -> Iterator[Observation]:
    """What a service on the network has measured since a moment, oldest first."""
    from pydantic import TypeAdapter

    from headgate.model.cluster.observation import Observation

    form = TypeAdapter(Observation)
    with client_of(Path()) as client:
        while page := client.observations(since, A_PAGE, oldest=True)["observations"]:
            yield from map(form.validate_python, page)
            since = page[-1]["ended"]


def remote_latest(most: int) -> list[Observation]:
    """The newest of what a service on the network has measured, oldest first."""
    from pydantic import TypeAdapter

    from headgate.model.cluster.observation import Observation

    with client_of(Path()) as client:
        return TypeAdapter(list[Observation]).validate_python(client.observations(limit=most)["observations"])


def _token() -> str | None:
    """The token; not an option, because other users can read command lines."""
    if os.environ.get(TOKEN):
        return os.environ[TOKEN]
    file = os.environ.get(TOKEN_FILE)
    if not file:
        return None
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = os_reason(error) if isinstance(error, OSError) else "not UTF-8 text"
        raise InputError("BAD_TOKEN", f"cannot read the token in {file}: {reason}") from None
