"""Write RIoTBench's applications as dataflows, and the small tables that they look up in.

    .venv/bin/python examples/riotbench/make.py

ETL, STATS, TRAIN and PRED for city, taxi and fitness data, as published where that is possible, with parameters of the
published files. Names are etl.yaml for the city, etl_taxi.yaml, etl_fitness.yaml and so on. A test fails when a file is
out of date.
"""

import random
from pathlib import Path

import yaml
from alternates import measured

from headgate_riotbench.generate import FIELDS, Generate, sensors

HERE = Path(__file__).resolve().parent
TABLES = "examples/riotbench/tables"
OUT = "out/riotbench"
SETS = ("city", "taxi", "fitness")

BODY = [f"acc_{part}_{axis}" for part in ("chest", "ankle", "arm") for axis in "xyz"]
RANGES = {
    "city": {
        "temperature": [-12.5, 43.1],
        "humidity": [10.7, 95.2],
        "light": [1345, 26282],
        "dust": [186.61, 5188.21],
        "airquality_raw": [17, 363],
    },
    "taxi": {
        "trip_time_in_secs": [140, 3155],
        "trip_distance": [1.37, 29.86],
        "fare_amount": [6, 201],
        "tip_amount": [0.65, 38.55],
        "tolls_amount": [2.5, 18],
    },
    "fitness": {**{name: [-14.4, 8.7] for name in BODY}, "ecg_lead_1": [-4.94, 6.14], "ecg_lead_2": [-6.79, 6.67]},
}
"""What RGF lets pass; these are also the fields that are observed."""

ATTRIBUTES = {
    "city": ("place", "kind"),
    "taxi": ("company", "driver", "home"),
    "fitness": ("age", "gender"),
}
BLOCKS = {"city": 5, "taxi": 10, "fitness": 10}
ACCUMULATED = {"city": 20, "taxi": 10, "fitness": 20}
WORKS = {
    "city": {
        "features": ["temperature", "humidity", "dust"],
        "target": "airquality_raw",
        "label": "case when airquality_raw > 60 then 'Bad' when airquality_raw > 45 then 'Good' "
        "when airquality_raw is not null then 'VeryGood' end",
        "threshold": "case when dust > 1300 then 'Bad' when dust > 550 then 'Good' else 'VeryGood' end",
    },
    "taxi": {
        "features": ["trip_time_in_secs", "trip_distance"],
        "target": "fare_amount",
        "label": "case when try_divide(fare_amount, trip_distance) > 4 then 'Bad' when fare_amount > 12 then 'Good' "
        "when fare_amount is not null then 'VeryGood' end",
        "threshold": "case when trip_distance < 1.7 then 'Bad' when trip_distance > 4 then 'Good' else 'VeryGood' end",
    },
    "fitness": {
        "features": ["acc_chest_x", "acc_ankle_y", "acc_arm_y", "ecg_lead_1"],
        "target": "acc_arm_x",
        "label": "concat('activity ', cast(label as int))",
        "threshold": "case when abs(acc_chest_x + 9.3) > 2.2 then 'activity 3' when abs(acc_chest_x + 9.3) > 1 "
        "then 'activity 2' when abs(acc_chest_x + 9.3) > 0.3 then 'activity 1' else 'activity 0' end",
    },
}
"""What MLT and DTT learn, and a rule of thumb that stands in for the tree where it must be cheap."""

VALUES = measured(RANGES, {data: work["features"] for data, work in WORKS.items()})
"""What the alternates are worth, measured."""


def key(data):
    return FIELDS[data][0].name


def observed(data):
    return list(RANGES[data])


def source(data, rows_per_s, bad):
    return {
        "id": "source",
        "type": "generate",
        "config": {"data": data, "rows_per_s": rows_per_s, "bad": bad},
    }


def parse(data):
    columns = ", ".join(f"{field.name} {'double' if field.number else 'string'}" for field in FIELDS[data])
    return {
        "id": "parse",
        "type": "parse_senml",
        "config": {
            "columns": columns,
            "required": [key(data)],
            "units": {field.name: field.unit for field in FIELDS[data] if field.number},
            "longest": 10_000,
            "keep": True,
        },
        "on_error": "dead_letter",
        "inputs": ["source"],
    }


