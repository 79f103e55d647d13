"""The document that ``headgate size`` reads: operators, their rates, and a limit."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from headgate.documents.document import Name
from headgate.queueing.network import Operator

__all__ = ["MicroBatchDocument", "OperatorDocument", "SizingDocument"]

Share = Annotated[float, Field(ge=0.75, lt=1)]
ModelName = Literal["mmk", "ggk", "ggk-refined", "micro-batch"]


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class OperatorDocument(_Document):
    """One operator: what it gets, how it serves, and where its tuples go."""

    name: Name
    service_rate_per_s: PositiveFloat = Field(description="Tuples that one processor serves in a second.")
    service_scv: NonNegativeFloat = Field(1.0, description="Variance of the service time over its squared mean.")
    arrival_rate_per_s: NonNegativeFloat = Field(0.0, description="Tuples from outside in a second.")
    arrival_scv: NonNegativeFloat = Field(1.0, description="The same of the times between arrivals from outside.")
    bulk_mean: float = Field(1.0, ge=1, description="How many come from outside at once, in the mean.")
    bulk_scv: NonNegativeFloat = Field(0.0, description="How much that varies.")
    to: dict[str, NonNegativeFloat] = Field(
        default_factory=dict, description="Tuples sent to other operators per tuple served; above 1 multiplies."
    )
    processors: PositiveInt | None = Field(None, description="What it has now, to compare with.")
    processors_min: PositiveInt = Field(1, description="What it must have at least.")
    processors_max: PositiveInt | None = Field(None, description="What it may have at most.")
    price: PositiveFloat = Field(1.0, description="Price of one of its processors, in any unit.")
    speeds: tuple[PositiveFloat, ...] = Field((), description="Speeds of the processors it would get, in order.")

    @model_validator(mode="after")
    def _consistent(self) -> OperatorDocument:
        self.value()
        return self

    def value(self) -> Operator:
        names = [name for name in type(self).model_fields if name not in ("to", "processors")]
        return Operator(**{name: getattr(self, name) for name in names})


class MicroBatchDocument(_Document):
    """What micro-batches cost, if the operators are stages of one Spark streaming query."""

    trigger_s: NonNegativeFloat = Field(0.0, description="Between triggers; 0 begins a batch when the last has ended.")
    fixed_s: NonNegativeFloat = Field(0.1, description="What a batch costs besides its stages.")
    stage_s: NonNegativeFloat = Field(0.02, description="What starting a stage costs.")
    task_s: NonNegativeFloat = Field(0.002, description="What each partition of a stage adds to that.")


class SizingDocument(_Document):
    """A network of operators, and processors to split or a latency to keep."""

    version: Literal[1] = Field(1, description="Version of this format.")
    name: Name | None = Field(None, description="What to call it; the file's name if left out.")
    model: ModelName = Field("mmk", description="How operators are modelled.")
    processors: PositiveInt | None = Field(None, description="So many processors, split for the least latency.")
    latency_max_s: PositiveFloat | None = Field(None, description="This latency, with the fewest processors.")
    percentile: Share | None = Field(None, description="Ask for this share of the tuples instead of the mean.")
    micro_batch: MicroBatchDocument = Field(MicroBatchDocument(), description="For the model micro-batch.")
    operators: list[Any] = Field(min_length=1, description="The operators, in any order.")
