"""How much a read may hold in memory at once.

A server answers many callers in one process, so it limits each read and gives a larger one memory from a shared budget.
Elsewhere, there is no limit. The limit belongs to the thread that runs the transaction, as the transaction itself does.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

PAGE_BYTES = 256 * 1024
"""How many bytes of rows a limited read returns at once."""
NO_LIMIT = 2**31 - 1
"""The largest integer of both databases. No row is larger."""


class LargeReadError(Exception):
    """A read needs to hold `size` bytes at once, which is more than it may. It can run again when it may hold them."""

    def __init__(self, size: int) -> None:
        super().__init__(f"a read of {size} bytes needs memory of the shared budget")
        self.size = size


class _ReadMemory(threading.local):
    max_bytes = NO_LIMIT


_memory = _ReadMemory()


@contextmanager
def limited_to(max_bytes: int) -> Iterator[None]:
    """Limit what the reads of this thread hold at once. A read that needs more raises `LargeReadError`."""
    before, _memory.max_bytes = _memory.max_bytes, max_bytes
    try:
        yield
    finally:
        _memory.max_bytes = before


def is_limited() -> bool:
    return _memory.max_bytes < NO_LIMIT


def page_bytes() -> int:
    """Return how many bytes of rows a read returns at once: a page, or everything if there is no limit."""
    return PAGE_BYTES if is_limited() else NO_LIMIT


def largest_row() -> int:
    """Return the maximum size in bytes of a row that a read may return."""
    return _memory.max_bytes


def require(size: int) -> None:
    """Raise `LargeReadError` if `size` bytes are more than this thread may hold at once."""
    if size > _memory.max_bytes:
        raise LargeReadError(size)
