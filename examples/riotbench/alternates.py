"""Measure what the alternates of RIoTBench's applications are worth, on the data that they are used on.

    .venv/bin/python examples/riotbench/alternates.py

An alternate's value is how good its answers are over how good the best one's are:

- smoothing (Kalman filter, moving average): root mean square distance from the trend without noise, over all fields and
  senders; the value is the best one's over the alternate's;
- counting senders (exact, sketch): one less the mean relative error along the stream;
- classifying (tree, rule of thumb): the share of rows that get the right class. The tree has learnt from the 300 rows
  before the thousand that it is asked about.
"""

import numpy as np

from headgate.tasks.keyed_base import step_of
from headgate.tasks.registry import default_registry
from headgate_riotbench.generate import Generate, values_of
from headgate_riotbench.training import fit_tree

ROWS = 3_000
SMOOTHERS = {
    "kalman": {},
    "moving_average": {"size": 5},
}


def made(data, rows_per_s):
    return Generate(data=data, rows_per_s=rows_per_s)


def stepped(name, keys, values, **options):
    """The results of a keyed task, row by row."""
    kind = default_registry()[name]
    config = kind.config(key=("key",), column="v", **options)
    step, states, results = step_of(kind, config, ["key", "v"]), {}, []
    for key, value in zip(keys, values, strict=True):
        states[key], result = step(states.get(key), (key, value))
        results.append(result)
    return np.array(results)


def smoothing(data, fields):
    """Values of the smoothers; a sender's first ten rows do not count, where every filter is still finding out."""
    options = made(data, 20)
    seen, truth = values_of(options, ROWS), values_of(options, ROWS, noisy=False)
    keys = seen["key"]
    nth = np.array([np.count_nonzero(keys[:place] == key) for place, key in enumerate(keys)])
    shares = {name: [] for name in SMOOTHERS}
    for field in fields:
        errors = {}
        for name, smoother in SMOOTHERS.items():
            off = stepped(name, keys, seen[field], **smoother) - truth[field]
            errors[name] = np.sqrt(np.mean(np.square(off[nth >= 10])))
        if min(errors.values()) > 0:
            for name, error in errors.items():
                shares[name].append(min(errors.values()) / error)
    means = {name: np.mean(some) for name, some in shares.items()}
    return {name: round(float(mean / max(means.values())), 2) for name, mean in means.items()}


def counting(data):
    keys = values_of(made(data, 20), ROWS)["key"]
    same = np.zeros(ROWS)
    exact = stepped("distinct", same, keys)
    sketch = stepped("distinct_sketch", same, keys, bits=6)
    return {"distinct": 1.0, "distinct_sketch": round(float(1 - np.mean(np.abs(sketch / exact - 1))), 2)}


def classifying(data, features, label, threshold):
    """``label`` and ``threshold`` are functions from columns to classes."""
    columns = values_of(made(data, 100), 1_300)
    truth, rule = label(columns), threshold(columns)
    x = np.column_stack([columns[name] for name in features])
    tree = fit_tree(features, x[:300].tolist(), truth[:300].tolist(), depth=8, leaves=64)
    answers = np.array([asked(tree, dict(zip(features, row, strict=True))) for row in x[300:].tolist()])
    right = {"classify_tree": np.mean(answers == truth[300:]), "threshold": np.mean(rule[300:] == truth[300:])}
    return {name: round(float(share / max(right.values())), 2) for name, share in right.items()}


def asked(tree, row):
    node = tree["nodes"][0]
    while "class" not in node:
        node = tree["nodes"][node["then" if np.float32(row[node["feature"]]) <= node["at_most"] else "else"]]
    return node["class"]


def _city_label(c):
    return np.select([c["airquality_raw"] > 60, c["airquality_raw"] > 45], ["Bad", "Good"], "VeryGood")


def _taxi_label(c):
    return np.select([c["fare_amount"] / c["trip_distance"] > 4, c["fare_amount"] > 12], ["Bad", "Good"], "VeryGood")


def _fitness_rule(c):
    off = np.abs(c["acc_chest_x"] + 9.3)
    return np.select([off > 2.2, off > 1, off > 0.3], ["activity 3", "activity 2", "activity 1"], "activity 0")


CLASSES = {
    "city": (
        _city_label,
        lambda c: np.select([c["dust"] > 1300, c["dust"] > 550], ["Bad", "Good"], "VeryGood"),
    ),
    "taxi": (
        _taxi_label,
        lambda c: np.select([c["trip_distance"] < 1.7, c["trip_distance"] > 4], ["Bad", "Good"], "VeryGood"),
    ),
    "fitness": (lambda c: np.array([f"activity {int(n)}" for n in c["label"]]), _fitness_rule),
}
"""The classes and the rules of thumb of make.py once more, written in NumPy."""


def measured(observed, features):
    """All values, by data set; ``observed`` and ``features`` tell the fields of each."""
    return {
        data: smoothing(data, observed[data]) | counting(data) | classifying(data, features[data], *CLASSES[data])
        for data in CLASSES
    }


if __name__ == "__main__":
    from make import RANGES, WORKS

    answers = measured(RANGES, {data: work["features"] for data, work in WORKS.items()})
    print(f"{'':16}" + "".join(f"{data:>10}" for data in answers))
    for name in answers["city"]:
        print(f"{name:16}" + "".join(f"{values[name]:10.2f}" for values in answers.values()))
