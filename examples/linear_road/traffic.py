"""Traffic on expressways, as Linear Road's cars report it: congestion, known accidents, and what drivers ask.

Every expressway follows from the seed and its own number alone. Cars are advanced report by report, all at once: the
k-th report of a car comes 30 k seconds after its first, and how far it gets in between depends on the speed that its
segment has in that minute. Congestion is waves that drift upstream, what builds up behind an accident, and rain, which
slows all cars under it and of which weather stations tell a minute ahead.
"""

from dataclasses import dataclass, field, replace

import numpy as np

__all__ = [
    "COLUMNS",
    "FEET",
    "ROAD",
    "SEGMENTS",
    "STRETCH",
    "WEATHER",
    "Accident",
    "Road",
    "Traffic",
    "make",
    "rain",
    "usual_speeds",
]

COLUMNS = ("type", "time", "vid", "spd", "xway", "lane", "dir", "seg", "pos", "qid", "s_init", "s_end", "dow", "tod")
COLUMNS += ("day",)
"""A row of Linear Road's input; what a row has no use for is -1."""

SEGMENTS, FEET = 100, 5_280
"""Segments of a direction, and the length of each."""

EVERY_S = 30
"""How often a car reports."""

WEATHER = 5
"""The type of a weather update: ``spd`` is tenths of a millimetre of rain an hour from the next minute on, in the ten
segments from ``seg`` on."""

STRETCH = 10
"""Segments for each weather station."""

SLOWED, SOAKED_MM_PER_H = 0.3, 6.0
"""Rain takes at most this share of the speed; how much rain it takes for two thirds of that."""

END = SEGMENTS * FEET - 1
FEET_PER_S = FEET / 3_600
"""What a mile an hour is in feet a second."""


@dataclass(frozen=True)
class Road:
    """What the traffic of every expressway is like."""

    cars: int = 2_000
    """Cars that are on an expressway when it begins to be watched."""

    entering_per_s: float = 6.0
    jams: int = 3
    """Waves of congestion in each direction."""

    crowding: float = 1.5
    """How much more cars there are where they are slow, to begin with: 1 where as many pass a second everywhere."""

    accidents: int = 1
    """Accidents in each direction."""

    accident_s: int = 30
    """When the cars of the first accident stop, after the expressway begins to be watched."""

    breakdowns: int = 1
    """Cars in each direction that stop alone, which is no accident."""

    queries: float = 0.01
    """Queries for each position report: of ten, five for a balance, one for an expenditure, four for a travel time."""

    showers: int = 2
    """Bands of rain that come and go over each expressway."""

    vanish: float = 0.002
    """The share of cars that cease to report without having left."""

    ghosts: float = 0.004
    """The share of cars that have left and report once more as if they had not, which is to be ignored."""

    come_back: float = 0.02
    """The share of entering cars that have been on some expressway before."""

    dow: int = 2
    tod: int = 480
    """The day of the week, and the minute of the day at which time 0 is."""


ROAD = Road()


@dataclass(frozen=True)
class Accident:
    """An accident that was arranged: where, and which cars."""

    xway: int
    dir: int
    lane: int
    pos: int
    vids: tuple[int, int]
    since_s: int
    """When the second car has told the place for the fourth time."""

    until_s: int
    """When a car tells another place for the first time; past the end if none does."""


@dataclass(frozen=True)
class Traffic:
    """Rows in the order of their times, by column, and the accidents among them."""

    columns: dict[str, np.ndarray]
    accidents: tuple[Accident, ...] = ()

    def __len__(self) -> int:
        return len(self.columns["time"])

    def rows(self, which: np.ndarray) -> "Traffic":
        """Some of the rows."""
        return replace(self, columns={name: values[which] for name, values in self.columns.items()})


@dataclass
class _Cars:
    """The trips of one expressway's cars, an entry for each."""

    dir: np.ndarray
    first_s: np.ndarray
    x: np.ndarray
    """How far along its direction, in feet."""

    exit_x: np.ndarray
    pace: np.ndarray
    """How fast a car is beside others."""

    lane: np.ndarray
    enters: np.ndarray
    stop_at: np.ndarray
    """The report with which it stops, for so many reports in all; -1 if it does not."""

    stop_for: np.ndarray
    partner: np.ndarray
    """The car that it stops beside; -1 if there is none."""

    last: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """The last report of those that vanish."""

    def __len__(self) -> int:
        return len(self.dir)


