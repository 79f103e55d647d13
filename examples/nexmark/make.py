"""Write Nexmark's queries 0 to 8 as dataflows.

    .venv/bin/python examples/nexmark/make.py

A test fails when a file is out of date.
"""

from pathlib import Path

import yaml

from headgate_benchmarks.nexmark.flows import QUERIES, document

HERE = Path(__file__).resolve().parent
TITLES = {
    "q0": "Nexmark's query 0: every bid as it is.",
    "q1": "Nexmark's query 1: every bid, its price in another currency.",
    "q2": "Nexmark's query 2: the bids on some auctions.",
    "q3": "Nexmark's query 3: who sells in category 10 and lives in Oregon, Idaho or California.",
    "q4": "Nexmark's query 4: the average closing price of each category, anew with every auction that closes.",
    "q5": "Nexmark's query 5: the auctions with the most bids in the last ten seconds, every two seconds.",
    "q6": "Nexmark's query 6: the average closing price of each seller's last ten auctions.",
    "q7": "Nexmark's query 7: the highest bid of every ten seconds.",
    "q8": "Nexmark's query 8: who joined and opened an auction within the same ten seconds.",
}


def files() -> dict[str, str]:
    """The text of each file, by its name."""
    files_by_name = {}
    for query in QUERIES:
        text = yaml.safe_dump(document(query), sort_keys=False, width=110)
        files_by_name[f"{query}.yaml"] = f"# {TITLES[query]} Written by make.py.\n{text}"
    return files_by_name


if __name__ == "__main__":
    for name, text in files().items():
        (HERE / name).write_text(text, encoding="utf-8")
        print(HERE / name)
