"""Listening on the network: addresses, encryption, both sockets at once, and what answers while no engine does."""

from __future__ import annotations

import asyncio
import selectors
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from headgate.access.principal import AccessRole
from headgate.api.application import application
from headgate.api.client import AsyncEngineClient, EngineClient
from headgate.api.network import Certificate, NetworkListener, address_of_text, listening
from headgate.api.server import serving
from headgate.api.standby import Standby, bound
from headgate.api.target import UrlTarget
from headgate.errors import HeadgateError, InputError
from headgate.service.serve import ServedEngine
from headgate.tasks.registry import default_registry
from tests.api.fake import FakeEngine
from tests.api.samples import document
from tests.api.test_tokens import ADMIN


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return Certificate(folder / "cert.pem", folder / "key.pem")


@contextmanager
def served(state: Path, certificate: Certificate | None = None) -> Iterator[tuple[NetworkListener, str]]:
    """A service on both sockets, and a token of an admin."""
    engine = ServedEngine(FakeEngine(state), default_registry())
    token = engine.tokens.create(ADMIN, "boss", AccessRole.ADMIN, (), None)["token"]
    with listening("127.0.0.1:0", certificate) as listener, serving(state, application(engine), network=[listener]):
        yield listener, token


@pytest.mark.parametrize("encrypted", [False, True])
def test_one_application_at_two_doors(tmp_path: Path, certificate: Certificate, encrypted: bool) -> None:
    with served(tmp_path, certificate if encrypted else None) as (listener, token):
        target = UrlTarget(listener.url, token, certificate.certificate if encrypted else None)
        with EngineClient(tmp_path) as here, EngineClient(target) as there:
            there.submit([document("wide")])
            assert [flow["name"] for flow in here.dataflows()["dataflows"]] == ["wide"]
            assert here.status() == there.status()
            assert (here.me()["origin"].split(",")[0], there.me()["origin"]) == ("unix socket", "token, 127.0.0.1")
        with EngineClient.at(listener.url, "hg_no", certificate.certificate) as stranger:
            with pytest.raises(HeadgateError) as refused:
                stranger.status()
            assert refused.value.condition == "NOT_AUTHENTICATED"


def test_the_same_requests_with_await(tmp_path: Path) -> None:
    async def use(listener: NetworkListener, token: str) -> list[str]:
        async with AsyncEngineClient.at(listener.url, token) as client, AsyncEngineClient(tmp_path) as local:
            await asyncio.gather(*(client.submit([document(f"f{n}", f"value > {n}")]) for n in range(3)))
            with pytest.raises(InputError) as refused:
                await client.withdraw(["none"])
            assert refused.value.condition == "UNKNOWN_DATAFLOW"
            return sorted(flow["name"] for flow in (await local.dataflows())["dataflows"])

    with served(tmp_path) as (listener, token):
        assert asyncio.run(use(listener, token)) == ["f0", "f1", "f2"]


def test_a_connection_that_is_not_encrypted_is_refused_where_it_must_be(
    tmp_path: Path, certificate: Certificate
) -> None:
    with served(tmp_path, certificate) as (listener, token):
        plain = listener.url.replace("https", "http")
        with EngineClient.at(plain, token) as client, pytest.raises(InputError) as refused:
            client.status()
        assert refused.value.condition == "NO_ENGINE"
        with EngineClient.at(listener.url, token) as client, pytest.raises(InputError):
            client.status()  # nobody vouches for this certificate


@pytest.mark.parametrize("encrypted", [False, True])
def test_while_no_engine_serves_it_says_so(tmp_path: Path, certificate: Certificate, encrypted: bool) -> None:
    tls = certificate if encrypted else None
    stop, selector = threading.Event(), selectors.DefaultSelector()
    with listening("127.0.0.1:0", tls) as listener, bound(tmp_path) as own:
        standby = Standby(own, selector, [listener])
        standby.accept(True)

        def attend() -> None:
            while not stop.is_set():
                for key, _ in selector.select(0.05):
                    key.data(key.fileobj)

        work = threading.Thread(target=attend)
        work.start()
        try:
            verify = ssl.create_default_context(cafile=str(certificate.certificate)) if encrypted else True
            with httpx.Client(verify=verify, trust_env=False) as client:
                assert client.get(f"{listener.url}/livez").json() == {"ready": True, "checks": []}
                for body in (b"{}", b"x" * 500_000):
                    answer = client.post(f"{listener.url}/v1/dataflows", content=body)
                    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
                    assert answer.json()["condition"] == "ENGINE_STARTING"
                assert client.get(f"{listener.url}/readyz").status_code == 503
        finally:
            stop.set()
            work.join()
            standby.accept(False)
            standby.close()


def test_addresses_that_are_none_are_refused() -> None:
    for text in ("", "x", ":80", "host:", "host:99999", "127.0.0.1:-1", "127.0.0.1"):
        with pytest.raises(InputError) as refused:
            address_of_text(text)
        assert refused.value.condition == "BAD_ADDRESS", text
    with listening("127.0.0.1:0") as first:
        port = first.url.rpartition(":")[2]
        with pytest.raises(InputError, match="address already in use"), listening(port):
            pass
    with suppress(InputError), listening("0.0.0.0:0") as everywhere:
        assert everywhere.is_exposed
    with listening("0") as here:
        assert not here.is_exposed


def test_a_certificate_that_is_none_is_refused(tmp_path: Path, certificate: Certificate) -> None:
    with pytest.raises(InputError, match="no certificate with its key"):
        Certificate(certificate.certificate, certificate.certificate).context()
    with pytest.raises(InputError, match="no such file"):
        Certificate(tmp_path / "none.pem", certificate.key).context()


def test_what_is_no_url_is_refused() -> None:
    for text in ("here", "ftp://x", "http://", "127.0.0.1:8080"):
        with pytest.raises(InputError) as refused:
            EngineClient.at(text)
        assert refused.value.condition == "BAD_URL"
