"""Spark's analysis of traces gives what NumPy gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from headgate.errors import InputError
from headgate.model.trace_statistics import TraceUnit
from headgate.runtime.batch.trace_analysis import analyse
from headgate.simulation.traces import trace_files
from headgate.simulation.variability import EC2
from tests.cli.terminal import headgate

pytestmark = pytest.mark.spark


def _long(path: Path, rows: list[tuple[str, float, float]], metric: str = "cpu") -> None:
    path.write_text(f"vm,t_s,{metric}\n" + "".join(f"{vm},{t},{value!r}\n" for vm, t, value in rows))


def test_distributions_changes_and_boxes(spark: SparkSession, tmp_path: Path) -> None:
    speed = EC2.pool(1, traces=12, hours=20).speed
    vms, slots = speed.shape
    # Two measurements in each slot, in no order, over two files; one machine has a hole of three slots.
    rows = [
        (f"vm{vm:02}", slot * 300.0 + at, float(speed[vm, slot]) * (1 + shift))
        for vm in range(vms)
        for slot in range(slots)
        for at, shift in ((10.0, 0.01), (170.0, -0.01))
        if not (vm == 3 and 50 <= slot < 53)
    ]
    order = np.random.default_rng(2).permutation(len(rows))
    _long(tmp_path / "one.csv", [rows[place] for place in order[: len(rows) // 2]])
    _long(tmp_path / "two.csv", [rows[place] for place in order[len(rows) // 2 :]])
    (found,) = analyse(spark, trace_files(tmp_path), TraceUnit.RATE)
    best = max(value for _, _, value in rows)
    shares = np.array([value for _, _, value in rows]) / best
    assert (found.metric, found.machines, found.measurements, found.gaps) == ("cpu", 12, len(rows), 1)
    assert found.below_08 == pytest.approx(float((shares < 0.8).mean()))
    wanted = np.quantile(shares, np.arange(101) / 100)
    assert np.abs(np.array(found.performance) - wanted).max() < 0.005
    means = speed / best
    changes = [
        abs(means[vm, slot + 1] / means[vm, slot] - 1)
        for vm in range(vms)
        for slot in range(slots - 1)
        if not (vm == 3 and 49 <= slot < 53)
    ]
    assert found.change_above_02 == pytest.approx(float(np.mean(np.array(changes) > 0.2)), abs=1e-6)
    assert np.abs(np.array(found.changes) - np.quantile(changes, np.arange(101) / 100)).max() < 0.02
    box = found.boxes[0]
    q1, median, q3 = np.quantile(means[0], [0.25, 0.5, 0.75])
    assert (box.vm, box.q1, box.median, box.q3) == ("vm00", *(pytest.approx(each) for each in (q1, median, q3)))
    inside = means[0][(means[0] >= q1 - 1.5 * (q3 - q1)) & (means[0] <= q3 + 1.5 * (q3 - q1))]
    assert box.low == pytest.approx(inside.min())
    assert box.high == pytest.approx(inside.max())
    assert box.outliers == slots - len(inside)


def test_wide_tables_units_and_what_is_wrong(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_text("t_s,a,b\n0,10,40\n300,20,40\n600,10,\n")
    with pytest.raises(InputError, match=r"machine 'b' at 600\.0 s has value None"):
        analyse(spark, trace_files(tmp_path), TraceUnit.USED_PERCENT)
    (tmp_path / "wide.csv").write_text("t_s,a,b\n0,10,40\n300,20,40\n600,10,100\n")
    (found,) = analyse(spark, trace_files(tmp_path), TraceUnit.USED_PERCENT)
    assert found.machines == 2
    assert found.below_08 == pytest.approx(3 / 6)
    with pytest.raises(InputError, match="not of unit 'share'"):
        analyse(spark, trace_files(tmp_path), TraceUnit.SHARE)
    (tmp_path / "wide.csv").write_text("time,a\n0,10\n")
    with pytest.raises(InputError, match="no column t_s"):
        analyse(spark, trace_files(tmp_path))
    (tmp_path / "wide.csv").write_text("vm,t_s,cpu\nx,0,1\n")
    with pytest.raises(InputError, match="did you mean 'cpu'"):
        analyse(spark, trace_files(tmp_path), metrics=["cpuu"])


def test_the_command_tells_and_draws(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = [(f"vm{n}", 300.0 * at, 10.0 + (n + at) % 5) for n in range(3) for at in range(8)]
    _long(tmp_path / "t.csv", rows)
    ran = headgate("traces", "analyse", tmp_path, "--plots", tmp_path / "pictures", "--master", "local[2]")
    assert ran.status == 0, ran.err
    assert ran.out.splitlines()[3].startswith("cpu")
    assert "how machines differ" in ran.err
    assert {file.name for file in (tmp_path / "pictures").iterdir()} == {"figure1.svg", "figure2.svg"}
    assert headgate("traces", "analyse", tmp_path, "--unit", "bananas").status == 2
    assert "no folder or file" in headgate("traces", "analyse", tmp_path / "none").err
