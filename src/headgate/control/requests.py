"""What may be asked of a running engine, each answered by its use case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from headgate.control.server import Answerer
from headgate.errors import InputError
from headgate.service.engine import RunningEngine
from headgate.service.listing import listing
from headgate.service.status import status
from headgate.service.submit import submit
from headgate.service.withdraw import withdraw
from headgate.tasks.registry import Registry

__all__ = ["answerer"]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Submit(_Request):
    do: Literal["submit"]
    dataflows: list[dict[str, Any]] = Field(min_length=1)
    replace: bool = False


class _Withdraw(_Request):
    do: Literal["withdraw"]
    names: list[str] = Field(min_length=1)


class _List(_Request):
    do: Literal["list"]


class _Status(_Request):
    do: Literal["status"]
    name: str | None = None


_REQUESTS: TypeAdapter[_Submit | _Withdraw | _List | _Status] = TypeAdapter(
    Annotated[_Submit | _Withdraw | _List | _Status, Field(discriminator="do")]
)


def answerer(engine: RunningEngine, registry: Registry) -> Answerer:
    """Answers requests with an engine."""

    def answer(request: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            wanted = _REQUESTS.validate_python(request)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            told = f"a request that cannot be understood{f' at {where}' if where else ''}: {first['msg'].lower()}"
            raise InputError("BAD_REQUEST", told) from None
        match wanted:
            case _Submit():
                return submit(engine, wanted.dataflows, registry, replace=wanted.replace)
            case _Withdraw():
                return withdraw(engine, wanted.names)
            case _List():
                return listing(engine)
            case _Status():
                return status(engine, wanted.name)

    return answer
