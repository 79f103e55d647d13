"""Which sensors fail, and whether somebody has seen to them since: the readings joined with the maintenance log."""

from headgate import Flow

flow = Flow(
    "quality",
    owner="environment",
    description="Failing sensors, with the last repair",
    service_level={"throughput_min": 0.7, "processors_max": 4},
)

readings = flow.source("read_files", id="readings", path="data/city/*.jsonl", format="text")
parse = flow.task(
    "parse_json",
    id="parse",
    columns="sensor string, district string, t timestamp, temperature double, humidity double, dust double",
)
failures = flow.task(
    "window", id="failures", time="t", size="1h", late_by="5min", key=["sensor"], columns={"failures": "count(*)"}
)
repairs = flow.source(
    "read_files",
    id="repairs",
    path="data/repairs/*.csv",
    format="csv",
    columns="sensor string, repaired_at timestamp, by string",
)
matched = flow.task(
    "join", id="matched", on=["sensor"], kind="left", time=["window_end", "repaired_at"], within="1d", late_by="1h"
)
report = flow.sink("write_table", id="report", url="sqlite:///out/quality.db", table="failing")

readings >> parse
parse.where("temperature is null") >> failures
[failures, repairs] >> matched  # the first is the left side of the join
matched >> report
