"""Notices that the clock of this machine was set. Nothing that the engine decides depends on it."""

import logging
import time
from collections.abc import Callable

from holdfast.store.database import Database, Tx, read_time

MICROS_PER_SECOND = 1_000_000
MIN_JUMP_MICROS = 5 * MICROS_PER_SECOND
"""A smaller change of the difference between two clocks is no jump: clocks are corrected a little all the time."""
MAX_READ_SECONDS = 1.0
"""The difference is not known if reading the two clocks took longer."""
STORE_INTERVAL_SECONDS = 60.0

log = logging.getLogger("holdfast.clock")
log.addHandler(logging.NullHandler())


class ClockWatch:
    """Compares the clock of this machine with the database's clock. Two threads at once may log the same jump."""

    def __init__(self, db: Database, clock: Callable[[], int]) -> None:
        self._db = db
        self._clock = clock
        self._difference: int | None = None
        """The machine's time minus the database's time, when they were last compared."""
        self._next_store = time.monotonic() + STORE_INTERVAL_SECONDS  # opening the database has stored it

    def compare(self, tx: Tx) -> None:
        """Log a warning if one of the two clocks has jumped since the last call."""
        begun = time.monotonic()
        difference = self._clock() - read_time(tx)
        if time.monotonic() - begun > MAX_READ_SECONDS:
            return
        last, self._difference = self._difference, difference
        if last is not None and abs(difference - last) >= MIN_JUMP_MICROS:
            seconds = (difference - last) / MICROS_PER_SECOND
            log.warning(
                "the clock of this machine jumped by %+.0f s against the database's clock, and is now %+.0f s from it;"
                " leases, due times and retention go by the database's clock",
                seconds,
                difference / MICROS_PER_SECOND,
            )

    def store_time_if_due(self) -> None:
        """Let the database store its time once a minute."""
        now = time.monotonic()
        if now >= self._next_store:
            self._next_store = now + STORE_INTERVAL_SECONDS
            self._db.store_time(self._clock())
