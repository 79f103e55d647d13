"""What Headgate needs of Spark beyond its public API, as a protocol: answered by Spark, and by a fake in the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["BatchProgress", "ExecutorInfo", "JobInfo", "Places", "SparkInternals"]

T = TypeVar("T")

Places = Sequence[Sequence["ExecutorInfo"]]
"""For each partition the executors on which it is to run; none means anywhere."""


@dataclass(frozen=True, slots=True)
class ExecutorInfo:
    """An executor, as Spark's status store has it."""

    id: str
    host: str
    cores: int
    active_tasks: int
    task_s: float
    """Seconds in tasks that have ended, since the executor started."""


@dataclass(frozen=True, slots=True)
class JobInfo:
    """A finished Spark job."""

    submitted: float
    completed: float
    """Both in seconds since 1970."""

    scheduling_s: float
    """From the submission of its stages to the launch of their first tasks."""

    run_s: float
    """Run time of its tasks, waiting included."""

    cpu_s: float
    """CPU time of its tasks in the JVM; that of Python workers is not included."""

    memory_bytes: int
    """Peak execution memory: sorting, joining, aggregating."""

    parts: int = 1
    """Into how many tasks the stage was cut that took longest."""


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """What Spark itself did around one micro-batch."""

    batch: int
    planning_s: float
    commit_s: float


class SparkInternals(Protocol):
    """The private parts of one Spark session."""

    def register_functions(self) -> None:
        """Give SQL names to expressions that Spark has and does not name (:mod:`headgate.tasks.sql_text`)."""

    def unregister_functions(self, names: Iterable[str]) -> None:
        """Make SQL forget functions, so that no text can call them, however it came here."""

    def functions(self) -> frozenset[str]:
        """The names of all functions of SQL, without table functions and operators of the grammar."""

    def parsed_query(self, query: str) -> Any:
        """A query as Spark's parser understands it, unresolved, as plain values; raises what Spark does."""

    def scheduler_pool(self, name: str, minimum: int = 1, weight: int = 1) -> None:
        """Create a pool of the fair scheduler, unless it exists or Spark schedules otherwise."""

    def check_streaming(self, frame: DataFrame) -> None:
        """Raise what Spark would raise when a query over this stream starts."""

    def progress(self, query: StreamingQuery, after_batch: int) -> Sequence[BatchProgress]:
        """The micro-batches of a query after a given one that Spark still remembers."""

    def jobs(self, tag: str, patience_s: float = 1.0) -> Sequence[JobInfo]:
        """The finished jobs of a tag; waits up to ``patience_s`` for the status store to catch up."""

    def is_stopped(self) -> bool:
        """Whether the Spark application has ended."""

    # executors

    def executors(self) -> Sequence[ExecutorInfo]:
        """The executors that take tasks, oldest first. A local Spark has one."""

    def running_s(self, now: float) -> dict[str, float]:
        """Seconds since the start of the tasks that run now, by executor."""

    def run_on_executors(self, work: Callable[[], T], executors: Sequence[ExecutorInfo]) -> dict[str, T]:
        """Run a function in the Python of each executor; results by executor."""

    def placed_rows(self, places: Places) -> DataFrame:
        """A frame with a partition of one row for each place, which Spark prefers to process there."""

    def locality_wait(self, seconds: float) -> None:
        """Let tasks wait so long for the executor that they prefer, from the next job on."""

    def request_executors(self, count: int) -> None:
        """Set the total number of executors."""

    def decommission(self, ids: Sequence[str]) -> None:
        """Let executors finish their tasks, migrate their blocks, and leave."""

    def jvm_process(self) -> Any:
        """The JVM's process, if this Python process started it."""
