"""A source that makes records like those of real sensors, for examples, trials and tests.

Each record follows from the seed and its number, so any of them can be made again. Numbers are drawn for blocks of
records, from a generator that counts (Philox): a block needs none of those before it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, NonNegativeFloat, PositiveInt

from headgate.model.schema import Column, Schema
from headgate.model.task_type import OUT, SOURCE, Inputs, TaskConfig, TaskType
from headgate.model.work import RowLimit, SourceContext, SourceWork
from headgate.tasks.heavy import np, pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["BAD", "FIELDS", "TYPES", "bad_kinds", "records", "sensors", "values_of"]

BLOCK = 1_024
BEGIN_MS = int(datetime(2026, 7, 1, 6, tzinfo=UTC).timestamp() * 1_000)
PERIOD_S = 600.0
"""How long it takes for a trend to come back."""

BAD = ("cut off", "wrong unit", "no id", "impossible time", "huge text", "wrong encoding")
"""In which ways a record can be broken."""

HUGE = 20_000
"""Characters of a huge text."""

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


class Generate(TaskConfig):
    """Make records as a city's sensors, taxis or people's fitness sensors send them, at a steady rate.

    Values follow trends, with noise, and depend on each other; some are missing, some are outliers, some records come
    late, a few keys send most of them, and a share may be broken: cut off, in a wrong unit, without their id, with a
    time that cannot be, with a huge text, or in a wrong encoding. A record follows from the seed and its number alone.
    """

    example: ClassVar[Mapping[str, Any]] = {"data": "city", "rows_per_s": 200, "bad": 0.01}

    data: Literal["city", "taxi", "fitness"] = Field("city", description="What the records are about.")
    form: Literal["senml", "csv"] = Field("senml", description="How they are written.")
    rows_per_s: PositiveInt = Field(100, le=1_000_000, description="Records per second.")
    seed: int = Field(1, ge=0, lt=2**31, description="Another seed makes other records.")
    keys: PositiveInt = Field(50, le=1_000_000, description="How many sensors, taxis or people there are.")
    skew: NonNegativeFloat = Field(0.8, le=5, description="How unequal they are: the exponent of Zipf's law.")
    missing: float = Field(0.02, ge=0, le=1, description="The share of values that are missing.")
    outliers: float = Field(0.01, ge=0, le=1, description="The share of values that are far off.")
    late: float = Field(0.05, ge=0, le=1, description="The share of records that are late: half a minute on average.")
    bad: float = Field(0.0, ge=0, le=1, description="The share of records that are broken.")

    def outputs(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        del inputs
        return {OUT: Schema((Column("id", "bigint"), Column("value", "string")))}


@dataclass(frozen=True, slots=True)
class SensorField:
    """A field of a record: its name, its unit, and whether it is a number."""

    name: str
    unit: str
    number: bool = True


def _fields(numbers: str, texts: str) -> tuple[SensorField, ...]:
    """Fields from texts such as ``temperature:far``."""
    split = [(part.split(":"), number) for some, number in ((texts, False), (numbers, True)) for part in some.split()]
    return tuple(SensorField(name, unit, number) for (name, unit), number in split)


_BODY = " ".join(
    f"{kind}_{part}_{axis}:{unit}"
    for kind, unit, parts in (
        ("acc", "m/s2", ("chest", "ankle", "arm")),
        ("gyro", "deg/s", ("ankle", "arm")),
        ("magnetometer", "tesla", ("ankle", "arm")),
    )
    for part in parts
    for axis in "xyz"
)

FIELDS = {
    "city": _fields(
        "longitude:lon latitude:lat temperature:far humidity:per light:per dust:per airquality_raw:per", "source:string"
    ),
    "taxi": _fields(
        "trip_time_in_secs:second trip_distance:meter fare_amount:dollar surcharge:percentage mta_tax:percentage "
        "tip_amount:dollar tolls_amount:dollar total_amount:dollar",
        "taxi_identifier:string hack_license:string payment_type:string",
    ),
    "fitness": _fields(f"{_BODY} ecg_lead_1:mV ecg_lead_2:mV label:number", "subjectId:string"),
}
"""The fields of the records; the first is the id of who sends them."""

PLACES = ("longitude", "latitude", "surcharge", "mta_tax", "label")
"""Numbers that are never missing and never far off."""


def sensors(options: Generate) -> list[str]:
    """The ids of those that send records, those that send most first."""
    return list(_ids(options.data, options.seed, options.keys))


@lru_cache(maxsize=8)
def _ids(data: str, seed: int, keys: int) -> tuple[str, ...]:
    if data == "fitness":
        return tuple(f"subject{number + 1}" for number in range(keys))
    digests = (hashlib.md5(f"{data}{seed}-{n}".encode(), usedforsecurity=False).hexdigest() for n in range(keys))
    return tuple(d.upper() if data == "taxi" else f"ci4{d[:20]}" for d in digests)


@lru_cache(maxsize=8)
def _shares(keys: int, skew: float) -> Numbers:
    weights = np.arange(1, keys + 1, dtype=float) ** -skew
    return np.cumsum(weights / weights.sum())


@lru_cache(maxsize=8)
def _habits(seed: int, keys: int) -> Numbers:
    """What distinguishes senders: six numbers each."""
    return np.random.default_rng([seed, 77]).normal(size=(6, keys))


class _Block:
    """The draws for a block of records."""

    def __init__(self, options: Generate, block: int) -> None:
        draw = np.random.Generator(np.random.Philox(key=options.seed, counter=[0, 0, block, 0]))
        self.numbers = np.arange(block * BLOCK, (block + 1) * BLOCK)
        self.keys = np.minimum(
            np.searchsorted(_shares(options.keys, options.skew), draw.random(BLOCK)), options.keys - 1
        )
        self.times_s = self.numbers / options.rows_per_s
        wide = len(FIELDS[options.data])
        self.noise = draw.normal(size=(wide, BLOCK))
        self.luck = draw.random((3, BLOCK))
        self.missing = draw.random((wide, BLOCK)) < options.missing
        self.far_off = draw.random((wide, BLOCK)) < options.outliers
        late_s = np.where(draw.random(BLOCK) < options.late, draw.exponential(30.0, BLOCK), 0.0)
        self.sent_ms = (BEGIN_MS + (self.times_s - late_s) * 1_000).astype(np.int64)
        self.bad = np.where(draw.random(BLOCK) < options.bad, draw.integers(0, len(BAD), BLOCK), -1)
        self.habits = _habits(options.seed, options.keys)[:, self.keys]
        self.phase = 2 * math.pi * self.times_s / PERIOD_S


def _city(block: _Block) -> dict[str, Any]:
    noise, habits = block.noise, block.habits
    temperature = 18 + 3 * habits[0] + 6 * np.sin(block.phase) + 0.5 * noise[0]
    humidity = np.clip(55 - 1.5 * (temperature - 18) + 4 * habits[1] + 2 * noise[1], 11, 95)
    dust = np.clip(np.exp(6.5 + 0.4 * habits[2] + 0.3 * noise[2]), 190, 5_100)
    return {
        "longitude": (6.1 + 0.1 * habits[3], 6),
        "latitude": (46.2 + 0.05 * habits[4], 6),
        "temperature": (temperature, 1),
        "humidity": (humidity, 1),
        "light": (np.clip(9_000 + 7_000 * np.sin(block.phase) + 400 * noise[3], 1_350, 26_000), 0),
        "dust": (dust, 2),
        "airquality_raw": (np.clip(15 + 0.02 * dust + 0.4 * humidity + 2 * noise[4], 18, 360), 0),
    }


def _taxi(block: _Block) -> dict[str, Any]:
    noise = block.noise
    distance = np.clip(np.exp(1.1 + 0.6 * noise[0]), 0.4, 29)
    time = np.clip((120 + 170 * distance * (1 + 0.3 * np.sin(block.phase))) * np.exp(0.15 * noise[1]), 60, 3_100)
    fare = np.round(2.5 + 1.9 * distance + 0.006 * time + 0.3 * noise[2], 2)
    tip = np.where(block.luck[0] < 0.55, np.round(fare * 0.3 * block.luck[1], 2), 0.0)
    tolls = np.where(block.luck[2] < 0.05, 5.33, 0.0)
    half = np.full(BLOCK, 0.5)
    return {
        "trip_time_in_secs": (time, 0),
        "trip_distance": (distance, 2),
        "fare_amount": (fare, 2),
        "surcharge": (half, 2),
        "mta_tax": (half, 2),
        "tip_amount": (tip, 2),
        "tolls_amount": (tolls, 2),
        "total_amount": (fare + tip + tolls + 1.0, 2),
    }


def _fitness(block: _Block) -> dict[str, Any]:
    activity = (block.times_s // 60 + block.keys).astype(int) % 4
    swing = np.array([0.1, 1.0, 2.5, 4.0])[activity]
    values: dict[str, Any] = {}
    for place, field in enumerate(FIELDS["fitness"][1:]):
        rest = -9.3 if field.name in ("acc_chest_x", "acc_ankle_y", "acc_arm_y") else 0.3 * math.sin(place)
        size = {"acc": 0.8, "gyr": 0.15, "mag": 0.2, "ecg": 0.2}.get(field.name[:3], 0.0)
        beat = np.sin(2 * math.pi * 1.5 * block.times_s + place + block.habits[0])
        values[field.name] = (rest + size * (swing * beat + 0.2 * block.noise[place]), 5)
    values["label"] = (activity.astype(float), 0)
    return values


_MAKERS: dict[str, Callable[[_Block], dict[str, Any]]] = {"city": _city, "taxi": _taxi, "fitness": _fitness}


def _texts(block: _Block, options: Generate) -> dict[str, list[str]]:
    ids = _ids(options.data, options.seed, options.keys)
    texts = {FIELDS[options.data][0].name: [ids[key] for key in block.keys]}
    if options.data == "taxi":
        drivers = _ids("taxi", options.seed + 1, options.keys)
        texts["hack_license"] = [drivers[key] for key in block.keys]
        texts["payment_type"] = ["CRD" if card else "CSH" for card in block.luck[0] < 0.55]
    return texts


@lru_cache(maxsize=4)
def _block(chosen: str, block: int) -> tuple[list[bytes], list[int]]:
    options = Generate.model_validate_json(chosen)
    drawn = _Block(options, block)
    columns: list[Sequence[str | None]] = []
    texts, numbers = _texts(drawn, options), _MAKERS[options.data](drawn)
    for place, field in enumerate(FIELDS[options.data]):
        if field.number:
            columns.append(_written(field, drawn, place, *numbers[field.name]))
        else:
            columns.append(texts[field.name])
    write = _senml if options.form == "senml" else _csv
    rows = zip(drawn.sent_ms.tolist(), zip(*columns, strict=True), drawn.bad.tolist(), strict=True)
    return [write(options, *row) for row in rows], drawn.bad.tolist()


def _written(field: SensorField, block: _Block, place: int, values: Numbers, digits: int) -> list[str | None]:
    """Values as texts; nothing where they are missing."""
    steady = field.name in PLACES
    if not steady:
        values = np.where(block.far_off[place], 10 * np.abs(values) + 50_000, values)
    texts = [f"{value:.{digits}f}" for value in values.tolist()]
    if steady:
        return list(texts)
    return [None if gone else text for text, gone in zip(texts, block.missing[place].tolist(), strict=True)]


def _senml(options: Generate, sent_ms: int, values: Sequence[str | None], bad: int) -> bytes:
    kind = BAD[bad] if bad >= 0 else ""
    entries: list[str] = []
    for field, value in zip(FIELDS[options.data], values, strict=True):
        if value is None or (kind == "no id" and not entries and not field.number):
            continue
        unit = "parsec" if kind == "wrong unit" and field.number else field.unit
        where, text = ("v", value) if field.number else ("sv", "x" * HUGE if kind == "huge text" else value)
        entries.append(f'{{"u":"{unit}","n":"{field.name}","{where}":"{text}"}}')
    if kind == "impossible time":
        sent_ms = 10**15
    record = f'{{"e":[{",".join(entries)}],"bt":{sent_ms}}}'
    return _broken(record, kind, '"sv":"')


def _csv(options: Generate, sent_ms: int, values: Sequence[str | None], bad: int) -> bytes:
    del options
    kind = BAD[bad] if bad >= 0 else ""
    texts = [value or "" for value in values]
    if kind in ("no id", "huge text"):
        texts[0] = "" if kind == "no id" else "x" * HUGE
    if kind == "wrong unit":
        texts[-1] = "3 parsec"
    time = "later" if kind == "impossible time" else datetime.fromtimestamp(sent_ms / 1_000, UTC).isoformat()
    return _broken(",".join([time, *texts]), kind, ",")


def _broken(record: str, kind: str, before: str) -> bytes:
    if kind == "cut off":
        return record[: len(record) // 2].encode()
    if kind == "wrong encoding":
        first, mark, rest = record.partition(before)
        return f"{first}{mark}\u00e9\u00fc{rest}".encode("latin-1")
    return record.encode()


def records(options: Generate, numbers: Iterable[int]) -> list[bytes]:
    """The records of some numbers.

    >>> records(Generate(data="fitness", form="csv", missing=0, keys=2), [0])[0][:45]
    b'2026-07-01T06:00:00+00:00,subject1,-9.21492,0'
    """
    chosen = options.model_dump_json()
    return [_block(chosen, number // BLOCK)[0][number % BLOCK] for number in numbers]


def values_of(options: Generate, count: int, noisy: bool = True) -> dict[str, Numbers]:
    """The numbers behind the first records, before any is missing or far off, and ``key``: the number of the sender.

    Without noise, they are what a perfect sensor would measure in a world that follows its trends.
    """
    parts: list[dict[str, Numbers]] = []
    for block in range(-(-count // BLOCK)):
        drawn = _Block(options, block)
        drawn.noise = drawn.noise if noisy else np.zeros_like(drawn.noise)
        rounded = {name: np.round(values, digits) for name, (values, digits) in _MAKERS[options.data](drawn).items()}
        parts.append({"key": drawn.keys.astype(float), **rounded})
    return {name: np.concatenate([part[name] for part in parts])[:count] for name in parts[0]}


def bad_kinds(options: Generate, numbers: Iterable[int]) -> list[str | None]:
    """In which way each record of some numbers is broken, if it is."""
    chosen = options.model_dump_json()
    kinds = (_block(chosen, number // BLOCK)[1][number % BLOCK] for number in numbers)
    return [None if kind < 0 else BAD[kind] for kind in kinds]


def _read(options: Generate, context: SourceContext) -> DataFrame:
    """Spark counts, and records follow from the numbers."""

    def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            texts = pa.array(records(options, batch.column("value").to_pylist()), pa.binary())
            # Among broken records are some that are no UTF-8, which Arrow would otherwise refuse.
            columns = [batch.column("value"), texts.cast(pa.string(), safe=False), batch.column("__ingest")]
            yield pa.RecordBatch.from_arrays(columns, ["id", "value", "__ingest"])

    counted = context.spark.readStream.format("rate").option("rowsPerSecond", options.rows_per_s).load()
    counted = counted.selectExpr("value", "unix_micros(timestamp) as __ingest")
    return counted.mapInArrow(made, "id bigint, value string, __ingest bigint")  # type: ignore[no-any-return]


TYPES = (
    TaskType(
        "generate",
        Generate,
        SOURCE,
        package="headgate-riotbench",
        work=SourceWork(_read, lambda: "__ingest", RowLimit.NEVER),
    ),
)
