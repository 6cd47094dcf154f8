"""Jobs in a child process, which has limits of time and memory and a lower priority than this one.

The child starts with the first job. A job that exceeds a limit fails alone: the child is ended, and the next job starts
another one. The child ends with this process, however this process ends.
"""

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from holdfast import forking
from holdfast.computing import protocol
from holdfast.computing.job import SERVICE, Embed, I, Job, O
from holdfast.computing.protocol import (
    ChildOptions,
    Failed,
    Finished,
    OutOfMemory,
    Ready,
    Reply,
    Request,
    Vectors,
    VectorsNeeded,
)
from holdfast.config import Settings, child_environment
from holdfast.errors import HoldfastError, ResourceExhaustedError, TooLargeError, UnavailableError, from_wire

T = TypeVar("T")

CHILD = "holdfast.computing.child"
JOB_MODULES: tuple[str, ...] = ("holdfast.computing.summaries", "holdfast.computing.documents")
"""The modules whose jobs a child runs."""
START_SECONDS = 60.0
STALL_SECONDS = 15.0
"""A child that uses no CPU time for so long during a job is ended: it was stopped, or waits for something."""
MAX_WAIT_FACTOR = 20
"""How long to wait for a job, in multiples of its limit of CPU time: on a busy machine the child gets only a share."""
EXIT_SECONDS = 1.0
"""How long a child that was asked to end may take."""

_encode = msgspec.json.encode
_decode_reply = msgspec.json.Decoder(Reply).decode


class ProcessRunner:
    """Runs jobs in one child process, one after the other."""

    def __init__(self, settings: Settings, job_modules: Sequence[str] | None = None) -> None:
        self._seconds = settings.compute_seconds
        self._memory_mb = settings.compute_memory_mb
        self._embeds_locally = settings.embedder == "static"
        self._job_modules = list(job_modules or JOB_MODULES)
        self._child: Child | None = None
        self._is_closed = False
        self._reset_locks()
        _all_runners.add(self)

    def run(self, job: Job[I, O], input: I, embed: Embed) -> O:
        encoded = msgspec.Raw(protocol.encode_in_pages(input))
        reply = self._ask(Request(job.name, encoded, self._embeds_locally))
        if isinstance(reply, VectorsNeeded):
            # The child is free for other jobs meanwhile. A job that has its vectors does not ask again.
            matrix = embed(reply.texts, lambda: None)
            vectors = Vectors(matrix.astype("float32").tobytes(), matrix.shape[1])
            reply = self._ask(Request(job.name, encoded, self._embeds_locally, vectors))
        if isinstance(reply, Finished):
            output: O = protocol.decode_in_pages(reply.output, job.output_type)
            return output
        if isinstance(reply, Failed):
            raise from_wire(reply.code, reply.message, reply.details)
        raise HoldfastError(f"the child process gave an unexpected reply to {job.name!r}: {type(reply).__name__}")

    def close(self) -> None:
        with self._state_lock:
            self._is_closed = True
            child, self._child = self._child, None
        if child is not None:
            child.end()

    def _ask(self, request: Request) -> Reply:
        document = _encode(request)
        if len(document) > protocol.MAX_FRAME_BYTES:
            raise TooLargeError(
                f"the input of {request.job!r} has {len(document)} bytes, but at most {protocol.MAX_FRAME_BYTES} can be"
                " sent to the child process"
            )
        with self._job_lock:
            child = self._use_child()
            try:
                reply = child.ask(document, self._seconds * MAX_WAIT_FACTOR)
            except TimeoutError:
                self._discard(child)
                raise self._timeout_error(request.job) from None
            except (OSError, EOFError, ValueError):  # it has died, or its reply cannot be decoded
                raise self._exit_error(request.job, self._discard(child)) from None
            if isinstance(reply, OutOfMemory):
                self._discard(child)
                raise self._memory_error(request.job)
            return reply

    def _use_child(self) -> "Child":
        """Return the running child, or start one. The caller holds the job lock."""
        child = self._child
        if child is not None and child.is_running():
            return child
        if child is not None:
            self._discard(child)
        options = ChildOptions(
            parent=os.getpid(), seconds=self._seconds, memory_mb=self._memory_mb, job_modules=self._job_modules
        )
        child = _starter.call(lambda: Child(options))
        with self._state_lock:
            is_closed = self._is_closed
            self._child = None if is_closed else child
        if is_closed:
            child.end()
            raise UnavailableError("the engine is closed", service=SERVICE, reason="closed")
        try:
            child.wait_until_ready()
        except (OSError, EOFError, ValueError):  # a timeout is an OSError
            raise self._start_error(self._discard(child)) from None
        return child

    def _discard(self, child: "Child") -> int:
        """End a child, and return its exit code."""
        with self._state_lock:
            self._child = None
        return child.end()

    def _forget_child(self) -> None:
        """Forget the child in a forked process: it belongs to the parent."""
        self._reset_locks()
        child, self._child = self._child, None
        if child is not None:
            child.forget()

    def _reset_locks(self) -> None:
        self._job_lock = threading.Lock()
        self._state_lock = threading.Lock()

    def _timeout_error(self, job: str) -> HoldfastError:
        return UnavailableError(
            f"the computation {job!r} used no CPU time for {STALL_SECONDS:g} s, or was not finished after"
            f" {self._seconds * MAX_WAIT_FACTOR:g} s: its process was stopped, or the machine is too busy",
            service=SERVICE,
            reason="timeout",
        )

    def _memory_error(self, job: str) -> HoldfastError:
        return ResourceExhaustedError(
            f"the computation {job!r} needed more than {self._memory_mb} MB of memory and was ended;"
            " raise compute_memory_mb and retry the task if it may use more",
            limit="compute_memory_mb",
        )

    def _exit_error(self, job: str, code: int) -> HoldfastError:
        if code == -signal.SIGXCPU:
            return ResourceExhaustedError(
                f"the computation {job!r} took more than {self._seconds:g} s of CPU time and was ended;"
                " raise compute_seconds and retry the task if it may take longer",
                limit="compute_seconds",
            )
        return UnavailableError(
            f"the process of the computation {job!r} {_describe_exit(code)}", service=SERVICE, reason="exit"
        )

    def _start_error(self, code: int) -> HoldfastError:
        return UnavailableError(
            f"the child process for computations did not start: it {_describe_exit(code)};"
            " its standard error says why, and compute = thread does without it",
            service=SERVICE,
            reason="start",
        )


