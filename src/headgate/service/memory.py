"""Whether what is to be simulated fits into memory, estimated before anything is made."""

from __future__ import annotations

import os
from pathlib import Path

from headgate.errors import InputError
from headgate.simulation.setting import Setting

__all__ = ["available_bytes", "check_memory", "needed_bytes"]

MACHINE_BYTES, PLACED_BYTES = 1_000, 20
"""Of a machine, and of a task on it: simulations of 40,000 to 1,200,000 machines took 0.3 to 1.4 times as much."""


def needed_bytes(setting: Setting, headroom: float = 1.25) -> tuple[int, int]:
    """The machines that peak rates need in all replications with some headroom, and the memory of the simulation."""
    shape, largest = setting.shape(), setting.cloud.largest
    work = float(shape.rates(setting.peak_rates()) @ shape.cost_s[:, 0])
    machines = (int(headroom * work / largest.power) + 1) * setting.replications
    recorded = setting.replications * setting.intervals * 8 * (6 + shape.tasks + len(shape.sources))
    return machines, machines * (MACHINE_BYTES + PLACED_BYTES * shape.tasks) + recorded


def available_bytes() -> int:
    """The memory that programs may still take, of this computer or of what limits this process."""
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file, word in (("/proc/meminfo", "MemAvailable:"), ("/sys/fs/cgroup/memory.max", "")):
        try:
            line = next(line for line in Path(file).read_text(encoding="ascii").splitlines() if line.startswith(word))
        except (OSError, StopIteration):
            continue
        number = line.removeprefix(word).split()[0]
        most = min(most, int(number) * (1024 if word else 1)) if number.isdecimal() else most
    return most


def check_memory(setting: Setting) -> None:
    """Raise :class:`InputError` if the simulation would need more memory than there is."""
    machines, needed = needed_bytes(setting)
    available = available_bytes()
    if needed > available:
        size = f"{machines:,} machines and {setting.replications * setting.intervals:,} intervals"
        message = f"a simulation of about {size} needs {needed / 1e9:,.1f} GB of memory, and {available / 1e9:,.1f} GB"
        raise InputError("TOO_LARGE", f"{message} are available; lower the rates, the replications or the hours")
