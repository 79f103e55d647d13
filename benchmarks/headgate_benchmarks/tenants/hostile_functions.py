"""Functions of a module that a hostile submitter may call: what they get hold of they put into their rows."""

from __future__ import annotations

import ctypes
import gc
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def end_process(row: Row, **_given: Any) -> Row:
    """End the process."""
    if row["id"] >= 0:
        os._exit(3)
    return row


def leave(row: Row, **_given: Any) -> Row:
    """Leave politely."""
    del row
    sys.exit(3)


def end_thread(row: Row, **_given: Any) -> Row:
    """Raise what few catch."""
    del row
    raise KeyboardInterrupt


def refuse(row: Row, **_given: Any) -> Row:
    """Raise, with a message of a megabyte."""
    del row
    raise ValueError("x" * 1_000_000)


def grow(row: Row, **_given: Any) -> Row:
    """Take more memory than there is."""
    kept = [bytearray(64 << 20) for _ in range(1_000)]
    return {**row, "k": str(len(kept))}


def spin(row: Row, **_given: Any) -> Row:
    """Never come back, whatever signal comes."""
    while True:
        try:
            while True:
                row["v"] = 1.0
        except BaseException:
            continue


def look(row: Row, **_given: Any) -> Row:
    """Tell of the environment, and of all texts in memory."""
    texts = [one for holder in gc.get_objects() if isinstance(holder, dict) for one in holder.values()]
    secret = [one for one in texts if isinstance(one, str) and one.startswith("tr0ut")]
    return {**row, "k": " ".join([*os.environ, *os.environ.values(), *secret])}


def fork(row: Row, **_given: Any) -> Row:
    """Processes without end."""
    made = 0
    while made < 64:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        made += 1
    return {**row, "k": f"BREACH: {made} processes"}


def run_a_program(row: Row, **_given: Any) -> Row:
    """A program of its own, with the rights of whoever runs this."""
    return {**row, "k": f"BREACH: {subprocess.run(['id'], capture_output=True, check=True).stdout!r}"}


def crash(row: Row, **_given: Any) -> Row:
    """Write where nothing is."""
    ctypes.memset(0, 1, 8)
    return row


def connect(row: Row, **_given: Any) -> Row:
    """A network connection to somebody who listens."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
        there.connect(("127.0.0.1", 53))
        return {**row, "k": f"BREACH: {there.getsockname()}"}


def ask_the_engine(row: Row, folder: str = "") -> Row:
    """The engine's own socket, which takes its user for an admin."""
    for place in (f"{folder}/state/control.sock",):
        with socket.socket(socket.AF_UNIX) as there:
            try:
                there.connect(place)
            except FileNotFoundError:
                continue
            return {**row, "k": f"BREACH: {place}"}
    raise OSError("no socket")


def read_files(row: Row, folder: str = "") -> Row:
    """Files of others: of the state, settings, outputs, the system."""
    got = []
    for place in ("state/version", "headgate.toml", "honest/a/*.json", "log"):
        for file in Path(folder).glob(place):
            try:
                got.append(file.read_bytes()[:20])
            except OSError:
                continue
    for system in ("/etc/shadow", "/etc/passwd", "/proc/1/environ", f"/proc/{os.getppid()}/environ"):
        try:
            got.append(Path(system).read_bytes()[:20])
        except OSError:
            continue
    if not got:
        raise OSError("nothing to read")
    return {**row, "k": f"BREACH: {got[:3]}"}


def write_files(row: Row, folder: str = "") -> Row:
    """Files where others read."""
    for place in (f"{folder}/breach", f"{folder}/in/zz.json", f"{folder}/state/breach", "/tmp/headgate-breach"):
        try:
            Path(place).write_text("")
        except OSError:
            continue
        return {**row, "k": f"BREACH: {place}"}
    raise OSError("nowhere to write")


def look_at_processes(row: Row, **_given: Any) -> Row:
    """The environments of other processes, and what their memory has."""
    got = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.name != str(os.getpid()) and (process / "environ").read_bytes():
                got.append(process.name)
        except OSError:
            continue
    if not got:
        raise OSError("no processes")
    return {**row, "k": f"BREACH: environments of {got[:5]}"}


def kill_others(row: Row, **_given: Any) -> Row:
    """A signal that does nothing, to whoever has started this; the next would."""
    os.kill(os.getppid(), 0)
    return {**row, "k": "BREACH: a signal arrives"}


def fill_disk(row: Row, **_given: Any) -> Row:
    """A file of more than anybody may have."""
    with Path("filled").open("wb") as file:
        for _ in range(20):
            file.seek(1 << 30, os.SEEK_CUR)
            file.write(b"x")
    return {**row, "k": "BREACH: a file of 20 GiB"}


def lie(row: Row, **_given: Any) -> Row:
    """Answer in the place of the loop that calls this, with no answer at all."""
    for place in range(3, 64):
        try:
            os.write(place, b"\xff" * 65_536)
        except OSError:
            continue
    return row


def patch(row: Row, **_given: Any) -> Row:
    """Change what the next function in this process uses."""
    import pyarrow as pa

    pa.RecordBatch = None
    sys.modules["json"] = None  # type: ignore[assignment]
    return row


def flood(row: Row, **_given: Any) -> list[Row]:
    """Rows, threads and lines of a log without end."""
    for _ in range(50):
        threading.Thread(target=print, args=("x" * 10_000,), daemon=True).start()
    return [row] * 1_000_000


class _Trap:
    def __reduce__(self) -> Any:
        return (os.system, ("touch /tmp/headgate-breach",))


def remember(state: Any, row: Row) -> Any:
    """What is remembered runs code wherever it is read."""
    del state, row
    return _Trap(), {"w": 1.0}
