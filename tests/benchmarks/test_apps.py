"""``headgate bench apps``: its records, how it compares what came out, and all systems on few events."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from headgate.documents import parse
from headgate.errors import HeadgateError
from headgate_benchmarks.beyond_start_up import Cost
from headgate_benchmarks.peer_packages import peer_python
from headgate_benchmarks.riotbench.benchmark import APPS, AppCost, AppRuns, Sizes, measured
from headgate_benchmarks.riotbench.data import charts_of, put_records, rows_of, same_charts, same_rows
from headgate_benchmarks.riotbench.on_headgate import application
from headgate_benchmarks.riotbench.running import ran


def line(source: str, bt: int, **values: float) -> str:
    entries = [{"n": "source", "sv": source}, *({"n": name, "v": value} for name, value in values.items())]
    return json.dumps({"e": entries, "bt": bt})


def test_all_records_of_a_sender_are_in_one_log(tmp_path: Path) -> None:
    put_records(tmp_path / "in", 500, 1, 200)
    files = sorted(path.name for path in (tmp_path / "in").iterdir())
    assert files == [f"{batch:06d}-{log}.txt" for batch in range(3) for log in range(2)]
    senders: list[set[str]] = [set(), set()]
    total = 0
    for path in (tmp_path / "in").iterdir():
        for text in path.read_bytes().splitlines():
            total += 1
            try:
                senders[int(path.stem[-1])].add(json.loads(text)["e"][0]["sv"][:30])
            except (ValueError, KeyError):
                continue
    assert total == 500
    assert not {s for s in senders[0] & senders[1] if s.startswith("ci4")}


def test_rows_are_compared_whatever_their_order(tmp_path: Path) -> None:
    for name, texts in {
        "one": [line("a", 1, t=0.1 + 0.2), line("b", 2, t=5)],
        "two": [line("b", 2, t=5.0), line("a", 1, t=0.3)],
        "three": [line("b", 2, t=5.1), line("a", 1, t=0.3)],
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "part.txt").write_text("\n".join(texts) + "\n")
    one, two, three = (rows_of(tmp_path / name) for name in ("one", "two", "three"))
    assert same_rows(one, two) == 1.0
    assert same_rows(one, three) == 0.5
    assert same_rows(one, two[:1]) == 0.5


def test_charts_are_compared_to_the_byte(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a", b"1")
    assert same_charts(charts_of(tmp_path), {"a": b"1"}) == 1.0
    assert same_charts(charts_of(tmp_path), {"a": b"2"}) == 0.0


@pytest.mark.parametrize("name", ["etl", "etl_wide", "stats"])
def test_applications_are_those_of_the_examples(name: str, tmp_path: Path) -> None:
    flow = parse(json.dumps(application(name, tmp_path / "in", tmp_path / "out")), "json").dataflow
    assert [task.type for task in flow.tasks if task.type in ("generate", "read_files")] == ["read_files"]


def test_a_program_that_fails_says_so(tmp_path: Path) -> None:
    program = tmp_path / "broken.py"
    program.write_text("raise SystemExit('out of luck')")
    with pytest.raises(HeadgateError, match=r"broken\.py ended before it was done: out of luck"):
        ran(Path(sys.executable), [program], tmp_path / "log")


def test_cpu_of_a_program_and_of_what_it_starts(tmp_path: Path) -> None:
    burn = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
    program = tmp_path / "burning.py"
    program.write_text(
        f"import subprocess, sys, peer_output\nsubprocess.run([sys.executable, '-c', {burn!r}])\n"
        "peer_output.done(x='1')"
    )
    run = ran(Path(sys.executable), [program], tmp_path / "log")
    assert run.cpu_s >= 0.25
    assert run.versions == {"x": "1"}


def test_a_failed_installation_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venv.EnvBuilder.create", lambda _, folder: Path(folder).mkdir(parents=True))
    refused = subprocess.CompletedProcess([], 1, "", "noise\nERROR: No matching distribution found\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: refused)
    said: list[str] = []
    with pytest.raises(HeadgateError, match="No matching distribution") as refusal:
        peer_python(said.append, ["nothing==1"], tmp_path)
    assert refusal.value.condition == "NO_PEERS"
    assert "nothing==1" in said[0]


def test_figures_and_pictures(tmp_path: Path) -> None:
    def cost(per_million: float) -> AppCost:
        return AppCost(Cost((5.0, 5.0 + per_million), (5.0, 6.0), (0, 1_000_000)), {"x": "1"})

    result = measured(
        {
            "etl": {"headgate": cost(8), "pyspark": cost(16), "flink": cost(10), "bytewax": cost(32)},
            "stats": {"headgate": cost(12), "pyspark": cost(10)},
        }
    )
    wanted = {"cpu_vs_pyspark": 1.2, "cpu_vs_flink": 0.8, "cpu_vs_bytewax": 0.25, "etl_cpu_vs_pyspark": 0.5}
    assert {name: result.figures[name] for name in wanted} == pytest.approx(wanted)
    assert result.versions == {"x": "1"}
    assert APPS.plot is not None
    (picture,) = APPS.plot(result, tmp_path)
    assert picture.stat().st_size > 1_000


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_etl_puts_out_what_pyspark_does(tmp_path: Path) -> None:
    runs = AppRuns(tmp_path, 1, print, None, Sizes(per_file={"etl": 1_000}))
    runs.put("etl", 1_500)
    for system in ("headgate", "pyspark"):
        runs.run("etl", system, 1_500)
    rows = runs.output("etl", "headgate", 1_500)
    assert len(rows) > 1_400
    assert same_rows(rows, runs.output("etl", "pyspark", 1_500)) == 1.0


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_all_systems_put_out_the_same() -> None:
    events = {"etl": (1_500, 3_000), "etl_fields": (500, 1_000), "stats": (150, 300)}
    assert APPS.whole is not None
    result = APPS.whole(1, print, Sizes(events, dict.fromkeys(events, 1_000)))
    assert result.figures["same_rows"] == 1.0
