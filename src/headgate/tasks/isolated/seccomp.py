"""A filter of system calls: no programs, no processes, no signals, no sockets. Linux only; it needs no rights.

The program is classic BPF over ``struct seccomp_data`` (number of the call, architecture, arguments). A call on the
list is answered with an error, as one that the system does not allow. The list is of what a function over rows never
needs; files are not its concern (:mod:`headgate.tasks.isolated.landlock`).
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from collections.abc import Iterator

__all__ = ["filter_calls"]

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000, 0x80000000
NUMBER_AT, ARCHITECTURE_AT, FIRST_AT, SECOND_AT = 0, 4, 16, 24
CLONE_THREAD = 0x00010000
AF_INET, AF_INET6 = 2, 10
X32 = 0x40000000
"""From here on, numbers on x86-64 are those of another interface to the same calls."""

MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""The architecture as the filter sees it, and the column of the following table."""

NEVER = {
    "execve": (59, 221),
    "execveat": (322, 281),
    "fork": (57, None),
    "vfork": (58, None),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "io_uring_setup": (425, 425),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "unshare": (272, 97),
    "setns": (308, 268),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
}
SOCKET, CLONE, CLONE3, PRLIMIT = (41, 198), (56, 220), (435, 435), (302, 261)


def filter_calls(*, network: bool) -> bool:
    """Let this process and its threads make no such calls any more; whether that was possible."""
    if platform.system() != "Linux" or platform.machine() not in MACHINES:
        return False
    program = b"".join(_program(*MACHINES[platform.machine()], network))
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(instructions))
    library = ctypes.CDLL(None, use_errno=True)
    pointer = ctypes.create_string_buffer(header, len(header))
    return bool(library.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, pointer, 0, 0) == 0)


def _program(architecture: int, column: int, network: bool) -> Iterator[bytes]:
    refuse = REFUSE | errno.EPERM
    yield _step(LOAD, ARCHITECTURE_AT)
    yield _step(JUMP_EQUAL, architecture, skip_if=1)
    yield _step(RETURN, KILL)
    yield _step(LOAD, NUMBER_AT)
    if column == 0:
        yield from _answer(JUMP_AT_LEAST, X32, refuse)
    for numbers in NEVER.values():
        number = numbers[column]
        if number is not None:
            yield from _answer(JUMP_EQUAL, number, refuse)
    # The libraries then start threads by the older call, whose flags can be seen.
    yield from _answer(JUMP_EQUAL, CLONE3[column], REFUSE | errno.ENOSYS)
    yield from _looked_at(CLONE[column], FIRST_AT, _step(JUMP_BITS, CLONE_THREAD, skip_if=1), refuse)
    # Limits of other processes; of this one they can be read and lowered.
    yield from _looked_at(PRLIMIT[column], FIRST_AT, _step(JUMP_EQUAL, 0, skip_if=1), refuse)
    if network:
        is_internet = (_step(JUMP_EQUAL, AF_INET, skip_if=2), _step(JUMP_EQUAL, AF_INET6, skip_if=1))
        yield from _looked_at(SOCKET[column], FIRST_AT, b"".join(is_internet), refuse)
    else:
        yield from _answer(JUMP_EQUAL, SOCKET[column], refuse)
    yield _step(RETURN, ALLOW)


def _answer(kind: int, number: int, answer: int) -> Iterator[bytes]:
    """Answer a call so."""
    yield _step(kind, number, skip_else=1)
    yield _step(RETURN, answer)


def _looked_at(number: int, place: int, tests: bytes, refuse: int) -> Iterator[bytes]:
    """Answer a call so unless an argument passes the tests, which then skip what follows them."""
    yield _step(JUMP_EQUAL, number, skip_else=len(tests) // 8 + 3)
    yield _step(LOAD, place)
    yield tests
    yield _step(RETURN, refuse)
    yield _step(LOAD, NUMBER_AT)


def _step(code: int, value: int, skip_if: int = 0, skip_else: int = 0) -> bytes:
    return struct.pack("HBBI", code, skip_if, skip_else, value)
