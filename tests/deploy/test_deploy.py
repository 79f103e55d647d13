"""Every deployment file passes its validator, and names only what there is."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.processes import ROOT

DEPLOY = ROOT / "deploy"
KUBERNETES = "1.37.0"


def ran(*command: object, cwd: Path = DEPLOY) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tool(name: str) -> str:
    """A tool that set-up installs beside Python."""
    path = Path(sys.executable).parent / name
    assert path.exists(), f"{name} is not installed; run make packages"
    return str(path)


def needed(name: str) -> str:
    """A tool of the system."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed on this machine")
    return path


def test_the_container_file() -> None:
    ran(tool("hadolint"), "Containerfile")
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    assert re.search(r"^USER 10001$", text, re.MULTILINE), "it does not run as root"


def test_the_compose_file() -> None:
    ran(tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", "compose.yaml")
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert {"headgate", "kafka", "postgres", "prometheus", "grafana"} == set(services)
    mounts = [mount.split(":")[0] for service in services.values() for mount in service.get("volumes", [])]
    assert [mount for mount in mounts if mount.startswith(".") and not (DEPLOY / mount).exists()] == []


def test_the_unit_of_systemd(tmp_path: Path) -> None:
    analyse = needed("systemd-analyze")
    unit = (DEPLOY / "systemd" / "headgate.service").read_text(encoding="utf-8")
    there = tmp_path / "headgate.service"
    there.write_text(unit.replace("/opt/headgate/bin/headgate", "/bin/true"), encoding="utf-8")
    done = subprocess.run([analyse, "verify", str(there)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    said = ran(analyse, "security", "--offline=true", there)
    exposure = re.search(r"exposure level for headgate.service: ([\d.]+)", said)
    assert exposure is not None
    assert float(exposure[1]) < 3.0


@pytest.mark.parametrize("overlay", ["base", "overlays/cluster"])
def test_the_manifests_of_kubernetes(overlay: str, tmp_path: Path) -> None:
    built = ran(needed("kubectl"), "kustomize", f"kustomize/{overlay}")
    (tmp_path / "all.yaml").write_text(built, encoding="utf-8")
    said = ran(tool("kubernetes-validate"), "--strict", "-k", KUBERNETES, tmp_path / "all.yaml")
    assert "passed" in said or said == ""
    parts = list(yaml.safe_load_all(built))
    engine = next(part for part in parts if part["kind"] == "StatefulSet")
    check_engine(engine, parts)


def check_engine(engine: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    labels = engine["spec"]["template"]["metadata"]["labels"]
    for part in parts:
        if part["kind"] == "Service":
            assert part["spec"]["selector"].items() <= labels.items(), "the service finds the engine"
    [container] = engine["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    ports = {port["containerPort"]: port["name"] for port in container["ports"]}
    assert container["livenessProbe"]["httpGet"] == {"path": "/livez", "port": ports[8080]}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": ports[8080]}
    given = " ".join(container["args"])
    ended = f"spark.driver.port=({'|'.join(map(str, ports))})"
    assert "spark.driver.port" not in given or re.search(ended, given)
    claims = {f"{claim['metadata']['name']}-headgate-0" for claim in engine["spec"]["volumeClaimTemplates"]}
    assert set(re.findall(r"claimName=([\w-]+)", given)) <= claims


def test_what_the_files_start_is_a_command_that_is_there() -> None:
    """Each option that a deployment file gives to headgate serve is one that it has."""
    import typer.main

    from headgate.cli.main import app

    serve = typer.main.get_command(app).commands["serve"]  # type: ignore[attr-defined]
    known = {option for parameter in serve.params for option in parameter.opts}
    container = (DEPLOY / "Containerfile").read_text(encoding="utf-8").rpartition("CMD")[2]
    unit = (DEPLOY / "systemd" / "headgate.service").read_text(encoding="utf-8")
    start = re.search(r"^ExecStart=.* serve (.*)$", unit, re.MULTILINE)
    assert start is not None
    texts = [container, start[1]]
    for file in DEPLOY.glob("kustomize/**/*.yaml"):
        texts += re.findall(r"- (--[\w-]+)", file.read_text(encoding="utf-8"))
    used = {option for text in texts for option in re.findall(r"--[a-z][\w-]*", text)}
    assert {"--listen", "--log", "--state", "--master", "--conf"} <= used
    assert used <= known
