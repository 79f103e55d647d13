"""The document that describes an experiment: a grid of dataflows, policies, rates, variability and seeds."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, NonNegativeFloat, PositiveFloat, PositiveInt

from headgate.documents.document import Name

__all__ = ["ExperimentDocument"]


def _list(value: object) -> object:
    return [value] if isinstance(value, (str, int, float)) and not isinstance(value, bool) else value


def _texts(value: object) -> object:
    """A rate may be a bare number, which is a constant rate."""
    listed = _list(value)
    return [str(item) for item in listed] if isinstance(listed, list) else listed


Texts = Annotated[tuple[str, ...], BeforeValidator(_texts), Field(min_length=1)]


class ExperimentDocument(BaseModel):
    """A grid: every combination of the first five is simulated."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    OF_EACH_CELL: ClassVar = (
        *("hours", "interval_s", "cloud", "metric", "unit"),
        *("replications", "message_bytes", "deploy_s", "switch_s", "counts_queues"),
    )
    """The settings that are the same in all of them."""

    version: Literal[1] = 1
    name: Name | None = Field(None, description="What to call it; the file's name if left out.")
    dataflows: Texts = Field(description="Files of dataflows, relative to this one.")
    policies: Texts = Field(description="Policies, as headgate simulate knows them.")
    rates: dict[str, Texts] = Field(min_length=1, description="By name: a rate for all sources, or SOURCE=RATE each.")
    variability: Texts = Field(("none",), description="none, ec2, futuregrid, or files or folders of traces.")
    seeds: Annotated[tuple[int, ...] | PositiveInt, Field(union_mode="left_to_right")] = Field(
        1, description="How many, from 1 on; or which."
    )
    hours: PositiveFloat = Field(12.0, description="For how long.")
    interval_s: PositiveFloat = Field(120.0, description="The length of an interval.")
    cloud: str = Field("ec2-2013", description="ec2-2013, floe-sim, ec2-2024, or a file.")
    metric: str | None = Field(None, description="Which metric of the traces is the speed.")
    unit: str = Field("share", description="Of the traces: share, percent, used-percent, time or rate.")
    replications: PositiveInt = Field(1, le=100_000, description="Worlds in each cell, of which means are kept.")
    message_bytes: PositiveFloat = Field(100.0, description="The size of a message.")
    deploy_s: NonNegativeFloat = Field(0.0, description="How long a new instance does nothing yet.")
    switch_s: NonNegativeFloat = Field(0.0, description="How long a task pauses when its alternate changes.")
    counts_queues: bool = Field(True, description="Whether what waits counts as achievable output.")

    @property
    def seed_list(self) -> tuple[int, ...]:
        return self.seeds if isinstance(self.seeds, tuple) else tuple(range(1, self.seeds + 1))
