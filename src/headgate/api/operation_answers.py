"""What the routes of long work are asked and what they answer, as models."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["OperationAnswer", "OperationFacts", "OperationsAnswer", "RecommendationAnswer", "WhatIfQuestion"]


class WhatIfQuestion(BaseModel):
    """A span of the past, and what is to be different in it."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    policies: list[str] = Field(min_length=1, max_length=8, description="Under each of them.")
    since: float = Field(ge=0, le=1e11, description="In seconds since 1970.")
    until: float = Field(ge=0, le=1e11, description="In seconds since 1970.")
    rate_factor: float = Field(1.0, gt=0, le=1_000, description="So many times as much comes.")
    price_factor: float = Field(1.0, ge=0, le=1_000, description="Machines cost so many times as much.")


class OperationProblem(BaseModel):
    """Why long work has failed."""

    condition: str
    message: str


class OperationFacts(BaseModel):
    """Long work, and how far it is."""

    id: str
    kind: str
    by: str = Field(description="Who asked for it.")
    question: dict[str, Any]
    state: str = Field(description="running, done, failed, cancelled or interrupted.")
    progress: float = Field(description="From 0 to 1.")
    step: str = Field(description="What is being done.")
    began: float
    ended: float | None
    problem: OperationProblem | None


class OperationAnswer(OperationFacts):
    """Long work with what came of it."""

    result: dict[str, Any] | None = Field(None, description="When it is done.")


class OperationsAnswer(BaseModel):
    """Long work, newest first."""

    operations: list[OperationFacts]


class RecommendationAnswer(BaseModel):
    """What a policy would do now."""

    model_config = ConfigDict(extra="allow")

    policy: str
    window_ended: float
    actions: list[dict[str, Any]]