def etl(data, wide=False):
    """SOURCE, SML, RGF, BLF, INP, JOIN, ANN, C2S, and a sink in the place of MQP."""
    name = key(data)
    tasks = [
        source(data, 100, 0.01),
        parse(data),
        {
            "id": "in_range",
            "type": "range_filter",
            "config": {"ranges": RANGES[data], "outside": "null"},
            "inputs": ["parse"],
        },
        {
            "id": "known",
            "type": "bloom_filter",
            "config": {"column": name, "ids": f"{TABLES}/{data}_ids.txt", "nulls": observed(data)},
            "inputs": ["in_range"],
        },
    ]
    last = "known"
    if wide:
        tasks.append(
            {
                "id": "fill",
                "type": "interpolate",
                "config": {"key": [name], "columns": observed(data), "size": 5},
                "inputs": [last],
            }
        )
        last = "fill"
    else:
        tasks.append(
            {"id": "fields", "type": "unpivot", "config": {"columns": observed(data)}, "inputs": [last]},
        )
        last = "fields"
        if data != "taxi":  # whose window is 0: off
            tasks.append(
                {
                    "id": "fill",
                    "type": "interpolate",
                    "config": {"key": [name, "field"], "columns": ["value"], "size": 5},
                    "inputs": [last],
                }
            )
            last = "fill"
        columns = ", ".join(f"{field} double" for field in observed(data))
        tasks.append(
            {"id": "whole", "type": "join_fields", "config": {"key": ["id"], "columns": columns}, "inputs": [last]}
        )
        last = "whole"
    columns = ", ".join(f"{column} string" for column in (name, *ATTRIBUTES[data]))
    texts = {field.name: field.unit for field in FIELDS[data] if not field.number}
    numbers = {field.name: field.unit for field in FIELDS[data] if field.number}
    tasks += [
        {
            "id": "annotate",
            "type": "annotate",
            "config": {"key": name, "path": f"{TABLES}/{data}_attributes.txt", "columns": columns},
            "inputs": [last],
        },
        {
            "id": "senml",
            "type": "to_senml",
            "config": {"time": "time", "texts": texts | dict.fromkeys(ATTRIBUTES[data], "string"), "values": numbers},
            "inputs": ["annotate"],
        },
        {
            "id": "publish",
            "type": "write_files",
            "config": {"path": f"{OUT}/etl{'_wide' * wide}_{data}"},
            "inputs": ["senml"],
        },
    ]
    return tasks, "Parse, clean, complete and annotate readings, and pass them on as SenML"


def stats(data):
    """SOURCE, SML; AVG; KAL, SLR; DAC; ACC, PLT, LZP; ABU."""
    name = key(data)
    each = [name, "field"]
    tasks = [
        source(data, 20, 0.01),
        parse(data),
        {"id": "fields", "type": "unpivot", "config": {"columns": observed(data)}, "inputs": ["parse"]},
        {
            "id": "average",
            "type": "block_average",
            "config": {"key": each, "column": "value", "size": BLOCKS[data]},
            "inputs": ["fields"],
        },
        {
            "id": "smooth",
            "alternates": [
                {"type": "kalman", "config": {"key": each, "column": "value"}, "value": VALUES[data]["kalman"]},
                {
                    "type": "moving_average",
                    "config": {"key": each, "column": "value", "size": 5, "into": "smoothed"},
                    "value": VALUES[data]["moving_average"],
                },
            ],
            "inputs": ["fields"],
        },
        {
            "id": "predict",
            "type": "sliding_regression",
            "config": {"key": each, "column": "smoothed", "train": 10, "ahead": 10},
            "inputs": ["smooth"],
        },
        {
            "id": "distinct",
            "alternates": [
                {"type": "distinct", "config": {"key": ["field"], "column": name}, "value": 1.0},
                {
                    "type": "distinct_sketch",
                    "config": {"key": ["field"], "column": name, "bits": 6},
                    "value": VALUES[data]["distinct_sketch"],
                },
            ],
            "inputs": ["fields"],
        },
    ]
    kept = {"average": ["average"], "predict": ["value", "smoothed"], "distinct": ["distinct"]}
    for before, lines in kept.items():
        here = ["field"] if before == "distinct" else each
        title = f"concat_ws('-', '{before}', {', '.join(here)}, cast(id as string))"
        tasks += [
            {
                "id": f"some_{before}",
                "type": "accumulate",
                "config": {"key": here, "columns": lines, "size": ACCUMULATED[data]},
                "inputs": [before],
            },
            {
                "id": f"titled_{before}",
                "type": "derive",
                "config": {"columns": {"title": title}},
                "inputs": [f"some_{before}"],
            },
            {
                "id": f"drawn_{before}",
                "type": "plot",
                "config": {"lines": lines, "title": "title"},
                "inputs": [f"titled_{before}"],
            },
            {
                "id": f"picture_{before}",
                "type": "select",
                "config": {"columns": ["title", "chart"]},
                "inputs": [f"drawn_{before}"],
            },
        ]
    tasks += [
        {
            "id": "packed",
            "type": "zip",
            "config": {"name": "title", "content": "chart", "size": 10},
            "inputs": [f"picture_{before}" for before in kept],
        },
        {
            "id": "stored",
            "type": "upload",
            "config": {"folder": f"{OUT}/stats_{data}/charts", "name": "name", "content": "archive", "ending": ".zip"},
            "inputs": ["packed"],
        },
        {"id": "told", "type": "write_files", "config": {"path": f"{OUT}/stats_{data}/told"}, "inputs": ["stored"]},
    ]
    return tasks, "Averages, smoothed values with predictions, and distinct senders, as charts in archives"


