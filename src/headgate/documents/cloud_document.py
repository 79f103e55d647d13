"""The document that describes a cloud: VM classes, their prices and how they are billed."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat

from headgate.documents import read_located
from headgate.documents.check.pydantic_faults import model_of
from headgate.documents.document import Name
from headgate.errors import BadValue, Fault, InvalidDataflow
from headgate.model.cluster.vm_class import HOURLY, PER_MINUTE, PER_SECOND, Cloud, VmClass

__all__ = ["CloudDocument", "VmClassDocument", "load_cloud"]

_BILLING = {"hour": HOURLY, "minute": PER_MINUTE, "second": PER_SECOND}
Price = Annotated[Decimal, Field(max_digits=15, decimal_places=6)]


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class VmClassDocument(_Document):
    """A kind of machine."""

    name: str = Field(min_length=1, max_length=128)
    cores: int = Field(description="Cores.")
    core_power: float = Field(1.0, description="One core relative to the reference core.")
    bandwidth_mbit_per_s: float = Field(1_000.0, description="To one other machine.")
    price_per_h: Price = Field(description="Price of an hour.")
    boot_s: NonNegativeFloat = Field(0.0, description="From asking for one to its first work.")
    shut_down_s: NonNegativeFloat = Field(0.0, description="For how long it is still paid after it was released.")
    interruptions_per_h: NonNegativeFloat = Field(0.0, description="How often a spot machine is taken back.")


class CloudDocument(_Document):
    """What machines can be had."""

    version: Literal[1] = 1
    name: Name | None = Field(None, description="What to call it; the file's name if left out.")
    billing: Literal["hour", "minute", "second"] = Field("hour", description="What is paid for whole.")
    latency_s: NonNegativeFloat = Field(0.0005, description="From one machine to another at best.")
    currency: str = Field("USD", min_length=1, max_length=8)
    classes: list[Any] = Field(min_length=1, description="The VM classes.")


def load_cloud(path: Path) -> Cloud:
    """Read a cloud from YAML or JSON; raises :class:`~headgate.errors.InvalidDataflow` with every fault."""
    located = read_located(path, ("yaml", "json"))
    faults = list(located.faults)
    document = model_of(CloudDocument, located.value, located, faults)
    classes = []
    for place, given in enumerate(document.classes if document else []):
        read = model_of(VmClassDocument, given, located, faults, ["classes", place])
        try:
            classes += [VmClass(**read.model_dump())] if read else []
        except BadValue as error:
            where = located.place(["classes", place])
            faults.append(Fault("BAD_VM_CLASS", str(error), where, expected=error.expected))
    if not faults and document is not None:
        try:
            return Cloud(
                document.name or path.stem,
                tuple(classes),
                _BILLING[document.billing],
                document.latency_s,
                document.currency,
            )
        except BadValue as error:
            faults.append(Fault("BAD_CLOUD", str(error), located.place([]), expected=error.expected))
    raise InvalidDataflow(faults)
