"""Writes lines to standard error in a thread of its own.

A write can block for ever (a pipe that nobody reads) or fail at once (a closed pipe, a full disk). Neither may stop or
delay the program. Lines that find no room are dropped and counted. The writer never reports its own errors.
"""

import atexit
import logging
import os
import select
import sys
import threading
import time
from collections.abc import Callable

from holdfast import forking

MAX_BYTES = 4 * 1024 * 1024
MAX_LINES = 20_000
PAUSE_SECONDS = 0.005
"""How long the thread collects lines after a write: one system call for many lines costs less than one for each."""
EXIT_SECONDS = 1.0
"""How long an exit waits for lines to be written."""


class LogWriter:
    """A bounded queue of lines, and a thread that writes them. `format_drops` makes a line that states a number."""

    def __init__(self, format_drops: Callable[[int], bytes]) -> None:
        self._format_drops = format_drops
        self._descriptor = _duplicate_stderr()
        self.dropped_count = 0
        """The number of lines that were not written, since the start."""
        self._reset()
        _open_writers.add(self)

    def put(self, line: bytes) -> None:
        """Queue a line, or drop it if the queue is full. This never waits for the output."""
        with self._lock:
            if self._bytes + len(line) > MAX_BYTES or len(self._lines) >= MAX_LINES:
                self._count_dropped(1)
                return
            self._lines.append(line)
            self._bytes += len(line) + 1
            is_first = len(self._lines) == 1
        if is_first:
            self._start()
            self._has_lines.set()

    def flush(self, seconds: float) -> None:
        """Wait until all lines are written or dropped, for at most `seconds`."""
        deadline = time.monotonic() + seconds
        while (self._lines or self._is_writing) and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS / 5)

    def _reset(self) -> None:
        """Begin with no lines and no thread, also in a forked child: the parent writes its own lines."""
        self._lock = threading.Lock()
        self._has_lines = threading.Event()
        self._lines: list[bytes] = []
        self._bytes = 0
        self._unreported = 0
        self._is_writing = False
        self._ends_in_line = False
        self._thread: threading.Thread | None = None

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="holdfast-log", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while self._has_lines.wait():
            self._has_lines.clear()
            self._write_lines()
            time.sleep(PAUSE_SECONDS)

    def _write_lines(self) -> None:
        with self._lock:
            lines, self._lines, self._bytes = self._lines, [], 0
            reported, self._unreported = self._unreported, 0
            self._is_writing = True
        if reported:
            lines.append(self._format_drops(reported))
        written = self._write(b"\n".join([*lines, b""]))
        with self._lock:
            if not written:
                self._unreported += reported
                self._count_dropped(len(lines) - bool(reported))
            self._is_writing = False

    def _count_dropped(self, count: int) -> None:
        self.dropped_count += count
        self._unreported += count

    def _write(self, data: bytes) -> bool:
        """Write all data, and return whether that succeeded."""
        if self._descriptor is None:
            return False
        rest = memoryview(b"\n" + data if self._ends_in_line else data)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:  # another program has made the pipe non-blocking
                select.select([], [self._descriptor], [], EXIT_SECONDS)
            except OSError:
                self._ends_in_line = self._ends_in_line or 0 < len(rest) < len(data)
                return False
        self._ends_in_line = False
        return True


class QueuedHandler(logging.Handler):
    """Writes the records of a standard logger through a `LogWriter`."""

    def __init__(self, writer: LogWriter) -> None:
        super().__init__()
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._writer.put(self.format(record).encode("utf-8", "replace"))
        except Exception:  # noqa: BLE001 - a log never reports its own errors
            return


def _duplicate_stderr() -> int | None:
    """A descriptor of its own: if the program closes standard error, its number may become that of another file."""
    try:
        return os.dup(sys.stderr.fileno())
    except (AttributeError, OSError, ValueError):  # standard error is closed or not a file
        return None


_open_writers = forking.reset_in_child(LogWriter._reset)  # noqa: SLF001


def _flush_all() -> None:
    for writer in list(_open_writers):
        writer.flush(EXIT_SECONDS)


atexit.register(_flush_all)
