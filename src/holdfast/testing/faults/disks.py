"""Disks that are full or unreadable, as SQLite's own disk layer sees it."""

import ctypes
import errno
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import apsw

_numbers = itertools.count(1)

_WRITE = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, use_errno=True)
_PWRITE = ctypes.CFUNCTYPE(
    ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, use_errno=True
)
_PROTOTYPES = {"write": _WRITE, "pwrite": _PWRITE, "pwrite64": _PWRITE}
_PROTOTYPES |= {"read": _WRITE, "pread": _PWRITE, "pread64": _PWRITE}
WRITES = ("write", "pwrite", "pwrite64")
READS = ("read", "pread", "pread64")


class Trouble:
    """Which calls of a kind fail: none, until `begin` says from which on."""

    def __init__(self) -> None:
        self.calls = 0
        self._first: int | None = None
        self._last = 0

    def begin(self, *, after: int = 0, times: int = 1_000_000_000) -> None:
        """Let `times` calls fail after the next `after` ones have worked."""
        self._first = self.calls + after + 1
        self._last = self.calls + after + times

    def end(self) -> None:
        self._first = None

    def strikes(self) -> bool:
        """Count a call: whether it is to fail."""
        self.calls += 1
        return self._first is not None and self._first <= self.calls <= self._last


@contextmanager
def full_disk() -> Iterator[Trouble]:
    """Writes of every SQLite file in this process may find the disk full, the first of them after half of its bytes.

    The calls are replaced below SQLite's own disk layer, as an exception out of a Python disk layer would surface
    also where SQLite itself goes on, such as in a checkpoint behind a commit.
    """
    trouble = Trouble()
    halved = False

    def write(real: Callable[..., int], fd: int, data: int, size: int, *offset: int) -> int:
        nonlocal halved
        if not trouble.strikes():
            halved = False
            return real(fd, data, size, *offset)
        if not halved and size > 1:
            halved = True
            return real(fd, data, size // 2, *offset)
        ctypes.set_errno(errno.ENOSPC)
        return -1

    with _replaced(WRITES, write):
        yield trouble


@contextmanager
def unreadable_disk(error: int = errno.EIO) -> Iterator[Trouble]:
    """Reads of every SQLite file in this process may end in an error."""
    trouble = Trouble()

    def read(real: Callable[..., int], fd: int, data: int, size: int, *offset: int) -> int:
        if not trouble.strikes():
            return real(fd, data, size, *offset)
        ctypes.set_errno(error)
        return -1

    with _replaced(READS, read):
        yield trouble


@contextmanager
def _replaced(names: tuple[str, ...], call: Callable[..., int]) -> Iterator[None]:
    layer = apsw.VFS(f"system-calls-{next(_numbers)}", "")
    callbacks: dict[str, Any] = {}
    try:
        for name in names:
            pointer = layer.xGetSystemCall(name)
            if pointer is not None:
                callbacks[name] = _callback(name, pointer, call)
                layer.xSetSystemCall(name, ctypes.cast(callbacks[name], ctypes.c_void_p).value or 0)
        yield
    finally:
        for name in callbacks:
            layer.xSetSystemCall(name, 0)
        layer.unregister()


def _callback(name: str, pointer: int, call: Callable[..., int]) -> Any:
    prototype = _PROTOTYPES[name]
    real = prototype(pointer)
    return prototype(lambda *arguments: call(real, *arguments))
