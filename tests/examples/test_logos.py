"""The parts of logo detection without Spark: what is drawn can be found, and frames in any order tell the same."""

from __future__ import annotations

import importlib
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

np = pytest.importorskip("numpy")
cv2 = pytest.importorskip("cv2")

HERE = Path(__file__).parents[2] / "examples" / "logos"


def example(name: str) -> ModuleType:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(HERE)
        return importlib.import_module(name)


CLIPS, FOUND, CHECK = (example(name) for name in ("clips", "logo_detection", "check_logos"))


def test_the_pictures_are_those_that_are_drawn() -> None:
    assert {path.stem for path in (HERE / "searched").iterdir()} == set(CLIPS.SEARCHED)
    for name in CLIPS.SEARCHED:
        there = cv2.imread(str(HERE / "searched" / f"{name}.png"), cv2.IMREAD_GRAYSCALE)
        assert (there == CLIPS.logo(name)).all(), "run examples/logos/clips.py"


def test_frames_can_be_drawn_again() -> None:
    assert (CLIPS.frame(41) == CLIPS.frame(41)).all()
    assert (CLIPS.frame(41) != CLIPS.frame(42)).mean() > 0.5
    assert CLIPS.film({"value": 41})["image"] == CLIPS.film({"value": 41})["image"]


def frame_with(logo: str | None) -> int:
    """A frame in the middle of a showing of a logo, or one without any."""
    shown = [number for number in range(30 * CLIPS.FRAMES) if (logo in CLIPS.shown(number)) == (logo is not None)]
    wanted = [number for number in shown if logo is not None or not CLIPS.shown(number)]
    return wanted[len(wanted) // 2]


@pytest.mark.parametrize("way", ["sift", "orb"])
def test_features_of_a_frame_go_as_bytes_and_match_the_logo_alone(way: str) -> None:
    """A plain view of each logo is told from the others; on nothing but texture there is none."""
    for name in CLIPS.SEARCHED[:3]:
        frame = np.full((200, 200), 128, np.uint8)
        frame[40:136, 50:146] = CLIPS.logo(name)
        _, image = cv2.imencode(".png", frame)
        row = FOUND.extract({"clip": 0, "frame": 3, "image": image.tobytes()}, way)
        assert len(row["points"]) // 8 == len(row["around"]) // (128 if way == "sift" else 32) > 20
        matches = {made["logo"]: made["matches"] for made in FOUND.match(row, str(HERE / "searched"))}
        assert {logo for logo, number in matches.items() if number >= FOUND.LEAST} == {name}
    row = FOUND.extract(CLIPS.film({"value": frame_with(None)}), way)
    assert all(made["matches"] < FOUND.LEAST for made in FOUND.match(row, str(HERE / "searched")))


def test_what_is_no_image_or_no_logos_is_told() -> None:
    with pytest.raises(ValueError, match="is no image"):
        FOUND.extract({"clip": 0, "frame": 0, "image": b"none"})
    row = FOUND.extract(CLIPS.film({"value": 0}), "orb")
    with pytest.raises(ValueError, match="no pictures of logos in nowhere"):
        FOUND.match(row, "nowhere")


def aggregated(matches: list[int], order: list[int]) -> list[tuple[int, int]]:
    state: Any = None
    found = []
    for frame in order:
        state, told = FOUND.aggregate(state, {"frame": frame, "matches": matches[frame]}, len(matches))
        found += [(one["first"], one["last"]) for one in told["intervals"]] if told else []
    return found


def test_showings_are_the_same_in_whatever_order_frames_come() -> None:
    draw = random.Random(5)
    for _ in range(50):
        matches = [draw.choice([0, 0, 12]) for _ in range(25)]
        order = list(range(25))
        wanted = aggregated(matches, order)
        draw.shuffle(order)
        assert aggregated(matches, order) == wanted
        for first, last in wanted:
            assert min(matches[first], matches[first + 1], matches[last]) >= FOUND.LEAST


def test_a_short_gap_is_bridged_a_long_one_ends_the_showing() -> None:
    yes, no = FOUND.LEAST, 0
    assert FOUND.GONE > 3
    assert aggregated([no, yes, yes, no, no, no, yes, no], list(range(8))) == [(1, 6)]
    assert aggregated([yes, yes, *[no] * FOUND.GONE, yes, yes], list(range(FOUND.GONE + 4))) == [
        (0, 1),
        (FOUND.GONE + 2, FOUND.GONE + 3),
    ]
    assert aggregated([yes, no, yes, no], list(range(4))) == []


def test_another_seed_draws_other_clips_and_other_logos(tmp_path: Path) -> None:
    CLIPS.write_logos(tmp_path, 2)
    assert {path.stem for path in tmp_path.iterdir()} == set(CLIPS.SEARCHED)
    for name in CLIPS.SEARCHED:
        there = cv2.imread(str(tmp_path / f"{name}.png"), cv2.IMREAD_GRAYSCALE)
        assert (there == CLIPS.logo(name, 2)).all()
        assert (there != CLIPS.logo(name)).mean() > 0.3
    assert CHECK.drawn(range(20), 2) != CHECK.drawn(range(20))
    assert CHECK.by_frame(CHECK.drawn(range(9), 2), range(9), 2).f1 == 1 > CHECK.by_frame((), range(9), 2).f1


def test_scores() -> None:
    clips = range(6)
    drawn = sorted(CHECK.drawn(clips))
    assert (CHECK.by_frame(drawn, clips).precision, CHECK.by_showing(drawn, clips).recall) == (1.0, 1.0)
    clip, logo, first, last = drawn[0]
    halves = [(clip, logo, first, first + 1), (clip, logo, last - 1, last), *drawn[1:]]
    worse = CHECK.by_showing(halves, clips)
    assert (worse.right, worse.found) == (len(drawn) - 1, len(drawn) + 1)
    assert CHECK.by_frame(halves, clips).precision == 1.0 > CHECK.by_frame(halves, clips).recall
    assert CHECK.by_frame([*drawn, (0, "nobody", 0, 9)], clips).precision < 1.0 == CHECK.Score(0, 0, 0).f1