def train(data):
    """SOURCE_TIMER, ATR; MLT; ANN (class label), DTT; ABU. The table that ATR asks is filled by a source of its own."""
    work = WORKS[data]
    url = f"sqlite:///{OUT}/train_{data}.db"
    used = dict.fromkeys([*work["features"], work["target"], *(["label"] if data == "fitness" else [])])
    table = ["id", *used]
    wanted = ", ".join(f"{column} double" for column in table[1:])
    return [
        source(data, 100, 0.01),
        parse(data),
        {
            "id": "in_range",  # what is far off would pull every line to itself
            "type": "range_filter",
            "config": {"ranges": RANGES[data], "outside": "null"},
            "inputs": ["parse"],
        },
        {"id": "columns", "type": "select", "config": {"columns": table}, "inputs": ["in_range"]},
        {"id": "history", "type": "write_table", "config": {"url": url, "table": "history"}, "inputs": ["columns"]},
        {"id": "timer", "type": "rate", "config": {"rows_per_s": 1}},
        {
            "id": "range",  # the hundred rows of some seconds ago, so that they are there
            "type": "derive",
            "config": {"columns": {"first": "100 * (value - 6)", "last": "100 * (value - 5)"}},
            "inputs": [{"from": "timer", "where": "value >= 6"}],
        },
        {
            "id": "rows",
            "type": "query_table",
            "config": {
                "url": url,
                "query": f"select {', '.join(table)} from history where id >= :first and id < :last order by id",
                "columns": f"id bigint, {wanted}",
            },
            "on_error": "skip",
            "inputs": ["range"],
        },
        {
            "id": "named",
            "type": "derive",
            "config": {"columns": {"linear": f"'{data}_linear'", "tree": f"'{data}_tree'", "class": work["label"]}},
            "inputs": ["rows"],
        },
        {
            "id": "linear",
            "type": "train_linear",
            "config": {"key": ["linear"], "features": work["features"], "target": work["target"], "every": 300},
            "inputs": ["named"],
        },
        {
            "id": "tree",
            "type": "train_tree",
            "config": {"key": ["tree"], "features": work["features"], "label": "class", "every": 300},
            "inputs": ["named"],
        },
        *(
            {
                "id": f"store_{kind}",
                "type": "upload",
                "config": {"folder": f"{OUT}/models", "name": kind, "content": "model", "ending": ".json"},
                "inputs": [kind],
            }
            for kind in ("linear", "tree")
        ),
        {
            "id": "told",
            "type": "write_files",
            "config": {"path": f"{OUT}/train_{data}"},
            "inputs": ["store_linear", "store_tree"],
        },
    ], "Train models on what a table keeps, every 300 rows"


