"""Worker processes from outside: to start and end them, a model that kills who asks it, and an eye on every context."""

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
from holdfast.testing.faults.worker import Orders
from holdfast.testing.model import Asked, Behaviour, FakeModel

PATIENCE = 60.0
GLANCE = 0.005
WORDS = " ".join(
    f"the tide of day {day} came in at {day % 24} and left {day * 7} limpets on the rock" for day in range(26)
)
"""About 490 tokens."""
MESSAGES = 6
"""In an archive: more than two calls of the model."""
MARK = re.compile(r"(\S+)~(\d+)~(\d+)")
"""What each message begins with: session, archive and place."""

READS_LITTLE: dict[str, Any] = {"model_provider": "openai", "model_name": "fake", "model_input_tokens": 2_300}


def said(session_id: str, archive: int, count: int = MESSAGES) -> list[dict[str, Any]]:
    """The messages of an archive to be."""
    roles = ("user", "assistant")
    texts = [f"{session_id}~{archive}~{place} {WORDS}" for place in range(1, count + 1)]
    return [{"role": roles[place % 2], "content": text} for place, text in enumerate(texts)]


def commit(client: Client, session_id: str, archives: int, count: int = MESSAGES) -> list[str]:
    """Append and commit so many archives; the ids of their tasks."""
    found = []
    for archive in range(1, archives + 1):
        client.batch_add_messages(session_id, said(session_id, archive, count))
        task_id = client.commit_session(session_id).task_id
        assert task_id
        found.append(task_id)
    return found


class FatalModel(FakeModel):
    """Kills the process that asks it for a certain piece of a session's first archive, once, before it answers."""

    def __init__(self, fates: dict[str, int] | None = None) -> None:
        super().__init__()
        self.answers_all = True
        """If not, only those processes whose event is set in `may_have`."""
        self.may_have: defaultdict[int, threading.Event] = defaultdict(threading.Event)
        self._fates = dict(fates or {})
        self._pieces: dict[str, list[str]] = {}
        self._lock = threading.Lock()

    def _take(self, asked: Asked) -> Behaviour:
        if self._is_fatal(asked):
            os.kill(_principal(asked), signal.SIGKILL)
        behaviour = super()._take(asked)
        if not self.answers_all:
            self.may_have[_principal(asked)].wait(PATIENCE)
        return behaviour

    def _is_fatal(self, asked: Asked) -> bool:
        session_id, archive, place = _first_mark(asked)
        if archive != "1" or session_id not in self._fates:
            return False
        with self._lock:
            pieces = self._pieces.setdefault(session_id, [])
            if place not in pieces:
                pieces.append(place)
            if self._fates.get(session_id) == pieces.index(place) + 1:
                del self._fates[session_id]
                return True
        return False

    def asked_for(self, session_id: str, archive: int) -> Counter[str]:
        """How often each piece of an archive was asked for."""
        marks = [_first_mark(asked) for asked in self.requests]
        return Counter(place for told, number, place in marks if (told, number) == (session_id, str(archive)))


def _principal(asked: Asked) -> int:
    """The process that asks."""
    return int(asked.headers["authorization"].removeprefix("Bearer "))


def _first_mark(asked: Asked) -> tuple[str, str, str]:
    _, _, conversation = asked.prompt.partition("<conversation id=")  # what came before it is not asked for
    found = MARK.search(conversation)
    assert found, asked.prompt[:200]
    return found[1], found[2], found[3]


@contextmanager
def running(model: FakeModel) -> Iterator[FakeModel]:
    try:
        yield model
    finally:
        model.gate.set()
        model.stop()


class Foreman:
    """A running `holdfast.testing.faults.worker` program."""

    def __init__(self, orders: Orders) -> None:
        Path(orders.marks).mkdir(exist_ok=True)
        # In a session of its own, so that its workers can be ended with it.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "holdfast.testing.faults.worker", msgspec.json.encode(orders).decode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        self._orders = orders
        assert self._process.stdout
        self.workers = [int(self._process.stdout.readline()) for _ in range(orders.processes)]

    def killed(self) -> set[str]:
        """The sessions whose fate came true."""
        return {file.name for file in Path(self._orders.marks).iterdir()}

    def end(self) -> None:
        """Of the program and its workers, stopped ones too."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate(timeout=PATIENCE)


@contextmanager
def working(orders: Orders) -> Iterator[Foreman]:
    foreman = Foreman(orders)
    try:
        yield foreman
    finally:
        foreman.end()


def freeze(pid: int) -> None:
    """Stop a process. Its threads stop one after the other: wait for the last."""
    os.kill(pid, signal.SIGSTOP)

    def stopped() -> bool:
        files = Path(f"/proc/{pid}/task").glob("*/stat")
        return all(file.read_text("ascii").rpartition(")")[2].split()[0] == "T" for file in files)

    wait_for(stopped)


def check_whole(context: SessionContext, messages: int) -> None:
    """Each of so many messages is in the context, or an overview stands for it; once, and in order."""
    shown = [message.seq for message in context.messages]
    first = shown[0] if shown else messages + 1
    assert shown == list(range(first, messages + 1)), f"the context shows {shown} of {messages}"
    covered = [line for line in context.receipt.included if "overview" in line.what]
    if first == 1:
        assert not covered
    else:
        assert [(line.first_seq, line.last_seq) for line in covered] == [(1, first - 1)]
        assert context.latest_archive_overview


class Watch:
    """Looks at the contexts of sessions time and again, and remembers the first that was not whole."""

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
                check_whole(self._client.get_session_context(session_id), self._messages)
                if self._stop.wait(GLANCE):
                    return
        except BaseException as error:  # noqa: BLE001 - told at the end
            self._failure = error

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)
        if self._failure is not None:
            raise self._failure


def wait_until_done(client: Client, sessions: Sequence[str], archives: int) -> None:
    """Until each session has so many archives that are done."""
    left = list(sessions)

    def done() -> bool:
        while left and client.get_session(left[-1]).commit_count == archives:
            left.pop()
        return not left

    wait_for(done)


def check_done_once(client: Client, session_id: str, archives: int) -> None:
    """Each archive was done once, one behind the other."""
    found = client.list_archives(session_id)
    assert [archive.state for archive in found] == ["done"] * archives, session_id
    ends = [archive.ended_at for archive in found if archive.ended_at]
    assert ends == sorted(ends), session_id
    told = [event.change.data["archive_id"] for event in _changes(client, session_id, "archived")]
    assert told == [archive.archive_id for archive in found], session_id
    for archive in found:
        assert client.get_task(archive.task_id).status == "completed", session_id
        whole = client.get_session_archive(session_id, archive.archive_id)
        assert [message.seq for message in whole.messages] == list(range(archive.first_seq, archive.last_seq + 1))


def _changes(client: Client, session_id: str, kind: str) -> list[Any]:
    found: list[Event] = client.read_events(session_id, limit=1_000).events
    return [event for event in found if event.change and event.change.kind == kind]