def make(expressways: int, seconds: int, seed: int = 0, road: Road = ROAD, starts=None, begin_s: int = 0) -> Traffic:
    """Traffic of so many expressways; ``starts`` tells when each begins to be watched, at once if left out.

    >>> traffic = make(1, 120, road=Road(cars=300))
    >>> (
    ...     set(np.unique(traffic.columns["type"]).tolist()) <= {0, 2, 3, 4, WEATHER},
    ...     bool(np.all(np.diff(traffic.columns["time"]) >= 0)),
    ... )
    (True, True)
    """
    parts, trips, accidents = [], [], []
    first_vid = 0
    for xway in range(expressways):
        start = begin_s + (0 if starts is None else int(starts[xway]))
        if start >= begin_s + seconds:
            continue
        rng = np.random.default_rng([seed, xway])
        wet = rain((begin_s + seconds) // 60 + 2, seed, xway, road)
        made, trip, stopped = _expressway(xway, start, begin_s + seconds - start, rng, road, wet)
        made["vid"] += np.where(made["type"] == WEATHER, 0, first_vid)
        trip["vid"] += first_vid
        accidents += [replace(a, vids=tuple(v + first_vid for v in a.vids)) for a in stopped]
        first_vid += int(trip["vid"].max()) + 1 - first_vid if len(trip["vid"]) else 0
        parts.append(made)
        trips.append(trip)
    columns = {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}
    renamed = _come_back({n: np.concatenate([t[n] for t in trips]) for n in trips[0]}, seed, road)
    by_car = columns["type"] != WEATHER
    columns["vid"][by_car] = renamed[columns["vid"][by_car]]
    order = np.lexsort((columns["type"], columns["time"]))
    columns = {name: values[order].astype(np.int32) for name, values in columns.items()}
    asked = (columns["type"] != 0) & (columns["type"] != WEATHER)
    columns["qid"][asked] = np.arange(np.count_nonzero(asked))
    # Cars that had an accident are not among those that come back: their numbers are as they were.
    return Traffic(columns, tuple(accidents))


def speeds(rng: np.random.Generator, minutes: int, road: Road) -> np.ndarray:
    """The speed of each direction, segment along it, and minute, in miles an hour."""
    seg, minute = np.arange(SEGMENTS)[:, None], np.arange(minutes)[None, :]
    values = np.empty((2, SEGMENTS, minutes))
    for direction in (0, 1):
        free = 58 + 4 * np.sin(seg / 9 + direction) + rng.normal(0, 1.5, (SEGMENTS, minutes))
        slow = np.zeros((SEGMENTS, minutes))
        for _ in range(road.jams):
            centre, width, depth = rng.uniform(8, 92), rng.uniform(2, 5), rng.uniform(0.55, 0.8)
            drift, swing, phase = rng.uniform(0.1, 0.4), rng.uniform(5, 15), rng.uniform(0, 2 * np.pi)
            strength = depth * (0.8 + 0.2 * np.sin(minute / swing * 2 * np.pi + phase))
            slow = np.maximum(slow, strength * np.exp(-((seg - centre + drift * minute) ** 2) / (2 * width**2)))
        values[direction] = np.maximum(free * (1 - slow), 6)
    return values


def rain(minutes: int, seed: int = 0, xway: int = 0, road: Road = ROAD) -> np.ndarray:
    """Millimetres of rain an hour over each stretch of ten segments, in each minute, to a tenth."""
    rng = np.random.default_rng([seed, xway, 5])
    middle, minute = (np.arange(SEGMENTS // STRETCH) + 0.5)[:, None] * STRETCH, np.arange(minutes)[None, :]
    values = np.zeros((SEGMENTS // STRETCH, minutes))
    for _ in range(road.showers):
        centre, width, heaviest = rng.uniform(0, 100), rng.uniform(10, 25), rng.uniform(5, 20)
        drift, every, phase = rng.uniform(-0.8, 0.8), rng.uniform(14, 30), rng.uniform(0, 2 * np.pi)
        # Over any one place it rains less than half of the time, and begins and ends within minutes.
        heavy = heaviest * np.clip(3 * np.sin(2 * np.pi * minute / every + phase) - 0.5, 0, 1)
        off = np.abs((middle - centre - drift * minute + 50) % 100 - 50)
        values += np.where(off < width, heavy, 0)
    return np.round(values, 1)


def usual_speeds(expressways: int, seed: int = 0, road: Road = ROAD) -> np.ndarray:
    """What speeds were in weeks before, when dry: by expressway, direction, segment, day of the week and hour."""
    values = np.empty((expressways, 2, SEGMENTS, 7, 24), np.float32)
    hour = np.arange(24)
    # Slower in the hours of work, faster at night, and again at weekends.
    of_hour = 1.15 - 0.15 * np.exp(-((hour - 8) ** 2) / 8) - 0.12 * np.exp(-((hour - 17) ** 2) / 8)
    of_day = np.where(np.arange(7) < 5, 1.0, 1.08)
    for xway in range(expressways):
        rng = np.random.default_rng([seed, xway])
        mean = speeds(rng, 30, road).mean(axis=2)
        mean[1] = mean[1, ::-1]  # by segment, where the other direction goes down
        noise = np.random.default_rng([seed, xway, 1]).normal(1, 0.03, (2, SEGMENTS, 7, 24))
        values[xway] = np.clip(mean[:, :, None, None] * of_day[:, None] * of_hour * noise, 5, 90)
    return values


def _expressway(xway: int, start: int, seconds: int, rng: np.random.Generator, road: Road, wet: np.ndarray):
    """Rows, trips and accidents of one expressway, whose cars are numbered from 0."""
    field_ = speeds(rng, wet.shape[1], road)
    slower = 1 - SLOWED * (1 - np.exp(-np.repeat(wet, STRETCH, axis=0) / SOAKED_MM_PER_H))
    field_ *= np.stack((slower, slower[::-1]))  # along each direction
    cars = _cars(seconds, rng, road, field_[:, :, start // 60])
    arranged = _arrange(cars, rng, road)
    places = [
        (int(cars.dir[a]), int(cars.x[a] // FEET), cars.first_s[a] + EVERY_S * cars.stop_at[a]) for a, _ in arranged
    ]
    for direction, seg, since in places:
        slowed = field_[
            direction, max(seg - 3, 0) : seg + 1, (start + int(since)) // 60 : (start + int(since)) // 60 + 6
        ]
        slowed *= 0.45
    made, trips = _drive(cars, xway, start, seconds, rng, field_, road)
    accidents = [_as_accident(made, xway, pair) for pair in arranged]
    asked = _queries(made, cars, start, seconds, rng, road)
    weather_rows = _weather(xway, start, seconds, wet)
    made = {name: np.concatenate([made[name], asked[name], weather_rows[name]]) for name in COLUMNS}
    return made, trips, [accident for accident in accidents if accident is not None]


def _cars(seconds: int, rng: np.random.Generator, road: Road, now: np.ndarray) -> _Cars:
    entering = rng.poisson(road.entering_per_s * seconds)
    total = road.cars + entering
    direction = rng.integers(0, 2, total)
    enters = np.arange(total) >= road.cars
    first_s = np.where(enters, rng.integers(0, seconds, total), rng.integers(0, EVERY_S, total))
    # There are more cars where they are slow.
    dense = np.cumsum(now**-road.crowding, axis=1)
    at = np.empty(total)
    for way in (0, 1):
        here = direction == way
        drawn = rng.uniform(0, dense[way, -1], np.count_nonzero(here))
        at[here] = np.searchsorted(dense[way], drawn) + rng.uniform(0, 1, len(drawn))
    ramp = rng.integers(0, SEGMENTS - 5, total) + rng.uniform(0.1, 0.4, total)
    x = np.where(enters, ramp, np.minimum(at, SEGMENTS - 0.5)) * FEET
    exit_x = np.minimum(x + (2 + rng.exponential(20, total)) * FEET, END - 1)
    exit_x = np.floor(exit_x / FEET) * FEET + 0.6 * FEET  # ramps are in the second half of a segment
    exit_x = np.where(exit_x <= x + 200, exit_x + FEET, exit_x).clip(max=END)
    none = np.full(total, -1)
    never = np.full(total, 10**6)
    last = np.where(rng.uniform(size=total) < road.vanish, rng.integers(1, 8, total), never)
    lane = rng.integers(1, 4, total)
    pace = np.clip(rng.normal(1, 0.08, total), 0.7, 1.3)
    return _Cars(direction, first_s, x, exit_x, pace, lane, enters, none.copy(), none.copy(), none.copy(), last)


def _arrange(cars: _Cars, rng: np.random.Generator, road: Road) -> list[tuple[int, int]]:
    """Let some cars stop: in pairs for accidents, alone for breakdowns; returns the pairs."""
    pairs = []
    free = [list(rng.permutation(np.flatnonzero(~cars.enters & (cars.dir == way)))) for way in (0, 1)]
    for way in (0, 1):
        for number in range(road.accidents):
            if len(free[way]) < 2:
                break
            a, b = (int(free[way].pop()) for _ in range(2))
            # The first one stops as soon as is asked for, the others later, and for longer than it takes to be seen.
            at = road.accident_s // EVERY_S + number * max(1, int(rng.integers(4, 8)))
            place = rng.uniform(10, 85) * FEET
            for car in (a, b):
                cars.x[car] = place - 1_320 * at - rng.uniform(0, 200)
                cars.exit_x[car], cars.last[car] = END, 10**6
                cars.stop_at[car], cars.stop_for[car] = at, 5 + int(rng.integers(0, 6))
                cars.first_s[car] = int(rng.integers(0, 5))
            cars.partner[b] = a
            pairs.append((a, b))
        for _ in range(road.breakdowns):
            if free[way]:
                car = int(free[way].pop())
                cars.stop_at[car], cars.stop_for[car], cars.exit_x[car] = 1 + int(rng.integers(0, 4)), 6, END
    return pairs


def _drive(cars: _Cars, xway: int, start: int, seconds: int, rng: np.random.Generator, field_: np.ndarray, road: Road):
    """The reports of all cars, and of each trip when it begins and ends."""
    x, parts = cars.x.copy(), []
    active, left_s = np.ones(len(cars), bool), np.full(len(cars), 10**9)
    for k in range(seconds // EVERY_S + 1):
        now = cars.first_s + EVERY_S * k
        active &= now < seconds
        who = np.flatnonzero(active)
        if not len(who):
            break
        seg = np.minimum(x[who] // FEET, SEGMENTS - 1).astype(int)
        speed = field_[cars.dir[who], seg, (start + now[who]) // 60] * cars.pace[who] * rng.normal(1, 0.05, len(who))
        speed = np.clip(np.round(speed), 1, 100)
        stopped = (cars.stop_at[who] >= 0) & (k >= cars.stop_at[who]) & (k < cars.stop_at[who] + cars.stop_for[who])
        speed[stopped] = 0
        if k:
            x[who] += speed * FEET_PER_S * EVERY_S
        beside = (cars.partner >= 0) & (cars.stop_at == k)
        x[beside] = x[cars.partner[beside]]
        cars.lane[beside] = cars.lane[cars.partner[beside]]
        changes = rng.uniform(size=len(who)) < 0.1
        moved = who[changes & ~stopped]
        cars.lane[moved] = rng.integers(1, 4, len(moved))
        out = x[who] >= cars.exit_x[who]
        x[who[out]] = cars.exit_x[who[out]]
        lane = np.where(out, 4, np.where((k == 0) & cars.enters[who], 0, cars.lane[who]))
        parts.append((who, now[who], speed, lane, np.floor(x[who])))
        left_s[who[out]] = now[who[out]]
        active[who[out]] = False
        active &= k < cars.last
    parts.append(_ghosts(x, left_s, seconds, rng, road))
    who, now, speed, lane, along = (np.concatenate(values) for values in zip(*parts, strict=True))
    pos = np.where(cars.dir[who] == 0, along, END - along).astype(np.int64)
    made = {name: np.full(len(who), -1, np.int64) for name in COLUMNS}
    made |= {"type": np.zeros(len(who), np.int64), "time": start + now, "vid": who.astype(np.int64), "lane": lane}
    made |= {"spd": speed.astype(np.int64), "xway": np.full(len(who), xway), "dir": cars.dir[who], "pos": pos}
    made["seg"] = pos // FEET
    trips = {"vid": np.arange(len(cars)), "first": start + cars.first_s, "left": start + left_s, "enters": cars.enters}
    return made, trips


def _ghosts(x: np.ndarray, left_s: np.ndarray, seconds: int, rng: np.random.Generator, road: Road):
    """Reports of cars that have left."""
    gone = np.flatnonzero(left_s + EVERY_S < seconds)
    who = gone[rng.uniform(size=len(gone)) < road.ghosts]
    return who, left_s[who] + EVERY_S, np.full(len(who), 40.0), np.full(len(who), 2), np.minimum(x[who] + 900, END)


def _as_accident(made, xway: int, pair: tuple[int, int]) -> Accident | None:
    """What has become of an accident that was arranged; none if the time was too short for it."""
    since, until = 0, 10**9
    for car in pair:
        mine = np.flatnonzero(made["vid"] == car)
        mine = mine[np.argsort(made["time"][mine])]
        same = np.flatnonzero(made["spd"][mine] == 0)
        if len(same) < 3:
            return None
        # It is at the place with the report before the first that has a speed of 0, or with that.
        at = made["pos"][mine[same[0]]]
        there = np.flatnonzero(made["pos"][mine] == at)
        if len(there) < 4:
            return None
        since = max(since, int(made["time"][mine[there[3]]]))
        if there[-1] + 1 < len(mine):
            until = min(until, int(made["time"][mine[there[-1] + 1]]))
    row = mine[same[0]]
    lane, pos = int(made["lane"][row]), int(made["pos"][row])
    return Accident(xway, int(made["dir"][row]), lane, pos, pair, since, until) if since < until else None


def _queries(made, cars: _Cars, start: int, seconds: int, rng: np.random.Generator, road: Road):
    """What drivers ask, some seconds after a report."""
    which = np.flatnonzero((rng.uniform(size=len(made["time"])) < road.queries) & (made["lane"] != 4))
    count = len(which)
    kind = rng.choice([2, 3, 4], count, p=[0.5, 0.1, 0.4])
    asked = {name: np.full(count, -1, np.int64) for name in COLUMNS}
    asked["type"], asked["vid"], asked["qid"] = kind, made["vid"][which], np.zeros(count, np.int64)
    asked["time"] = np.minimum(made["time"][which] + rng.integers(0, 6, count), start + seconds - 1)
    asked["xway"] = np.where(kind == 2, -1, made["xway"][which])
    asked["day"] = np.where(kind == 3, rng.integers(1, 70, count), -1)
    exits = (cars.exit_x[made["vid"][which]] // FEET).astype(np.int64)
    exits = np.where(made["dir"][which] == 0, exits, SEGMENTS - 1 - exits)
    for name, values in {
        "s_init": made["seg"][which],
        "s_end": exits,
        "dow": np.full(count, road.dow),
        "tod": (road.tod + asked["time"] // 60) % 1_440,
    }.items():
        asked[name] = np.where(kind == 4, values, -1)
    return asked


def _weather(xway: int, start: int, seconds: int, wet: np.ndarray):
    """What weather stations tell: each in every minute, at a second of its own, of the rain in the minute after.

    A station is beside both directions and tells those who watch either.
    """
    stations, minutes = np.arange(len(wet)), np.arange(start // 60, (start + seconds - 1) // 60 + 1)
    way, station, minute = (part.ravel() for part in np.meshgrid((0, 1), stations, minutes, indexing="ij"))
    time = minute * 60 + 5 * station + 2 * way
    there = (time >= start) & (time < start + seconds)
    way, station, minute, time = (part[there] for part in (way, station, minute, time))
    weather_rows = {name: np.full(len(time), -1, np.int64) for name in COLUMNS}
    tenths = np.round(wet[station, np.minimum(minute + 1, wet.shape[1] - 1)] * 10).astype(np.int64)
    weather_rows |= {"type": np.full(len(time), WEATHER), "time": time, "dir": way, "spd": tenths}
    return weather_rows | {"xway": np.full(len(time), xway), "seg": station * STRETCH}


def _come_back(trips: dict[str, np.ndarray], seed: int, road: Road) -> np.ndarray:
    """The car of each trip: some entering cars have been seen before, on any expressway."""
    rng = np.random.default_rng([seed, 7])
    names = np.arange(len(trips["vid"]))
    coming = np.flatnonzero(trips["enters"] & (rng.uniform(size=len(names)) < road.come_back))
    gone = np.flatnonzero(trips["left"] < 10**8)
    if not len(gone) or not len(coming):
        return names
    gone = gone[np.argsort(trips["left"][gone], kind="stable")]
    used: set[int] = set()
    for trip in coming[np.argsort(trips["first"][coming], kind="stable")]:
        # It takes more than a minute, and some luck, to be on the road again.
        early = int(np.searchsorted(trips["left"][gone], trips["first"][trip] - 75))
        if early:
            before = int(gone[int(rng.integers(0, early))])
            if before not in used and names[before] == before:
                used.add(before)
                names[trip] = before
    return names
