"""Full and unreadable disks, simulated below SQLite's VFS (its disk layer)."""

import ctypes
import errno
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import apsw

_vfs_numbers = itertools.count(1)

_READ_WRITE = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, use_errno=True)
_PREAD_PWRITE = ctypes.CFUNCTYPE(
    ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, use_errno=True
)
_PROTOTYPES = {"write": _READ_WRITE, "pwrite": _PREAD_PWRITE, "pwrite64": _PREAD_PWRITE}
_PROTOTYPES |= {"read": _READ_WRITE, "pread": _PREAD_PWRITE, "pread64": _PREAD_PWRITE}
WRITE_CALLS = ("write", "pwrite", "pwrite64")
READ_CALLS = ("read", "pread", "pread64")


class FaultSchedule:
    """Decides which calls of a kind fail. None fail until `start_failing` is called."""

    def __init__(self) -> None:
        self.calls = 0
        self._first: int | None = None
        self._last = 0

    def start_failing(self, *, after: int = 0, times: int = 1_000_000_000) -> None:
        """Let the next `after` calls succeed and the `times` calls after them fail."""
        self._first = self.calls + after + 1
        self._last = self.calls + after + times

    def stop_failing(self) -> None:
        self._first = None

    def should_fail(self) -> bool:
        """Count a call and return whether it fails."""
        self.calls += 1
        return self._first is not None and self._first <= self.calls <= self._last


@contextmanager
def full_disk() -> Iterator[FaultSchedule]:
    """Let writes to SQLite files in this process fail with a full disk. The first one still writes half of its bytes.

    System calls are replaced below the VFS. An exception in a VFS written in Python would be raised even where SQLite
    ignores the error, such as in a checkpoint after a commit.
    """
    faults = FaultSchedule()
    half_written = False

    def write(real: Callable[..., int], fd: int, data: int, size: int, *offset: int) -> int:
        nonlocal half_written
        if not faults.should_fail():
            half_written = False
            return real(fd, data, size, *offset)
        if not half_written and size > 1:
            half_written = True
            return real(fd, data, size // 2, *offset)
        ctypes.set_errno(errno.ENOSPC)
        return -1

    with _replace_system_calls(WRITE_CALLS, write):
        yield faults


@contextmanager
def unreadable_disk(error: int = errno.EIO) -> Iterator[FaultSchedule]:
    """Let reads of SQLite files in this process fail with `error`."""
    faults = FaultSchedule()

    def read(real: Callable[..., int], fd: int, data: int, size: int, *offset: int) -> int:
        if not faults.should_fail():
            return real(fd, data, size, *offset)
        ctypes.set_errno(error)
        return -1

    with _replace_system_calls(READ_CALLS, read):
        yield faults


@contextmanager
def _replace_system_calls(names: tuple[str, ...], call: Callable[..., int]) -> Iterator[None]:
    vfs = apsw.VFS(f"system-calls-{next(_vfs_numbers)}", "")
    callbacks: dict[str, Any] = {}
    try:
        for name in names:
            pointer = vfs.xGetSystemCall(name)
            if pointer is not None:
                callbacks[name] = _wrap_call(name, pointer, call)
                vfs.xSetSystemCall(name, ctypes.cast(callbacks[name], ctypes.c_void_p).value or 0)
        yield
    finally:
        for name in callbacks:
            vfs.xSetSystemCall(name, 0)
        vfs.unregister()


def _wrap_call(name: str, pointer: int, call: Callable[..., int]) -> Any:
    prototype = _PROTOTYPES[name]
    real = prototype(pointer)
    return prototype(lambda *arguments: call(real, *arguments))
