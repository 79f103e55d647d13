"""Every command that asks an engine says the same from the network, and its ``--json`` is the route's answer."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from headgate.api.client import EngineClient
from headgate.store.observations import ObservationHistory
from tests.api.samples import document
from tests.api.test_network import served
from tests.cli.terminal import headgate
from tests.store.test_observations import observation

READING: dict[tuple[str, ...], Callable[[EngineClient], Any]] = {
    ("list",): lambda client: client.dataflows(),
    ("status",): lambda client: client.status(),
    ("status", "wide"): lambda client: client.status("wide"),
    ("access",): lambda client: client.access(),
    ("access", "--audit"): lambda client: client.audit(limit=50),
    ("dead-letters",): lambda client: client.dead_letters(),
}
"""Commands, and the route of each."""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "version").write_text("6", encoding="utf-8")
    ObservationHistory(tmp_path / "observations").append(observation(time.time()))
    return tmp_path


def test_what_is_printed_is_what_the_route_answers(state: Path) -> None:
    with served(state) as (listener, token), EngineClient.at(listener.url, token) as client:
        client.submit([document("wide"), document("narrow", "value > 5")])
        with mock.patch.dict(os.environ, {"HEADGATE_URL": listener.url, "HEADGATE_TOKEN": token}):
            for words, route in READING.items():
                ran = headgate(*words, "--json")
                assert ran.status == 0, ran.err
                assert ran.json == route(client), words
            measured = headgate("observations", "--json").json
            assert measured == client.observations()["observations"][0]
            for words in (("pause", "wide"), ("resume", "wide"), ("withdraw", "wide", "narrow")):
                ran = headgate(*words, "--json")
                assert ran.json["snapshot"] == client.status()["snapshot"], words
        for words in READING:
            if "status" not in words:
                local = headgate(*words, "--state", state, "--json")
                with mock.patch.dict(os.environ, {"HEADGATE_TOKEN": token}):
                    there = headgate("--url", listener.url, *words, "--json")
                assert local.json == there.json, words


def test_a_token_is_made_used_and_revoked_from_afar(state: Path) -> None:
    with (
        served(state) as (listener, token),
        mock.patch.dict(os.environ, {"HEADGATE_URL": listener.url, "HEADGATE_TOKEN": token}),
    ):
        made = headgate("token", "create", "ci", "--role", "submitter", "--team", "city", "--expires", "1h")
        secret = made.out.strip()
        assert (made.status, secret[:3]) == (0, "hg_")
        assert "ci" in headgate("token", "list").out
        with mock.patch.dict(os.environ, {"HEADGATE_TOKEN": secret}):
            assert headgate("whoami", "--json").json["teams"] == ["city"]
            assert "may not grant" in headgate("token", "create", "more").err
        assert headgate("token", "revoke", "ci").out == "ci is revoked.\n"
        with mock.patch.dict(os.environ, {"HEADGATE_TOKEN": secret}):
            assert headgate("list").status == 2
        assert headgate("token", "create", "x", "--role", "none").status == 2
