"""Writers as processes of their own, to be killed and started again."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import msgspec

from holdfast.testing.faults.workload import Acknowledged, Event, Ledger
from holdfast.testing.faults.writer import Orders

PATIENCE = 60.0

_decode = msgspec.json.Decoder(Event).decode


class Teller:
    """A running program whose lines on standard output go into a ledger."""

    def __init__(self, command: Sequence[str], ledger: Ledger) -> None:
        self._ledger = ledger
        self._acknowledged = 0
        self._changed = threading.Condition()
        self._ended = False
        # In a session of its own, so that children it forked can be ended with it.
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self._errors = b""
        self._threads = [threading.Thread(target=self._read_events), threading.Thread(target=self._read_errors)]
        for thread in self._threads:
            thread.start()

    def wait_for(self, acknowledged: int) -> None:
        """Until so many calls were acknowledged, or the program has ended."""
        with self._changed:
            reached = self._changed.wait_for(lambda: self._acknowledged >= acknowledged or self._ended, PATIENCE)
        assert reached, f"only {self._acknowledged} of {acknowledged} calls were acknowledged in {PATIENCE} s"

    def wait_for_more(self, acknowledged: int) -> None:
        """Until so many more calls were acknowledged than by now."""
        self.wait_for(self._acknowledged + acknowledged)

    def kill(self) -> None:
        """SIGKILL: the program and what it forked get no chance to do anything more."""
        if not self._ended:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE)
        self._drain()

    def finish(self) -> None:
        """Wait for its own end, which must be a clean one."""
        try:
            code = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the program did not end: {self._errors.decode()}") from None
        self._drain()
        assert (code, self._errors) == (0, b""), f"the program ended with {code}: {self._errors.decode()}"

    def _drain(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE)

    def _read_events(self) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                if line.endswith(b"\n"):
                    self._take(_decode(line))
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _take(self, event: Event) -> None:
        self._ledger.note(event)
        if isinstance(event, Acknowledged):
            with self._changed:
                self._acknowledged += 1
                self._changed.notify_all()

    def _read_errors(self) -> None:
        assert self._process.stderr
        with self._process.stderr as stream:
            self._errors = stream.read()


@contextmanager
def running(command: Sequence[str], ledger: Ledger) -> Iterator[Teller]:
    """A program that is gone at the end, whatever happens."""
    program = Teller(command, ledger)
    try:
        yield program
    finally:
        program.kill()


@contextmanager
def writing(ledger: Ledger, orders: Orders) -> Iterator[Teller]:
    encoded = msgspec.json.encode(orders).decode()
    with running([sys.executable, "-m", "holdfast.testing.faults.writer", encoded], ledger) as program:
        yield program
