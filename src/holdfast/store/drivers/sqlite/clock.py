"""The clock of an SQLite database: it counts the time that passes on the machine, and never goes back.

All processes that use a file run on one machine, so they share its boot clock, which nobody can set. One row of the
database stores the database's time at some reading of the boot clock. After a restart of the machine, or on another
one, the boot clock starts anew. The database's time then continues from the stored time, plus the time that has passed
according to the system clock, but at most `MAX_GAP_MICROS`. So a wrong system clock makes nothing expire much too
early. If the machine was off for longer, the database's time stays behind: rows are kept longer than necessary.
"""

import functools
import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast.store.database import Tx

MAX_GAP_MICROS = 30 * 60 * 1_000_000
"""How much time at most is added for a restart of the machine."""
STORE_INTERVAL_MICROS = 60 * 1_000_000
"""How old the stored time may be when a database is opened."""

_KERNEL_FILES = ("/proc/sys/kernel/random/boot_id", "/proc/self/timens_offsets")
"""Identify the run of the kernel, and the time namespace of the process, which has a boot clock of its own."""
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the first also counts while the machine sleeps

_READ = "SELECT boot_id, boot_micros, time, system_time FROM clock"
_READ_LAST_USED = "SELECT MAX(added_at) FROM watches"
_STORE = (
    "INSERT INTO clock (id, boot_id, boot_micros, time, system_time) VALUES (1, ?, ?, ?, ?) ON CONFLICT (id)"
    " DO UPDATE SET boot_id = excluded.boot_id, boot_micros = excluded.boot_micros, time = excluded.time,"
    " system_time = excluded.system_time WHERE excluded.time >= clock.time"
)


class BootClock(msgspec.Struct, frozen=True):
    """A clock that counts since the machine was started."""

    boot_id: str
    """Differs between two runs of the machine, and between machines."""
    read: Callable[[], int]
    """Returns microseconds. It never goes back during one run."""


def system_boot_clock() -> BootClock:
    return BootClock(_boot_id(), lambda: time.clock_gettime_ns(_CLOCK) // 1_000)


@functools.cache
def _boot_id() -> str:
    boot_id, namespace = (_read_words(file) for file in _KERNEL_FILES)
    # Without a boot id, a restart is recognised by a boot clock that is behind its stored reading. If it is not behind,
    # the database's time is late, never early.
    machine = os.uname().nodename if hasattr(os, "uname") else ""
    return f"{boot_id or machine} {namespace}"


def _read_words(file: str) -> str:
    try:
        return " ".join(Path(file).read_text("ascii").split())
    except OSError:
        return ""


class SqliteClock:
    """The database's clock, as one process reads it."""

    def __init__(self, boot_clock: BootClock) -> None:
        self._boot_id = boot_clock.boot_id
        self._read_boot_clock = boot_clock.read
        self._offset: int | None = None
        """The database's time minus the reading of the boot clock. None until the clock was started."""

    def now(self, *_: object) -> int:
        """The database's time in microseconds. SQL calls it as `holdfast_now()`."""
        if self._offset is None:
            raise RuntimeError("the clock of this database was not started; call migrate() first")
        return self._read_boot_clock() + self._offset

    def start(self, tx: Tx, system_time: int) -> bool:
        """Continue from the stored time. Return whether the time should be stored again soon."""
        row = tx.one(_READ)
        reading = self._read_boot_clock()
        if row is None:
            self._offset = system_time - reading
            self.store(tx, system_time)
            return False
        boot_id, boot_micros, stored_time, stored_system_time = row
        is_same_boot = boot_id == self._boot_id and boot_micros <= reading
        if is_same_boot:
            now = stored_time + reading - boot_micros
        else:
            passed = min(max(0, system_time - stored_system_time), MAX_GAP_MICROS)
            (last_used,) = tx.all(_READ_LAST_USED)[0]  # no process may have stored the time for long
            now = max(stored_time + passed, last_used or 0)
        offset = now - reading
        self._offset = offset if self._offset is None else max(offset, self._offset)
        return not is_same_boot or now - stored_time > STORE_INTERVAL_MICROS

    def store(self, tx: Tx, system_time: int) -> None:
        tx.execute(_STORE, (self._boot_id, self._read_boot_clock(), self.now(), system_time))
