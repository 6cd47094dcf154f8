"""Worker processes to start and kill, a model that kills its callers, and checks of archives and contexts."""

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import msgspec

from holdfast.client.sync.client import Client
from holdfast.model.archives import SessionContext
from holdfast.model.sessions import Event
from holdfast.testing.faults.watching import wait_for
from holdfast.testing.faults.workers.program import WorkerOptions
from holdfast.testing.model import Behaviour, FakeModel, ReceivedRequest

TIMEOUT_SECONDS = 60.0
CHECK_SECONDS = 0.005
WORDS = " ".join(
    f"the tide of day {day} came in at {day % 24} and left {day * 7} limpets on the rock" for day in range(26)
)
"""About 490 tokens."""
MESSAGES = 6
"""Messages per archive: enough for more than two model calls with `SMALL_MODEL`."""
LABEL = re.compile(r"(\S+)~(\d+)~(\d+)")
"""The beginning of each message: session, archive and place."""

SMALL_MODEL: dict[str, Any] = {"model_provider": "openai", "model_name": "fake", "model_input_tokens": 2_300}


def labelled_messages(session_id: str, archive: int, count: int = MESSAGES) -> list[dict[str, Any]]:
    """Return the messages to add before the commit of an archive."""
    roles = ("user", "assistant")
    texts = [f"{session_id}~{archive}~{place} {WORDS}" for place in range(1, count + 1)]
    return [{"role": roles[place % 2], "content": text} for place, text in enumerate(texts)]


def add_and_commit(client: Client, session_id: str, archives: int, count: int = MESSAGES) -> list[str]:
    """Add messages and commit, once for each archive. Return the task ids."""
    task_ids = []
    for archive in range(1, archives + 1):
        client.batch_add_messages(session_id, labelled_messages(session_id, archive, count))
        task_id = client.commit_session(session_id).task_id
        assert task_id
        task_ids.append(task_id)
    return task_ids


class KillingModel(FakeModel):
    """Kills the process that requests the n-th piece of a session's first archive, once, before it responds."""

    def __init__(self, kill_points: dict[str, int] | None = None) -> None:
        super().__init__()
        self.responds_to_all = True
        """If false, the model responds only to processes whose event in `released` is set."""
        self.released: defaultdict[int, threading.Event] = defaultdict(threading.Event)
        self._kill_points = dict(kill_points or {})
        self._pieces: dict[str, list[str]] = {}
        self._lock = threading.Lock()

    def _record(self, asked: ReceivedRequest) -> Behaviour:
        if self._is_kill_point(asked):
            os.kill(_caller_pid(asked), signal.SIGKILL)
        behaviour = super()._record(asked)
        if not self.responds_to_all:
            self.released[_caller_pid(asked)].wait(TIMEOUT_SECONDS)
        return behaviour

    def _is_kill_point(self, asked: ReceivedRequest) -> bool:
        session_id, archive, place = _first_label(asked)
        if archive != "1" or session_id not in self._kill_points:
            return False
        with self._lock:
            pieces = self._pieces.setdefault(session_id, [])
            if place not in pieces:
                pieces.append(place)
            if self._kill_points.get(session_id) == pieces.index(place) + 1:
                del self._kill_points[session_id]
                return True
        return False

    def count_requests(self, session_id: str, archive: int) -> Counter[str]:
        """Count the requests for each piece of an archive."""
        labels = [_first_label(asked) for asked in self.requests]
        return Counter(place for session, number, place in labels if (session, number) == (session_id, str(archive)))


def _caller_pid(asked: ReceivedRequest) -> int:
    """Return the process id of the caller, which it sends as its API key."""
    return int(asked.headers["authorization"].removeprefix("Bearer "))


def _first_label(asked: ReceivedRequest) -> tuple[str, str, str]:
    _, _, conversation = asked.prompt.partition("<conversation id=")  # the text before it repeats earlier messages
    match = LABEL.search(conversation)
    assert match, asked.prompt[:200]
    return match[1], match[2], match[3]


@contextmanager
def stopping(model: FakeModel) -> Iterator[FakeModel]:
    """Stop the model when the block ends."""
    try:
        yield model
    finally:
        model.gate.set()
        model.stop()


