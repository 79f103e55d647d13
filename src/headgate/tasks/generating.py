"""A source that makes records like those of real sensors, for examples, trials and tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, NonNegativeFloat, PositiveInt

from headgate.model.schema import Column, Schema
from headgate.model.task_type import OUT, SOURCE, Inputs, TaskConfig, TaskType

__all__ = ["TYPES", "Generate"]


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


TYPES = (TaskType("generate", Generate, SOURCE),)
