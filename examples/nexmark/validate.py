"""Compare what Nexmark's queries wrote with plain batch SQL over the same events.

    .venv/bin/python examples/nexmark/validate.py data/nexmark out/nexmark

Needs Java, as running them does. Exit status 1 if an answer is wrong.
"""

import argparse
import sys
from pathlib import Path

from headgate.runtime.spark_internals.session import open_session
from headgate_benchmarks.nexmark.batch import ANSWERS, answer, comparable


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare what Nexmark's queries wrote with batch SQL.")
    parser.add_argument("events", type=Path, help="the folder of events")
    parser.add_argument("answers", type=Path, help="the folder that has a folder for each query")
    given = parser.parse_args()
    spark = open_session("local[*]", {})
    wrong = 0
    for query in ANSWERS:
        if not (given.answers / query).exists():
            print(f"{query}: no answers at {given.answers / query}")
            continue
        wanted = comparable(query, answer(spark, given.events, query))
        answers = comparable(query, spark.read.parquet(str(given.answers / query)))
        lacking, extra = wanted.exceptAll(answers).count(), answers.exceptAll(wanted).count()
        wrong += bool(lacking or extra)
        print(f"{query}: {wanted.count():,} rows, {lacking:,} lacking, {extra:,} that should not be there")
    spark.stop()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