class WorkerSupervisor:
    """A running `holdfast.testing.faults.workers.program` program."""

    def __init__(self, options: WorkerOptions) -> None:
        Path(options.kill_folder).mkdir(exist_ok=True)
        # A new process session, so that its workers can be killed with it.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "holdfast.testing.faults.workers.program", msgspec.json.encode(options).decode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        self._options = options
        assert self._process.stdout
        self.workers = [int(self._process.stdout.readline()) for _ in range(options.processes)]

    def killed_sessions(self) -> set[str]:
        """Return the sessions whose worker was killed."""
        return {file.name for file in Path(self._options.kill_folder).iterdir()}

    def kill(self) -> None:
        """Kill the program and its workers, also suspended ones."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate(timeout=TIMEOUT_SECONDS)


@contextmanager
def run_workers(options: WorkerOptions) -> Iterator[WorkerSupervisor]:
    supervisor = WorkerSupervisor(options)
    try:
        yield supervisor
    finally:
        supervisor.kill()


def suspend(pid: int) -> None:
    """Suspend a process. Its threads stop one after another; wait for the last."""
    os.kill(pid, signal.SIGSTOP)

    def is_suspended() -> bool:
        files = Path(f"/proc/{pid}/task").glob("*/stat")
        return all(file.read_text("ascii").rpartition(")")[2].split()[0] == "T" for file in files)

    wait_for(is_suspended)


def check_context_complete(context: SessionContext, messages: int) -> None:
    """Check that each message is in the context or covered by an overview, once and in order."""
    shown = [message.seq for message in context.messages]
    first = shown[0] if shown else messages + 1
    assert shown == list(range(first, messages + 1)), f"the context shows {shown} of {messages}"
    overviews = [line for line in context.receipt.included if "overview" in line.what]
    if first == 1:
        assert not overviews
    else:
        assert [(line.first_seq, line.last_seq) for line in overviews] == [(1, first - 1)]
        assert context.latest_archive_overview


class ContextWatcher:
    """Repeatedly checks the contexts of sessions in a thread, and raises the first failure when the block ends."""

    def __init__(self, client: Client, sessions: Sequence[str], messages: int) -> None:
        self._client = client
        self._sessions = sessions
        self._messages = messages
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._failure: BaseException | None = None

    def _run(self) -> None:
        try:
            for session_id in itertools.cycle(self._sessions):
                check_context_complete(self._client.get_session_context(session_id), self._messages)
                if self._stop.wait(CHECK_SECONDS):
                    return
        except BaseException as error:  # noqa: BLE001 - raised when the block ends
            self._failure = error

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(TIMEOUT_SECONDS)
        if self._failure is not None:
            raise self._failure


def wait_for_archives(client: Client, sessions: Sequence[str], archives: int) -> None:
    """Wait until each session has `archives` archives that are done."""
    unfinished = list(sessions)

    def all_done() -> bool:
        while unfinished and client.get_session(unfinished[-1]).commit_count == archives:
            unfinished.pop()
        return not unfinished

    wait_for(all_done)


def check_archived_once(client: Client, session_id: str, archives: int, *, with_one_clock: bool = True) -> None:
    """Check that each archive was done once, in order. The events show the order also if clocks differ."""
    found = client.list_archives(session_id)
    assert [archive.state for archive in found] == ["done"] * archives, session_id
    ends = [archive.ended_at for archive in found if archive.ended_at]
    assert ends == sorted(ends) or not with_one_clock, session_id
    archived = [event.change.data["archive_id"] for event in _changes(client, session_id, "archived")]
    assert archived == [archive.archive_id for archive in found], session_id
    for archive in found:
        assert client.get_task(archive.task_id).status == "completed", session_id
        detail = client.get_session_archive(session_id, archive.archive_id)
        assert [message.seq for message in detail.messages] == list(range(archive.first_seq, archive.last_seq + 1))


def _changes(client: Client, session_id: str, kind: str) -> list[Any]:
    events: list[Event] = client.read_events(session_id, limit=1_000).events
    return [event for event in events if event.change and event.change.kind == kind]
