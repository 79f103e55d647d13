"""What the API answers about who may use it: models for the OpenAPI document."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "Health",
    "HealthCheck",
    "MadeToken",
    "SessionRequest",
    "TokenAnswer",
    "TokenRequest",
    "TokensAnswer",
    "VersionAnswer",
]


class TokenRequest(BaseModel):
    """A token to make."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(description="Its name, which the audit has.")
    role: Literal["viewer", "submitter", "operator", "admin"]
    teams: list[str] = Field([], description="The owners for whom it may speak.", max_length=1_000)
    expires_in_s: float | None = Field(
        90 * 86_400.0, allow_inf_nan=False, description="How long it is good for; null is for ever."
    )


class SessionRequest(BaseModel):
    """A token, to sign in with."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token: str = Field(max_length=1_000)


class TokenAnswer(BaseModel):
    """A token, without its secret."""

    name: str
    role: str
    teams: list[str]
    created_by: str
    created_at: float = Field(description="Seconds since 1970.")
    expires_at: float | None
    last_used_at: float | None


class MadeToken(TokenAnswer):
    """A new token."""

    token: str = Field(description="The secret. It is shown once and kept nowhere.")


class TokensAnswer(BaseModel):
    """All tokens."""

    tokens: list[TokenAnswer]


class VersionAnswer(BaseModel):
    """What serves."""

    version: str = Field(description="The version of Headgate.")
    api: str = Field(description="The version of the API.")


class HealthCheck(BaseModel):
    """One thing that is looked at."""

    name: str
    well: bool
    required: bool = Field(description="Whether the service is not ready without it.")
    detail: str


class Health(BaseModel):
    """Whether the service can do its work."""

    ready: bool
    checks: list[HealthCheck] = []
