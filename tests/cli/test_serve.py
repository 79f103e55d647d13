"""``headgate serve`` as a person starts it: reached from the network, killed, and stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pytest

from headgate.api.client import EngineClient
from tests.cli.terminal import headgate
from tests.cli.test_serving import write_flow
from tests.processes import PATIENCE_S, end, start
from tests.runtime.small import json_rows, numbered, put, wait_for


def test_what_serve_cannot_do_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments, condition in (
        (("--listen", "nowhere"), "is no address"),
        (("--tls-certificate", "c.pem"), "belong together"),
        (("--tls-certificate", "c.pem", "--tls-key", "k.pem"), "--listen"),
        (("--listen", "0", "--tls-certificate", "c.pem", "--tls-key", "k.pem"), "cannot read the certificate"),
        (("--demo", "x.yaml"), "its own dataflows"),
    ):
        ran = headgate("serve", *arguments)
        assert (ran.status, condition in ran.err) == (2, True), ran.err
    assert not (tmp_path / ".headgate").exists(), "nothing has been begun"


def test_a_command_line_that_is_pointed_nowhere_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "is no URL" in headgate("--url", "here", "list").err
    assert "Cannot reach http://127.0.0.1:9" in headgate("--url", "http://127.0.0.1:9", "list").err
    with mock.patch.dict(os.environ, {"HEADGATE_URL": "http://127.0.0.1:9", "HEADGATE_TOKEN_FILE": "none"}):
        assert "cannot read the token" in headgate("bill").err


@pytest.mark.spark
@pytest.mark.own_spark
def test_a_service_is_used_from_the_network_and_survives_its_engine(tmp_path: Path) -> None:
    put(tmp_path / "in", "0", numbered(0, 6))
    flow, log = write_flow(tmp_path, "one"), tmp_path / "log"
    command = [sys.executable, "-m", "headgate", "serve", "--listen", "127.0.0.1:0", "--log", "json", "--log-requests"]
    command += ["--trigger", "100ms", "--master", "local[2]", "--state", str(tmp_path / "state")]
    process = start(command, tmp_path)
    try:
        wait_for(lambda: process.poll() is not None or '"listening on' in log.read_text(), "a service", PATIENCE_S)
        listened = re.search(r"listening on (http://[\d.:]+)", log.read_text())
        assert listened is not None, log.read_text()
        url = listened[1]
        assert httpx.get(f"{url}/livez", trust_env=False).status_code == 200, "while Spark is being started"
        with EngineClient(tmp_path / "state", patience_s=PATIENCE_S) as admin:
            token = admin.create_token("ci", "operator")["token"]
        with mock.patch.dict(os.environ, {"HEADGATE_URL": url, "HEADGATE_TOKEN": token}):
            submitted = headgate("submit", flow, "--json")
            assert submitted.status == 0, submitted.err
            assert submitted.json["submitted"][0]["added"] == ["read", "some", "count", "write"]
            wait_for(lambda: len(json_rows(tmp_path / "out_one")) == 6, "the rows", PATIENCE_S)
            assert httpx.get(f"{url}/readyz", trust_env=False).json()["ready"]
            remote = {name: headgate(name, "--json") for name in ("list", "whoami", "access", "dead-letters")}
            top, bill = headgate("top", "--once"), headgate("bill")
        assert {name: ran.status for name, ran in remote.items()} == dict.fromkeys(remote, 0)
        assert remote["whoami"].json["name"] == "ci"
        local = headgate("list", "--state", tmp_path / "state", "--json").json
        assert _without_figures(remote["list"].json) == _without_figures(local), "figures move on between two answers"
        assert remote["dead-letters"].json == {"dead_letters": []}
        assert (top.status, bill.status) == (0, 0), top.err + bill.err
        assert "one" in bill.out

        engine = remote["list"].json["process"]
        os.kill(engine, signal.SIGKILL)
        wait_for(lambda: "Starting again" in log.read_text(), "a new engine", PATIENCE_S)
        with EngineClient.at(url, token) as client:  # waits for it, and the token still holds
            again = client.dataflows()
        assert again["process"] != engine
        assert [one["name"] for one in again["dataflows"]] == ["one"]

        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
        events = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
        asked = [event for event in events if event["event"] == "request" and event["path"] == "/v1/me"]
        assert [(one["principal"], one["status"], one["address"]) for one in asked] == [("ci", 200, "127.0.0.1")]
        assert any(event["event"] == "dataflow" and event["dataflow"] == "one" for event in events)
    finally:
        end(process)


def _without_figures(answer: dict[str, Any]) -> dict[str, Any]:
    moving = ("figures", "level")
    flows = [{key: value for key, value in flow.items() if key not in moving} for flow in answer["dataflows"]]
    return {**answer, "dataflows": flows}