class Child:
    """A child process, and the socket to it."""

    def __init__(self, options: ChildOptions) -> None:
        self._socket, other = socket.socketpair()
        with other:
            self._process: subprocess.Popen[bytes] = subprocess.Popen(  # noqa: S603 - our own program
                # Without -P, Python would import modules from the current folder.
                [sys.executable, "-P", "-W", "ignore", "-m", CHILD, _encode(options).decode()],
                stdin=other.fileno(),
                stdout=other.fileno(),
                env=child_environment(),
                cwd=os.sep,
                process_group=0,  # Ctrl-C on the terminal is for the parent
            )

    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait_until_ready(self) -> None:
        reply = self._receive(time.monotonic() + START_SECONDS)
        if not isinstance(reply, Ready):
            raise ValueError(f"the first reply is {type(reply).__name__}")  # noqa: TRY004 - not an argument

    def ask(self, document: bytes, seconds: float) -> Reply:
        """Send a request and return the reply.

        Raises `TimeoutError` if the child stalls or `seconds` have passed. Raises `OSError` or `EOFError` if it has
        ended.
        """
        deadline = time.monotonic() + seconds
        try:
            for data in (protocol.pack(len(document)), document):
                rest = memoryview(data)
                while rest:
                    rest = rest[self._wait(partial(self._socket.send, rest), deadline) :]
        except ConnectionError:
            pass  # the child may have replied before it ended: that there is too little memory for the request
        return self._receive(deadline)

    def end(self) -> int:
        """End the process, and return its exit code. It may be ending by itself, so that it gets a moment."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        code = self._process.wait()
        self._socket.close()
        return code

    def forget(self) -> None:
        self._socket.close()
        self._process.returncode = 0  # not this process's child: its object must not wait for it

    def _receive(self, deadline: float) -> Reply:
        reply: Reply = _decode_reply(
            protocol.read_frame(lambda size: self._wait(partial(self._socket.recv, size), deadline))
        )
        return reply

    def _wait(self, operation: Callable[[], T], deadline: float) -> T:
        """Send or receive, and wait for the child as long as it uses CPU time."""
        self._socket.settimeout(STALL_SECONDS)
        while True:
            before = cpu_ticks(self._process.pid)
            try:
                return operation()
            except TimeoutError:
                if time.monotonic() > deadline or cpu_ticks(self._process.pid) == before:
                    raise


class ChildStarter:
    """A thread that calls functions, and lives as long as the process.

    Linux ends a child when the thread that started it ends, which may be long before the process ends.
    """

    def __init__(self) -> None:
        self._lock = forking.Lock()
        self._process = 0
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()

    def call(self, function: Callable[[], T]) -> T:
        result: Future[T] = Future()
        with self._lock:
            if self._process != os.getpid():  # the first call, or the first one after a fork
                self._calls = queue.SimpleQueue()
                threading.Thread(target=self._run, args=(self._calls,), name="holdfast children", daemon=True).start()
                self._process = os.getpid()
            self._calls.put((function, result))
        return result.result()

    @staticmethod
    def _run(calls: "queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]]") -> None:
        while True:
            function, result = calls.get()
            try:
                result.set_result(function())
            except Exception as error:  # noqa: BLE001 - the caller gets it
                result.set_exception(error)
            del function, result


def cpu_ticks(pid: int) -> float:
    """Return the CPU time of a process, in any unit.

    Where it cannot be read, return the current time instead, so that no process seems to stall.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return time.monotonic()
    return int(fields[11]) + int(fields[12])


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


_starter = ChildStarter()
_all_runners = forking.reset_in_child(ProcessRunner._forget_child)  # noqa: SLF001