def pred(data):
    """SOURCE, SML; DTC; MLR; AVG; ERR; sinks in the place of MQP. In that of MQS and ABD, models' files are watched."""
    work = WORKS[data]
    return [
        source(data, 100, 0.01),
        parse(data),
        {
            "id": "classify",
            "alternates": [
                {
                    "type": "classify_tree",
                    "config": {"model": f"{OUT}/models/{data}_tree.json"},
                    "value": VALUES[data]["classify_tree"],
                },
                {
                    "name": "threshold",
                    "type": "derive",
                    "config": {"columns": {"class": work["threshold"]}},
                    "value": VALUES[data]["threshold"],
                },
            ],
            "inputs": ["parse"],
        },
        {
            "id": "classes",
            "type": "select",
            "config": {"columns": ["id", "time", key(data), "class"]},
            "inputs": ["classify"],
        },
        {
            "id": "predict",
            "type": "predict_linear",
            "config": {"model": f"{OUT}/models/{data}_linear.json"},
            "inputs": ["parse"],
        },
        {
            "id": "average",
            "type": "block_average",
            "config": {"key": [key(data)], "column": work["target"], "size": BLOCKS[data], "every": True},
            "inputs": ["predict"],
        },
        {
            "id": "error",
            "type": "error_estimate",
            "config": {"observed": work["target"]},
            "inputs": ["average"],
        },
        {
            "id": "errors",
            "type": "select",
            "config": {"columns": ["id", "time", key(data), work["target"], "predicted", "average", "error"]},
            "inputs": ["error"],
        },
        {
            "id": "publish_classes",
            "type": "write_files",
            "config": {"path": f"{OUT}/pred_{data}/classes"},
            "inputs": ["classes"],
        },
        {
            "id": "publish_errors",
            "type": "write_files",
            "config": {"path": f"{OUT}/pred_{data}/errors"},
            "inputs": ["errors"],
        },
    ], "Classify readings and predict one of their values; how far off is told in units of the mean"


APPS = {"etl": etl, "stats": stats, "train": train, "pred": pred}


def dataflow(app, data, **more):
    tasks, description = APPS[app](data, **more)
    name = f"{app}{'_wide' if more else ''}_{data}"
    return {"name": name, "owner": "riotbench", "description": description, "tasks": tasks}


def with_broker(document):
    """ETL as published: records come out at an MQTT broker."""
    result = {**document, "name": "etl_mqtt", "tasks": list(document["tasks"])}
    config = {"host": "localhost", "topic": "citydata", "column": "value"}
    result["tasks"][-1] = {**result["tasks"][-1], "type": "write_mqtt", "config": config}
    return result


def written(document, comment):
    text = yaml.safe_dump(document, sort_keys=False, width=120, default_flow_style=None)
    return f"# {comment} Written by examples/riotbench/make.py.\n{text}"


def tables():
    result = {}
    for data in SETS:
        draw = random.Random(f"{data} tables")
        ids = sensors(Generate(data=data))
        lines = []
        for name in ids:
            if data == "city":
                values = (f"building{draw.randrange(1, 9)}", draw.choice(("analog", "heat", "ultrasound")))
            elif data == "taxi":
                values = (draw.choice(("carpool", "jam", "yellow")), draw.choice(("Ada", "Bo", "Cyd")), "New York")
            else:
                values = (str(draw.randrange(18, 80)), draw.choice("FM"))
            lines.append(f"{name}:{','.join(values)}")
        # A few that send are not in the set, and a few have no attributes.
        result[f"tables/{data}_ids.txt"] = "".join(f"{name}\n" for at, name in enumerate(ids) if at % 12 != 7)
        result[f"tables/{data}_attributes.txt"] = "".join(f"{line}\n" for at, line in enumerate(lines) if at % 15 != 9)
    return result


def files():
    """Every file that is written, with its text."""
    result = tables()
    for app, make in APPS.items():
        comment = (make.__doc__ or "").strip()
        for data in SETS:
            name = app if data == "city" else f"{app}_{data}"
            result[f"{name}.yaml"] = written(dataflow(app, data), f"RIoTBench's {app.upper()}: {comment}")
    wide = "ETL with a row for each reading rather than for each value: the same result with less work."
    result["etl_wide.yaml"] = written(dataflow("etl", "city", wide=True), wide)
    broker = "RIoTBench's ETL that publishes to an MQTT broker on this machine."
    result["etl_mqtt.yaml"] = written(with_broker(dataflow("etl", "city")), broker)
    return result


if __name__ == "__main__":
    for name, text in files().items():
        path = HERE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"{len(files())} files in {HERE}")
