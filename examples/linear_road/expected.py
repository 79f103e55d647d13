"""What is right: every answer of Linear Road worked out from its input, in plain Python, as the rules are written.

Shares nothing with the tasks. Goes through the input second by second, car by car. The rules are those of the paper
(Arasu and others, 2004), with what it leaves open settled as docs/design/0014-linear-road.md tells.
"""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Expected", "expect"]


@dataclass
class Expected:
    """What is right, and what had to be known for it."""

    tolls: dict = field(default_factory=dict)
    alerts: dict = field(default_factory=dict)
    balances: dict = field(default_factory=dict)
    """Of a query: its time, and the car's charges as (second, toll) in order."""

    expenditures: dict = field(default_factory=dict)
    travel_times: dict = field(default_factory=dict)
    accidents: list = field(default_factory=list)
    """(xway, dir, lane, pos, since, until) of every accident; until is none where it did not clear."""

    asked: dict = field(default_factory=dict)
    """The time of each report or query that has an answer, by kind."""


def expect(rows, history=None, usual=None, congestion="regression", travel="recent_trend"):
    """The right answers for rows in the order of their times, each a mapping from column to array.

    ``history`` is a mapping from (car, day, xway) to the toll, ``usual`` the table of usual speeds; without it travel
    times are left out. ``congestion`` and ``travel`` name the alternates that are at work.
    """
    answers = Expected()
    roads = {}
    weather = defaultdict(dict)  # (xway, dir, ten segments) -> minute -> rain that was told in it, last
    charges = defaultdict(list)
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
    queries = []
    for row in zip(*(np.asarray(rows[name]).tolist() for name in names), strict=True):
        kind, time, vid, spd, xway, lane, direction, seg, pos = row[:9]
        if kind == 0:
            if (xway, direction) not in roads:
                roads[xway, direction] = _Direction(xway, direction)
            roads[xway, direction].report(answers, charges, time, vid, spd, lane, seg, pos)
        elif kind == 5:
            weather[xway, direction, seg // 10][time // 60 + 1] = spd / 10
        else:
            queries.append(dict(zip(names, row, strict=True)))
    for road in roads.values():
        road.end(answers)
    for (xway, direction, stretch), reported in weather.items():
        if (xway, direction) in roads:
            roads[xway, direction].rain[stretch] = reported
    for query in queries:
        number = query["qid"]
        if query["type"] == 2:
            answers.balances[number] = query["time"], charges[query["vid"]]
        elif query["type"] == 3:
            answers.expenditures[number] = (history or {}).get((query["vid"], query["day"], query["xway"]), 0)
        elif usual is not None:
            way = 0 if query["s_init"] <= query["s_end"] else 1
            road = roads.get((query["xway"], way)) or _Direction(query["xway"], way)
            answers.travel_times[number] = _journey(query, way, road, usual, congestion, travel)
        kind = {2: "balances", 3: "expenditures", 4: "travel_times"}[query["type"]]
        answers.asked[kind, number] = query["time"]
    for kind in ("tolls", "alerts"):
        answers.asked |= {(kind, (vid, time)): time for vid, time in getattr(answers, kind)}
    return answers


class _Car:
    __slots__ = ("lane", "pending", "pos", "same", "seg", "time")

    def __init__(self):
        self.time, self.seg, self.lane, self.pos, self.same, self.pending = None, None, None, None, 0, 0


class _Direction:
    """One direction of one expressway."""

    def __init__(self, xway, direction):
        self.xway, self.direction = xway, direction
        self.cars = {}
        self.minute = None
        self.speeds = defaultdict(dict)  # of the minute: segment -> car -> speeds
        self.every = defaultdict(list)  # of the minute: segment -> speeds, of ignored reports too
        self.averages = {}  # minute -> segment -> mean over cars
        self.plain = {}  # minute -> segment -> mean over reports
        self.counts = {}  # minute -> segment -> cars
        self.standing = defaultdict(set)  # (lane, pos) -> cars that have stopped there
        self.accidents = {}  # (lane, pos) -> since
        self.in_force = []  # segments of accidents, for this minute
        self.prices = {}
        self.rain = {}  # ten segments -> minute -> what a station told in it

    def report(self, answers, charges, time, vid, spd, lane, seg, pos):
        minute = time // 60 + 1
        if self.minute is None:
            self.minute = minute
        while self.minute < minute:
            self._end_minute()
        self.every[seg].append(spd)
        car = self.cars.get(vid)
        if car is not None and (time - car.time > 300 or (lane == 0 and (car.lane == 4 or time - car.time > 60))):
            self._moves_on(answers, vid, car, time)
            car = None
        if car is not None and car.lane == 4:
            return  # it has left, and did not come in again
        self.speeds[seg].setdefault(vid, []).append(spd)
        enters = car is None or car.seg != seg
        if car is None:
            car = self.cars[vid] = _Car()
        elif enters and car.pending:
            charges[vid].append((time, car.pending))
        if enters or lane == 4:
            car.pending = 0
        if enters and lane != 4:
            toll, speed = self._price(seg)
            answers.tolls[vid, time] = speed, toll
            car.pending = toll
            accident = self._ahead(seg)
            if accident is not None:
                answers.alerts[vid, time] = accident
        if (car.lane, car.pos) == (lane, pos):
            car.same += 1
        else:
            self._moves_on(answers, vid, car, time)
            car.same = 1
        car.time, car.seg, car.lane, car.pos = time, seg, lane, pos
        if car.same >= 4:
            here = self.standing[lane, pos]
            here.add(vid)
            if len(here) == 2 and (lane, pos) not in self.accidents:
                self.accidents[lane, pos] = time

    def _moves_on(self, answers, vid, car, time):
        """A car is no longer where it was; if it had stopped there with one other, the accident is over."""
        here = self.standing.get((car.lane, car.pos))
        if here is not None and vid in here:
            here.remove(vid)
            since = self.accidents.get((car.lane, car.pos))
            if len(here) < 2 and since is not None:
                del self.accidents[car.lane, car.pos]
                answers.accidents.append((self.xway, self.direction, car.lane, car.pos, since, time))

    def _end_minute(self):
        per_car = {seg: [sum(s) / len(s) for s in cars.values()] for seg, cars in self.speeds.items()}
        self.averages[self.minute] = {seg: sum(means) / len(means) for seg, means in per_car.items()}
        self.counts[self.minute] = {seg: len(means) for seg, means in per_car.items()}
        self.plain[self.minute] = {seg: sum(values) / len(values) for seg, values in self.every.items()}
        self.speeds, self.every = defaultdict(dict), defaultdict(list)
        self.minute += 1
        self.prices = {}
        # Those that were seen in a minute before this one, and have not cleared in it.
        self.in_force = [pos // 5_280 for _, pos in self.accidents]

    def _price(self, seg):
        """Toll and latest average velocity of a segment in this minute."""
        if seg not in self.prices:
            before = [self.averages.get(self.minute - back, {}).get(seg) for back in (5, 4, 3, 2, 1)]
            before = [value for value in before if value is not None]
            speed = sum(before) / len(before) if before else None
            cars = self.counts.get(self.minute - 1, {}).get(seg, 0)
            free = speed is None or round(speed, 9) >= 40 or cars <= 50 or self._ahead(seg) is not None
            self.prices[seg] = (0 if free else 2 * (cars - 50) ** 2), speed
        return self.prices[seg]

    def _ahead(self, seg):
        """The next segment with an accident in force, this one or one of four further on."""
        way = range(seg, seg + 5) if self.direction == 0 else range(seg, seg - 5, -1)
        return next((there for there in way if there in self.in_force), None)

    def end(self, answers):
        for (lane, pos), since in self.accidents.items():
            answers.accidents.append((self.xway, self.direction, lane, pos, since, None))


# travel times


def _journey(query, way, road, usual, congestion, travel):
    """Seconds for a journey: a mile in each segment, at the usual speed or at the present one where that is known."""
    step = 1 if way == 0 else -1
    minute, seconds = query["time"] // 60 + 1, 0.0
    for seg in range(query["s_init"], query["s_end"] + step, step):
        before = float(usual[query["xway"] % len(usual), way, seg, query["dow"] % 7, query["tod"] // 60 % 24])
        speed = before
        if travel == "recent_trend":
            now = _forecast(road, seg, minute, congestion)
            if now is not None:
                # What is unusual now will be less so by the time the car is there.
                speed = before + (now - before) * float(np.exp(-seconds / 600))
        seconds += 3_600 / speed
    return seconds


def _forecast(road, seg, minute, congestion):
    """The speed of a segment in a minute, estimated from those before it; none if no car has been there."""
    cache = road.__dict__.setdefault("forecasts", {})
    key = seg, minute, congestion
    if key not in cache:
        first = min(road.plain, default=minute)
        series = [road.plain.get(m, {}).get(seg) for m in range(first, minute)]
        if congestion == "regression":
            cache[key] = _regressed(road, seg, minute, first)
        elif congestion == "smoothing":
            cache[key] = _smoothed(series)
        else:
            cache[key] = _mean_of_five(series)
    return cache[key]


def _mean_of_five(series):
    there = [value for value in series[-5:] if value is not None]
    return sum(there) / len(there) if there else None


def _smoothed(series):
    level = None
    for value in series:
        if value is not None:
            level = value if level is None else level + 0.5 * (value - level)
    return level


def _regressed(road, seg, minute, first):
    """Least squares in full, anew for each forecast: weights fade by 0.97 a minute, and begin at the mean.

    Minimises sum 0.97^age (y - w.f)^2 + 0.97^n 30 |w - w0|^2, which is what recursive least squares does step by step.
    """
    gram, right = np.eye(6) * 30.0, 30.0 * np.array([0.0, 0.5, 0.5, 0.0, 0.0, -1.5])
    for m in range(first, minute - 1):
        f, y = _features(road, seg, m, first), road.plain.get(m + 1, {}).get(seg)
        if f is not None and y is not None:
            gram = 0.97 * gram + np.outer(f, f)
            right = 0.97 * right + f * y / 10
    now = _features(road, seg, minute - 1, first) if minute > first else None
    return None if now is None else float(np.clip(10 * np.linalg.solve(gram, right) @ now, 1, 100))


def _features(road, seg, minute, first):
    cache = road.__dict__.setdefault("features", {})
    if (seg, minute) not in cache:
        own, mean = _last(road, seg, minute, first), _mean_until(road, seg, minute, first)
        ahead = 1 if road.direction == 0 else -1
        further = [_last(road, min(max(seg + ahead * k, 0), 99), minute, first) for k in (1, 2)]
        parts = [own, mean, *(own if value is None else value for value in further)]
        wetter = _wetter(road, seg, minute + 1)
        cache[seg, minute] = None if mean is None else np.array([1.0, *(value / 10 for value in parts), wetter])
    return cache[seg, minute]


def _wetter(road, seg, minute):
    """By how much the road is wetter in a minute than in the one before, as far as was told before each of the two."""
    now, before = _rain(road, seg, minute), _rain(road, seg, minute - 1)
    return 0.0 if now is None or before is None else now / (now + 5) - before / (before + 5)


def _rain(road, seg, minute):
    """The last that was told of the rain in a segment before a minute."""
    reported = road.rain.get(seg // 10, {})
    return next((reported[m] for m in range(minute - 1, 0, -1) if m in reported), None)


def _last(road, seg, minute, first):
    answers = road.plain.get(minute, {}).get(seg)
    return _mean_until(road, seg, minute, first) if answers is None else answers


def _mean_until(road, seg, minute, first):
    return _mean_of_five([road.plain.get(m, {}).get(seg) for m in range(max(first, minute - 4), minute + 1)])
