"""What is said of a master before Spark is started on it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from headgate.errors import InputError
from headgate.runtime.engine.masters import check_master, settings_for


@pytest.fixture
def port() -> int:
    """A port where nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[4, 2]"])
def test_local_ones_are_fine(master: str) -> None:
    check_master(master, {})
    assert settings_for(master)["spark.driver.host"] == "127.0.0.1"


@pytest.mark.parametrize("master", ["", "locl[2]", "local[0]", "local[two]", "spark://", "spark://host", "mesos://a:1"])
def test_what_is_none_is_told_with_what_would_be(master: str) -> None:
    with pytest.raises(InputError, match="is no Spark master; give local") as caught:
        check_master(master, {})
    assert caught.value.condition == "BAD_MASTER"


def test_a_standalone_master_must_answer(port: int) -> None:
    with pytest.raises(InputError, match=f"nothing answers at spark://127.0.0.1:{port}; start a cluster"):
        check_master(f"spark://127.0.0.1:{port}", {})
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        there = listening.getsockname()[1]
        check_master(f"spark://127.0.0.1:{there}", {})
        check_master(f"spark://127.0.0.1:{port},127.0.0.1:{there}", {})


def test_yarn_needs_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="HADOOP_CONF_DIR or YARN_CONF_DIR"):
        check_master("yarn", {})
    monkeypatch.setenv("YARN_CONF_DIR", "/etc/yarn")
    check_master("yarn", {})


def test_kubernetes_needs_an_image() -> None:
    with pytest.raises(InputError, match=r"--conf spark.kubernetes.container.image=IMAGE"):
        check_master("k8s://https://127.0.0.1:443", {})
    check_master("k8s://https://127.0.0.1:443", {"spark.kubernetes.container.image": "headgate:1"})


def test_off_this_process_executors_leave_gently_and_find_what_we_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/my/functions", ""]))
    found = settings_for("spark://127.0.0.1:7077")
    assert found["spark.decommission.enabled"] == "true"
    assert found["spark.driver.host"] == found["spark.driver.bindAddress"] == "127.0.0.1"
    path = found["spark.executorEnv.PYTHONPATH"].split(os.pathsep)
    assert path[0] == "/my/functions"
    assert any((Path(folder) / "headgate" / "__init__.py").exists() for folder in path)


@pytest.mark.parametrize("master", ["yarn", "spark://no-such-host.invalid:7077", "k8s://https://no-such-host.invalid"])
def test_where_the_way_is_not_known_the_driver_is_called_as_spark_calls_it(master: str) -> None:
    assert "spark.driver.host" not in settings_for(master)
