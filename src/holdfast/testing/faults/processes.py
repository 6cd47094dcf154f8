"""Writer processes that can be killed and restarted."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import msgspec

from holdfast.testing.faults.workload import Acknowledged, AppendLog, Event
from holdfast.testing.faults.writer import WriterOptions
from holdfast.testing.fork_server import ForkedProcess

TIMEOUT_SECONDS = 60.0

_decode = msgspec.json.Decoder(Event).decode


class ReportingProcess:
    """A running program that reports its appends on standard output; they are added to an `AppendLog`."""

    def __init__(self, process: "subprocess.Popen[bytes] | ForkedProcess", append_log: AppendLog) -> None:
        self._append_log = append_log
        self._acknowledged = 0
        self._changed = threading.Condition()
        self._ended = False
        self._process = process
        self._errors = b""
        self._threads = [threading.Thread(target=self._read_events), threading.Thread(target=self._read_errors)]
        for thread in self._threads:
            thread.start()

    def wait_for(self, acknowledged: int) -> None:
        """Wait until `acknowledged` calls were acknowledged or the program has ended."""
        with self._changed:
            reached = self._changed.wait_for(lambda: self._acknowledged >= acknowledged or self._ended, TIMEOUT_SECONDS)
        assert reached, f"only {self._acknowledged} of {acknowledged} calls were acknowledged in {TIMEOUT_SECONDS} s"

    def wait_for_more(self, acknowledged: int) -> None:
        """Wait until `acknowledged` more calls were acknowledged."""
        self.wait_for(self._acknowledged + acknowledged)

    def kill(self) -> None:
        """Kill the program and its forked children with SIGKILL."""
        if not self._ended:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(TIMEOUT_SECONDS)
        self._join_readers()

    def finish(self) -> None:
        """Wait until the program exits, and check that it exits cleanly."""
        try:
            code = self._process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the program did not exit: {self._errors.decode()}") from None
        self._join_readers()
        assert (code, self._errors) == (0, b""), f"the program exited with {code}: {self._errors.decode()}"

    def _join_readers(self) -> None:
        for thread in self._threads:
            thread.join(TIMEOUT_SECONDS)

    def _read_events(self) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                if line.endswith(b"\n"):  # a killed program may leave an incomplete line
                    self._add(_decode(line))
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _add(self, event: Event) -> None:
        self._append_log.record(event)
        if isinstance(event, Acknowledged):
            with self._changed:
                self._acknowledged += 1
                self._changed.notify_all()

    def _read_errors(self) -> None:
        assert self._process.stderr
        with self._process.stderr as stream:
            self._errors = stream.read()


@contextmanager
def run_forked_program(program: str, args: Sequence[str], append_log: AppendLog) -> Iterator[ReportingProcess]:
    """Run a Python file in a process of the fork server, and kill it when the block ends."""
    process = ForkedProcess([program], args, start_new_session=True)
    with _killed_at_end(ReportingProcess(process, append_log)) as running:
        yield running


@contextmanager
def run_program(command: Sequence[str], append_log: AppendLog) -> Iterator[ReportingProcess]:
    """Run a program and kill it when the block ends."""
    # A new process session, so that forked children can be killed with it.
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    with _killed_at_end(ReportingProcess(process, append_log)) as program:
        yield program


@contextmanager
def run_writer(append_log: AppendLog, options: WriterOptions) -> Iterator[ReportingProcess]:
    args = [msgspec.json.encode(options).decode()]
    process = ForkedProcess(["-m", "holdfast.testing.faults.writer"], args, start_new_session=True)
    with _killed_at_end(ReportingProcess(process, append_log)) as program:
        yield program


@contextmanager
def _killed_at_end(program: ReportingProcess) -> Iterator[ReportingProcess]:
    try:
        yield program
    finally:
        program.kill()
