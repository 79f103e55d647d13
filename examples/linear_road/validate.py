"""Every answer of Linear Road worked out again from its input, in plain Python, and each deadline checked.

    .venv/bin/python examples/linear_road/validate.py out/linear_road

What is right is worked out by expected.py, which shares nothing with the tasks.
"""

import json
import sqlite3
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # where it is run as a script

from examples.linear_road.expected import Expected, expect

__all__ = [
    "DEADLINES_S",
    "Answers",
    "Expected",
    "Report",
    "check",
    "expect",
    "read_answers",
    "read_rows",
    "share_in_time",
]

DEADLINES_S = {"tolls": 5, "alerts": 5, "balances": 5, "expenditures": 10, "travel_times": 30}
"""From the arrival of a report or query to the emission of the answer, for each kind of answer."""


@dataclass
class Answers:
    """Answers by kind and by what they answer: (car, time) of a report, or the number of a query."""

    tolls: dict = field(default_factory=dict)
    """Speed (LAV) and toll."""

    alerts: dict = field(default_factory=dict)
    """Segment of the accident."""

    balances: dict = field(default_factory=dict)
    """Balance, and as of which second."""

    expenditures: dict = field(default_factory=dict)
    travel_times: dict = field(default_factory=dict)
    """Seconds."""

    emitted: dict = field(default_factory=dict)
    """When an answer was there to be read, by kind and what it answers, where that is known."""

    twice: Counter = field(default_factory=Counter)
    """Answers that were given again, by kind."""


# comparing


@dataclass(frozen=True)
class Report:
    """How many answers of each kind there should be, and what is the matter with those there are."""

    wanted: dict
    wrong: dict
    missing: dict
    unasked: dict
    twice: dict
    first: tuple = ()
    """Some answers that are not right, to look at."""

    @property
    def right(self):
        """Whether every answer is there once, and as it should be, and no other."""
        return not any(sum(result.values()) for result in (self.wrong, self.missing, self.unasked, self.twice))

    def __str__(self):
        lines = [f"{'':14}{'wanted':>9}{'wrong':>9}{'missing':>9}{'unasked':>9}{'twice':>9}"]
        for kind in self.wanted:
            counts = (self.wanted, self.wrong, self.missing, self.unasked, self.twice)
            lines.append(f"{kind:14}" + "".join(f"{result.get(kind, 0):9}" for result in counts))
        return "\n".join([*lines, *map(str, self.first)])


def check(expected, answers):
    """Compare answers with what is right."""
    wanted, wrong, missing, unasked, first = {}, Counter(), Counter(), Counter(), []
    for kind in DEADLINES_S:
        right, given = getattr(expected, kind), getattr(answers, kind)
        wanted[kind] = len(right)
        missing[kind] = len(right.keys() - given.keys())
        unasked[kind] = len(given.keys() - right.keys())
        for key in right.keys() & given.keys():
            if not _is_right(kind, right[key], given[key]):
                wrong[kind] += 1
                if len(first) < 20:
                    first.append((kind, key, "wanted", right[key], "got", given[key]))
        lacking, added = list(right.keys() - given.keys())[:3], list(given.keys() - right.keys())[:3]
        first += [(kind, key, "wanted", right[key], "got nothing") for key in lacking]
        first += [(kind, key, "unasked", given[key]) for key in added]
    return Report(wanted, wrong, missing, unasked, dict(answers.twice), tuple(first))


def _is_right(kind, right, given):
    if kind == "tolls":
        (speed, toll), (reported, price) = right, given
        close = reported is None if speed is None else reported is not None and abs(reported - speed) < 1e-6
        return close and toll == price
    if kind == "balances":
        (time, charges), (balance, as_of) = right, given
        return time - 60 <= as_of <= time and balance == sum(toll for at, toll in charges if at <= as_of)
    if kind == "travel_times":
        return given is not None and abs(given - right) <= 1e-6 * right
    return right == given


def share_in_time(answers, arrived, since=None, asked=()):
    """The share of answers within their deadline, response times by kind, and when came in what was answered too late.

    ``arrived`` tells when a report or query came in, by kind and what it is, in seconds of the same clock as
    ``answers.emitted``; those that came in before ``since`` are not judged. What was ``asked`` and is not answered at
    all has taken for ever.
    """
    late, times = [], defaultdict(list)
    lacking = {key: float("inf") for key in asked if key not in answers.emitted}
    for key, emitted in (*answers.emitted.items(), *lacking.items()):
        if key in arrived and (since is None or arrived[key] >= since):
            took = emitted - arrived[key]
            times[key[0]].append(took)
            if took > DEADLINES_S[key[0]]:
                late.append(arrived[key])
    judged = sum(map(len, times.values()))
    return (1 - len(late) / judged if judged else 0.0), dict(times), late


# files


def read_rows(path):
    """The input as columns, in the order of times: a parquet file, or text as Linear Road has it (also gzipped)."""
    names = (
        "type",
        "time",
        "vid",
        "spd",
        "xway",
        "lane",
        "dir",
        "seg",
        "pos",
        "qid",
        "s_init",
        "s_end",
        "dow",
        "tod",
        "day",
    )
    if str(path).endswith(".parquet"):
        import pyarrow.parquet as pq  # noqa: TID251

        table = pq.read_table(path)
        return {name: table.column(name).to_numpy() for name in names}
    result = np.loadtxt(path, delimiter=",", dtype=np.int64)
    result = result[np.argsort(result[:, 1], kind="stable")]
    return dict(zip(names, result.T, strict=True))


def read_answers(folder, seen=None):
    """The answers in the folders that the dataflow writes; ``seen`` tells when each file was there, by its name."""
    import pyarrow.parquet as pq  # noqa: TID251

    answers = Answers()
    for kind in DEADLINES_S:
        into = getattr(answers, kind)
        for file in sorted((Path(folder) / kind).glob("*.parquet")):
            rows = {name: values.to_pylist() for name, values in zip(*_columns(pq.read_table(file)), strict=True)}
            if kind in ("tolls", "alerts"):
                keys = list(zip(rows["vid"], rows["time"], strict=True))
                values = rows["accident"] if kind == "alerts" else list(zip(rows["lav"], rows["toll"], strict=True))
            else:
                keys = rows["qid"]
                values = {
                    "balances": lambda r: list(zip(r["balance"], r["as_of"], strict=True)),
                    "expenditures": lambda r: r["toll"],
                    "travel_times": lambda r: r["seconds"],
                }[kind](rows)
            for key, value in zip(keys, values, strict=True):
                if key in into:
                    answers.twice[kind] += 1
                into[key] = value
                if seen is not None:
                    answers.emitted[kind, key] = seen[kind, file.name]
    return answers


def _columns(table):
    return table.column_names, table.columns


def read_history(path):
    """Tolls of the days before, by car, day and expressway."""
    with sqlite3.connect(path) as database:
        return {(vid, day, xway): toll for vid, day, xway, toll in database.execute("select * from tolls")}


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/linear_road")
    named = json.loads((folder / "alternates.json").read_text()) if (folder / "alternates.json").exists() else {}
    history, usual = read_history(folder / "tolls.db"), np.load(folder / "usual.npy")
    expected = expect(read_rows(folder / "traffic.parquet"), history, usual, **named)
    result = check(expected, read_answers(folder / "answers"))
    print(result)
    sys.exit(0 if result.right else 1)


if __name__ == "__main__":
    main()
