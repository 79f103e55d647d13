"""Video clips with logos in known places: frames drawn from a seed, and what is to be found in them.

    .venv/bin/python examples/logos/clips.py              draws the searched logos into examples/logos/searched
    .venv/bin/python examples/logos/clips.py --show 12    draws frame 12 into frame.png

Frame *n* follows from the seed and *n* alone. A clip is a camera that pans over a textured place, in which logos appear
for a while: turned, scaled, seen from the side, lit otherwise, blurred, noisy, and in some clips with somebody walking
past. Half of the clips also have logos that nobody searches for, and some have none.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np

__all__ = ["FRAMES", "SEARCHED", "Showing", "frame", "logo", "scene", "shown", "write_logos"]

Image = np.ndarray[Any, np.dtype[np.uint8]]
Row = dict[str, Any]

WIDTH, HEIGHT, SIDE = 320, 240, 96
FRAMES = 30
"""Frames of a clip."""

SEARCHED = tuple(f"logo{number}" for number in range(6))
OTHERS = tuple(f"other{number}" for number in range(4))
NOISE = 9.0
"""Standard deviation of what the camera adds to each of 256 shades."""


@dataclass(frozen=True, slots=True)
class Showing:
    """A logo in a clip: from which frame to which (inclusive), and how it looks."""

    logo: str
    first: int
    last: int
    x: float
    y: float
    scale: float
    degrees: float
    tilt: float
    light: float
    blur: float


@lru_cache(maxsize=64)
def logo(name: str, seed: int = 1) -> Image:
    """The picture of a logo: a few strokes, shapes and letters in shades of grey."""
    draw = np.random.default_rng([seed, *name.encode()])
    image = np.full((SIDE, SIDE), draw.integers(190, 255), np.uint8)
    for _ in range(14):
        shade = int(draw.integers(0, 256))
        (x0, y0), (x1, y1) = draw.integers(4, SIDE - 4, (2, 2)).tolist()
        match draw.integers(0, 4):
            case 0:
                cv2.circle(image, (x0, y0), int(draw.integers(4, 18)), shade, int(draw.choice([-1, 2, 3])))
            case 1:
                cv2.rectangle(image, (x0, y0), (x0 + 6 + x1 // 4, y0 + 6 + y1 // 4), shade, int(draw.choice([-1, 2])))
            case 2:
                cv2.line(image, (x0, y0), (x1, y1), shade, int(draw.integers(2, 5)))
            case _:
                letter = chr(int(draw.integers(65, 91)))
                cv2.putText(image, letter, (x0 - 8, y0 + 8), cv2.FONT_HERSHEY_DUPLEX, 1.1, shade, 2, cv2.LINE_AA)
    cv2.rectangle(image, (0, 0), (SIDE - 1, SIDE - 1), int(draw.integers(0, 90)), 3)
    return image


@lru_cache(maxsize=64)
def scene(clip: int, seed: int = 1) -> tuple[Showing, ...]:
    """What is to be seen in a clip."""
    draw = np.random.default_rng([seed, 7, clip])
    if draw.random() < 0.15:
        return ()
    names = [str(name) for name in draw.permutation(SEARCHED)[: draw.integers(1, 3)]]
    names += [str(name) for name in draw.permutation(OTHERS)[: draw.integers(0, 2)]]
    chosen = []
    for place, name in enumerate(names):
        first = int(draw.integers(0, FRAMES // 3))
        last = int(draw.integers(first + 8, FRAMES))
        x = WIDTH * (place + 0.5) / len(names) + draw.uniform(-8, 8)
        look = draw.uniform([HEIGHT * 0.4, 0.55, -60, -0.2, 0.5, 0.3], [HEIGHT * 0.6, 1.05, 60, 0.2, 1.3, 0.9]).tolist()
        chosen.append(Showing(name, first, last, x, *look))
    return tuple(chosen)


@lru_cache(maxsize=8)
def _place(clip: int, seed: int) -> Image:
    """What the camera pans over: noise of several grains, and blocks with edges."""
    draw = np.random.default_rng([seed, 11, clip])
    height, width = HEIGHT + 64, WIDTH + 128
    image = np.full((height, width), 110.0)
    rough = draw.uniform(0.2, 1.3)  # how much there is to be found where no logo is
    for grain, weight in ((4, 14), (16, 26), (64, 30)):
        small = draw.normal(0, 1, (height // grain + 2, width // grain + 2)).astype(np.float32)
        image += rough * weight * cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)
    for _ in range(12):
        x, y, w, h = draw.integers([0, 0, 10, 10], [width, height, 70, 70]).tolist()
        image[y : y + h, x : x + w] += draw.uniform(-50, 50)
    return np.clip(image, 0, 255).astype(np.uint8)


def frame(number: int, seed: int = 1) -> Image:
    """A frame of the stream, in shades of grey; clips follow each other."""
    clip, within = divmod(number, FRAMES)
    draw = np.random.default_rng([seed, 13, number])
    x, y = 2 * within, int(16 + 16 * np.sin(within / 5))
    image = _place(clip, seed)[y : y + HEIGHT, x : x + WIDTH].astype(np.float32)
    for seen in scene(clip, seed):
        if seen.first <= within <= seen.last:
            _put(image, seen, within, seed)
    if clip % 3 == 2:  # somebody walks past
        image[:, 10 * within : 10 * within + 36] = 60
    image += draw.normal(0, NOISE, image.shape)
    return np.clip(image, 0, 255).astype(np.uint8)


def _put(image: Any, seen: Showing, within: int, seed: int) -> None:
    """Draw a logo into a frame, where its way has taken it."""
    half = SIDE * seen.scale / 2
    turned = np.deg2rad(seen.degrees + 0.5 * within)
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * half
    corners[:, 1] *= 1 + seen.tilt * np.sign(corners[:, 0])  # one side is farther away
    turn = np.array([[np.cos(turned), np.sin(turned)], [-np.sin(turned), np.cos(turned)]])
    there = corners @ turn + [seen.x - 0.4 * (within - seen.first), seen.y]
    flat = np.array([[0, 0], [SIDE, 0], [SIDE, SIDE], [0, SIDE]], np.float32)
    way = cv2.getPerspectiveTransform(flat, there.astype(np.float32))
    picture = cv2.warpPerspective(logo(seen.logo, seed).astype(np.float32) * seen.light, way, (WIDTH, HEIGHT))
    picture = cv2.GaussianBlur(picture, (0, 0), seen.blur)
    cover = cv2.warpPerspective(np.ones((SIDE, SIDE), np.float32), way, (WIDTH, HEIGHT))
    image *= 1 - cover
    image += picture * cover


def shown(number: int, seed: int = 1) -> set[str]:
    """The searched logos that are in a frame."""
    clip, within = divmod(number, FRAMES)
    return {s.logo for s in scene(clip, seed) if s.logo in SEARCHED and s.first <= within <= s.last}


def film(row: Row, seed: int = 1) -> Row:
    """The frame of a tick of the clock, as a camera would send it: a JPEG."""
    number = row["value"]
    clip, within = divmod(number, FRAMES)
    done, image = cv2.imencode(".jpg", frame(number, seed), [cv2.IMWRITE_JPEG_QUALITY, 80])
    assert done
    return {"clip": clip, "frame": within, "image": image.tobytes()}


def write_logos(folder: Path, seed: int = 1) -> None:
    """Draw the logos that are searched for."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in SEARCHED:
        cv2.imwrite(str(folder / f"{name}.png"), logo(name, seed))


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw logos, or a frame.")
    parser.add_argument("--show", type=int, metavar="FRAME", help="draw this frame into frame.png")
    given = parser.parse_args()
    if given.show is None:
        write_logos(Path(__file__).parent / "searched")
    else:
        cv2.imwrite("frame.png", frame(given.show))
        print(f"frame {given.show}: {', '.join(sorted(shown(given.show))) or 'no logo'}")


if __name__ == "__main__":
    main()
