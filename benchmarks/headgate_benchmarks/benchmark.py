"""A benchmark as a value: its parts, its sizes for the long and the short form, and the figures that it promises."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Generic, TypeVar

from headgate_benchmarks.on_spark import one_spark
from headgate_benchmarks.study import Measured, Progress, check_figures

__all__ = ["Benchmark"]

Sizes = TypeVar("Sizes")


@dataclass(frozen=True, slots=True)
class Benchmark(Generic[Sizes]):
    """A benchmark with its parts: each gets a seed, a progress callback and sizes, and returns figures and samples.

    ``smoke`` has the sizes of the short form, which runs the same code to its end in seconds.
    """

    name: str
    summary: str
    parts: Mapping[str, Callable[[int, Progress, Sizes], Measured]] = field(repr=False)
    long: Sizes = field(repr=False)
    smoke: Sizes = field(repr=False)
    promises: str = field(repr=False)
    """Names of figures, or patterns of names: all that the long form has."""

    plot: Callable[[Measured, Path], list[Path]] | None = field(default=None, repr=False)
    """Draws the samples into files of a folder."""

    whole: Callable[[int, Progress, Sizes], Measured] | None = field(default=None, repr=False)
    """Runs all parts where that is more than one part after the other."""

    spark: tuple[str, str] | None = field(default=None, repr=False)
    """Master and memory of the one Spark on which all parts run; without it, parts open their own."""

    own_cluster: bool = False
    """Starts a cluster of its own, so that it cannot run where a Spark is shared."""

    quick: Sizes | None = field(default=None, repr=False)
    """Sizes of a form between the two, where there is one."""

    choose: Callable[[Sequence[str], int, Progress, Sizes], Measured] | None = field(default=None, repr=False)
    """Runs several parts at once where that is not one after the other, such as worlds and policies."""

    def run(
        self, seed: int, progress: Progress, *, only: Sequence[str] = (), smoke: bool = False, quick: bool = False
    ) -> Measured:
        """Run all parts, or some; in the short form all promised figures must be there."""
        sizes = self.quick if quick and self.quick is not None else self.smoke if smoke else self.long
        chosen = [self.parts[name] for name in only or self.parts]
        with one_spark(*self.spark) if self.spark else nullcontext():
            if only and self.choose is not None:
                measured = self.choose(only, seed, progress, sizes)
            elif not only and self.whole is not None:
                measured = self.whole(seed, progress, sizes)
            else:
                measured = reduce(Measured.__or__, (part(seed, progress, sizes) for part in chosen))
        if smoke and not only:
            check_figures(measured.figures, self.promises.split())
        return measured
