"""Logos in frames: features of a frame, which of them match those of a logo, and from when to when a logo is shown.

A frame's features are points that are found again when a picture is turned, scaled or lit otherwise, each with a
description of what is around it: SIFT's (Lowe, 2004), or ORB's, which is quicker and less sure (Rublee et al., 2011). A
logo is in a frame if enough of its features are found there and one way to look at the logo explains where they are.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np

__all__ = ["aggregate", "extract", "match"]

Row = dict[str, Any]
Features = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""Points, and what is around each."""

RATIO = 0.85
"""A match counts if the next best one is farther off by more than this factor (Lowe's test)."""

APART_PX = 4.0
"""How far from where it should be a match may lie."""

LEAST = 8
"""Matches that one way to look at the logo must explain."""

SURE = 2
"""Frames in a row that must have a logo until it counts as shown."""

GONE = 8
"""Frames in a row that must lack it until it counts as gone: somebody may have walked past."""

WAYS = {
    "sift": (lambda: cv2.SIFT_create(contrastThreshold=0.02), np.float32, 128, cv2.NORM_L2),
    "orb": (lambda: cv2.ORB_create(nfeatures=1_000, fastThreshold=12), np.uint8, 32, cv2.NORM_HAMMING),
}
"""How features are found, of what their descriptions are made, and how these are compared."""

cv2.setNumThreads(1)  # Spark's workers are one for each processor already


@lru_cache(maxsize=4)
def _finder(way: str) -> Any:
    return WAYS[way][0]()


def _features(image: Any, way: str) -> Features:
    points, around = _finder(way).detectAndCompute(image, None)
    _, kind, size, _ = WAYS[way]
    if around is None:
        return np.zeros((0, 2), np.float32), np.zeros((0, size), kind)
    return np.array([point.pt for point in points], np.float32), around.astype(kind)


def extract(row: Row, way: str = "sift") -> Row:
    """The features of a frame; raises for an image that is none."""
    image = cv2.imdecode(np.frombuffer(row["image"], np.uint8), cv2.IMREAD_GRAYSCALE)
    if image is None:
        raise ValueError("is no image")
    points, around = _features(image, way)
    if way == "sift":
        around = around.astype(np.uint8)  # whole numbers up to 255 anyway
    features = {"way": way, "points": points.tobytes(), "around": around.tobytes()}
    return {"clip": row["clip"], "frame": row["frame"], **features}


@lru_cache(maxsize=8)
def _logos(folder: str, way: str) -> dict[str, Features]:
    """The features of the logos that are searched for."""
    by_name = {}
    for path in sorted(Path(folder).glob("*.png")):
        image = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        if image is None:
            raise ValueError(f"{path} is no image")
        edge = cv2.copyMakeBorder(image, 16, 16, 16, 16, cv2.BORDER_REPLICATE)
        by_name[path.stem] = _features(edge, way)
    if not by_name:
        raise ValueError(f"there are no pictures of logos in {folder}")
    return by_name


def match(row: Row, logos: str) -> list[Row]:
    """For each logo, how many features of a frame are the logo's, seen in one and the same way."""
    _, kind, size, norm = WAYS[row["way"]]
    points = np.frombuffer(row["points"], np.float32).reshape(-1, 2)
    around = np.frombuffer(row["around"], np.uint8).reshape(-1, size).astype(kind)
    there = {"clip": row["clip"], "frame": row["frame"]}
    return [
        {**there, "logo": name, "matches": _agreeing(known, (points, around), norm)}
        for name, known in _logos(logos, row["way"]).items()
    ]


def _agreeing(known: Features, seen: Features, norm: int) -> int:
    """How many features of a logo are seen where a single way to look at it would put them."""
    if len(seen[1]) < 2 or len(known[1]) < 2:
        return 0
    pairs = cv2.BFMatcher(norm).knnMatch(known[1], seen[1], k=2)
    close = [best for best, next_best in pairs if best.distance < RATIO * next_best.distance]
    if len(close) < LEAST:
        return 0
    here = known[0][[pair.queryIdx for pair in close]]
    there = seen[0][[pair.trainIdx for pair in close]]
    way, fits = cv2.findHomography(here, there, cv2.RANSAC, APART_PX, maxIters=500)
    if way is None or not _is_view(way):
        return 0
    # Many features of the logo on a single point of the frame would be explained by anything.
    return len({pair.trainIdx for pair, fit in zip(close, fits.ravel(), strict=True) if fit})


def _is_view(way: Any) -> bool:
    """Whether a homography is a way to look at a logo: not mirrored, not squeezed to nothing, not blown up."""
    grown = float(np.linalg.det(way[:2, :2]))
    return 0.1 < grown < 10 and abs(way[2, 0]) < 0.01 and abs(way[2, 1]) < 0.01


def aggregate(state: Any, row: Row, frames: int) -> tuple[Any, Row | None]:
    """From when to when a clip shows a logo: told with the frame that settles it.

    Frames are taken in the order of their numbers, whatever the order in which they come. A logo counts as shown from
    the first of :data:`SURE` frames in a row that have it to the last one before :data:`GONE` that do not.

    >>> state, intervals = None, []
    >>> for number, matches in [(0, 0), (2, 9), (1, 12), (3, 0), (4, 20)]:
    ...     state, interval = aggregate(state, {"frame": number, "matches": matches}, frames=5)
    ...     intervals.append(interval)
    >>> intervals[-1]
    {'intervals': [{'first': 1, 'last': 4}]}
    """
    following, waiting, first, having, lacking = state or (0, {}, None, 0, 0)
    waiting = {**waiting, row["frame"]: row["matches"] >= LEAST}
    intervals = []
    while following in waiting:
        seen = waiting.pop(following)
        having, lacking = (having + 1, 0) if seen else (0, lacking + 1)
        if first is None and having == SURE:
            first = following - SURE + 1
        if first is not None and (lacking == GONE or following == frames - 1):
            intervals.append({"first": first, "last": following - lacking})
            first = None
        following += 1
    return (following, waiting, first, having, lacking), {"intervals": intervals} if intervals else None
