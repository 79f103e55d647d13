"""The application of eleven operators over tweets, on Spark: every average and ranking, and the languages."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate.documents import parse
from headgate.runtime.engine.engine import Engine

EXAMPLE = Path(__file__).parents[2] / "examples" / "sentiment"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The example's own modules."""
    monkeypatch.syspath_prepend(EXAMPLE)
    return {name: importlib.import_module(name) for name in ("tweets", "languages", "feelings")} | {
        "validate": importlib.import_module("examples.sentiment.validate")
    }


def document(folder: Path) -> dict[str, Any]:
    """The dataflow as it stands, with folders and sinks of a test, and functions that Spark's workers find."""
    text = json.dumps(yaml.safe_load((EXAMPLE / "sentiment.yaml").read_text(encoding="utf-8")))
    text = text.replace("data/tweets", str(folder / "in"))
    for function in ("languages.detect", "feelings.split_and_score"):
        text = text.replace(function, f"examples.sentiment.{function}")
    found: dict[str, Any] = json.loads(text)
    for task in found["tasks"]:
        if task["type"] == "write_files":
            task.update(type="write_memory", config={"name": task["id"]})
    return found


@pytest.mark.spark
@pytest.mark.parametrize("count", [1_500, pytest.param(30_000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_on_spark(engine: Engine, tmp_path: Path, modules: dict[str, Any], count: int) -> None:
    make, validate = modules["tweets"], modules["validate"]
    (tmp_path / "in").mkdir()
    engine.submit(parse(json.dumps(document(tmp_path)), "json").dataflow)
    some = [*make.tweets(1, 0, count, 10.0), make.end_mark(count, 10.0)]
    half = count // 2
    for number, part in enumerate((some[:half], some[half:-1], some[-1:])):
        make.put(tmp_path / "in", number, [tweet.line() for tweet in part])
        engine.wait_until_idle()  # averages go by the order of tweets, so files come one by one
    assert [(flow.state, flow.reason) for flow in engine.status()[0]] == [("running", "")]
    english, share = validate.taken_for_english(some)
    rows = engine.memory.rows
    assert len(rows("keep")) == len(some)
    assert share > 0.97
    assert len(english) > 0.5 * count
    assert len(validate.rankings(english)) > count / 10.0 / 10
    assert validate.faults(english, rows("averages"), rows("rankings")) == (0, 0)


def test_eleven_operators_in_eight_stages() -> None:
    tasks = document(Path())["tasks"]
    before = {
        task["id"]: [str(one.get("from") if isinstance(one, dict) else one) for one in task.get("inputs", [])]
        for task in tasks
    }

    def depth(task: str) -> int:
        return 1 + max(map(depth, before[task]), default=0)

    assert (len(tasks), max(map(depth, before))) == (11, 8)
    assert all(len(inputs) <= 1 for inputs in before.values())  # a tree


def test_what_is_known_of_tweets_is_so(modules: dict[str, Any]) -> None:
    make, feelings, languages = modules["tweets"], modules["feelings"], modules["languages"]
    some = list(make.tweets(2, 0, 1_000))
    assert some[700:] == list(make.tweets(2, 700, 300))
    assert [feelings.score_of(t.text) for t in some if t.language == "en"] == [
        t.score for t in some if t.language == "en"
    ]
    assert [feelings.hashtags_of(t.text) for t in some] == [list(t.hashtags) for t in some]
    assert {t.language for t in some} == set(languages.LANGUAGES)
    assert sum(t.language == "en" for t in some) == pytest.approx(550, abs=60)


def test_the_validator_sees_what_is_wrong(modules: dict[str, Any]) -> None:
    make, validate = modules["tweets"], modules["validate"]
    english = [t for t in make.tweets(3, 0, 400, 4.0) if t.language == "en"]
    averages = [
        {"id": key, "place": place, "tweets": count, "average": mean}
        for key, (place, count, mean) in validate.averages(english).items()
    ]
    rankings = [
        {"window_end": make.datetime.fromtimestamp(end_s, make.UTC), "place": place, "hashtag": tag, "tweets": count}
        for end_s, ranked in validate.rankings(english).items()
        for place, tag, count in ranked
    ]
    assert validate.faults(english, averages, rankings) == (0, 0)
    assert validate.faults(english, averages[1:], rankings) == (1, 0)
    assert validate.faults(english, [*averages, averages[0]], rankings) == (1, 0)
    wrong = {**averages[0], "average": averages[0]["average"] + 0.1}
    assert validate.faults(english, [wrong, *averages[1:]], rankings[1:]) == (1, 1)


@pytest.mark.slow
def test_real_tweets_in_english_are_taken_for_english(modules: dict[str, Any]) -> None:
    import gzip

    from headgate_benchmarks.checkout import shared_data

    folder = shared_data()
    if folder is None:
        pytest.skip("no recorded tweets at hand")
    lines = gzip.decompress((folder / "short_texts" / "tweets.tsv.gz").read_bytes()).decode("utf-8").splitlines()
    texts = [text for src, _, text in (line.split("\t") for line in lines) if src in ("obama", "trump")][:3_000]
    found = modules["languages"].languages_of(texts)
    assert found.count("en") / len(found) > 0.9
