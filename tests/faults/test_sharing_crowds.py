"""One session that many callers share, leave, transfer, delete and append to at the same time."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

import holdfast
from holdfast.errors import (
    AlreadyExistsError,
    ConflictError,
    HoldfastError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
)
from holdfast.testing.faults.watching import wait_for
from holdfast.testing.server import running_server

EXPECTED = (AlreadyExistsError, ConflictError, InvalidArgumentError, NotFoundError, PermissionDeniedError)
"""What a caller may be told while others change the session. Everything else is a failure."""
CYCLES = 25
THREADS, CALLS = 8, 40
JOIN_SECONDS = 120.0

Connect = Callable[[str, int], holdfast.Client]


@pytest.fixture
def connect(target: str) -> Iterator[Connect]:
    """Opens clients of a user: on two servers and embedded, so that three processes use the database."""
    settings = holdfast.Settings(worker_threads=0)
    with ExitStack() as stack:
        urls = [stack.enter_context(running_server(target, worker_threads=0)).url for _ in range(2)]

        def connect(user: str, number: int) -> holdfast.Client:
            place = [*urls, target][number % 3]
            return stack.enter_context(holdfast.connect(place, user=user, settings=settings))

        yield connect


@contextmanager
def running(threads: list[threading.Thread]) -> Iterator[None]:
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join(JOIN_SECONDS)
    assert not [thread.name for thread in threads if thread.is_alive()], "these threads wait for ever"


class Access:
    """Whether the access of the collaborators was revoked, as a number: odd from the reply to the revocation on."""

    phase = 0
    is_over = False


class Collaborator(threading.Thread):
    """Appends to a shared session, whether it is allowed or not."""

    def __init__(self, client: holdfast.Client, name: str, access: Access) -> None:
        super().__init__(name=name)
        self._client = client
        self._access = access
        self.attempts = 0
        self.acknowledged: list[str] = []
        self.too_late: list[str] = []
        self.unexpected: list[HoldfastError] = []

    def run(self) -> None:
        while not self._access.is_over:
            text, before = f"{self.name} {self.attempts}", self._access.phase
            try:
                self._client.add_message("plan", "user", text, owner="alice")
            except EXPECTED:
                pass
            except HoldfastError as error:
                self.unexpected.append(error)
            else:
                self.acknowledged.append(text)
                if before % 2 and before == self._access.phase:
                    self.too_late.append(text)
            self.attempts += 1


def test_no_append_is_acknowledged_after_the_revocation_of_its_author_was(connect: Connect) -> None:
    access = Access()
    owner = connect("alice", 2)
    owner.create_session("plan")
    collaborators = [Collaborator(connect("bob", number), f"bob-{number}", access) for number in range(3)]

    def wait_for_attempts() -> None:
        reached = [collaborator.attempts + 3 for collaborator in collaborators]
        wait_for(lambda: all(one.attempts >= count for one, count in zip(collaborators, reached, strict=True)))

    with running([*collaborators]):
        try:
            for _ in range(CYCLES):
                owner.share_session("plan", "bob", ["write"])
                wait_for_attempts()
                owner.unshare_session("plan", "bob")
                access.phase += 1
                wait_for_attempts()
                access.phase += 1
        finally:
            access.is_over = True
    assert [one.unexpected for one in collaborators] == [[]] * 3
    assert [one.too_late for one in collaborators] == [[]] * 3
    assert all(one.acknowledged for one in collaborators)
    stored = read_texts(owner, "alice")
    assert sorted(stored) == sorted(text for one in collaborators for text in one.acknowledged)


def read_texts(client: holdfast.Client, owner: str) -> list[str]:
    texts: list[str] = []
    first: int | None = 1
    while first is not None:
        page = client.get_messages("plan", first=first, limit=1000, owner=owner)
        texts += [message.text for message in page.messages]
        first = page.next_seq
    return texts


class Chaos(threading.Thread):
    """Makes random calls on the sessions `plan` of two users, as one of them or as a third."""

    def __init__(self, client: holdfast.Client, user: str, number: int, *, deletes: bool) -> None:
        super().__init__(name=f"{user}-{number}")
        self._rng = random.Random(number)
        self._client, self._user, self._deletes = client, user, deletes
        self.acknowledged: list[str] = []
        self.unexpected: list[str] = []

    def run(self) -> None:
        for number in range(CALLS):
            try:
                self._call(f"{self.name} {number}")
            except EXPECTED:
                pass
            except Exception as error:  # noqa: BLE001 - whatever a caller should not see
                self.unexpected.append(repr(error))

    def _call(self, text: str) -> None:
        owner = self._rng.choice(["alice", "bob"])
        other = "bob" if owner == "alice" else "alice"
        client = self._client
        match self._rng.randrange(12 if self._deletes else 10):
            case 0:
                client.share_session("plan", "carol", ["read", "write"], owner=owner)
            case 1:
                client.share_session("plan", other, ["read", "write"], owner=owner)
            case 2:
                client.unshare_session("plan", self._rng.choice(["carol", other]), owner=owner)
            case 3 | 4:
                client.transfer_session("plan", other, owner=owner)
            case 5:
                client.list_sessions()
                client.ls(f"viking://user/{owner}/sessions")
            case 6:
                client.revoke_share_link("plan", client.create_share_link("plan", owner=owner).id, owner=owner)
            case 10:
                client.delete_session("plan", owner=owner)
            case 11:
                client.create_session("plan")
            case _:
                client.add_message("plan", "user", text, owner=owner)
                self.acknowledged.append(text)


@pytest.mark.parametrize("deletes", [False, True], ids=["kept", "deleted"])
def test_concurrent_changes_of_access_neither_block_nor_fail_nor_lose_an_append(
    connect: Connect, *, deletes: bool
) -> None:
    clients = {user: connect(user, 2) for user in ("alice", "bob")}
    clients["alice"].create_session("plan")
    users = ["alice", "bob", "carol", "alice", "bob", "alice", "bob", "carol"][:THREADS]
    threads = [Chaos(connect(user, number), user, number, deletes=deletes) for number, user in enumerate(users)]
    with running([*threads]):
        pass
    assert [error for thread in threads for error in thread.unexpected] == []
    assert any(thread.acknowledged for thread in threads)
    if not deletes:
        stored = []
        for user, client in clients.items():
            if any(row.owner == user for row in client.list_sessions()):
                stored += read_texts(client, user)
        assert sorted(stored) == sorted(text for thread in threads for text in thread.acknowledged)


class Transfer(threading.Thread):
    def __init__(self, client: holdfast.Client, session_id: str, start: threading.Barrier) -> None:
        super().__init__(name=session_id)
        self._client, self._start_together = client, start
        self.result = ""

    def run(self) -> None:
        self._start_together.wait()
        try:
            self._client.transfer_session(self.name, "carol")
            self.result = "moved"
        except AlreadyExistsError:
            self.result = "taken"
        except Exception as error:  # noqa: BLE001 - whatever a caller should not see
            self.result = repr(error)


def test_one_of_several_sessions_that_go_to_the_same_address_gets_it(connect: Connect) -> None:
    """The address of a session is unique: an owner, and a name."""
    owners, carol = [connect(user, number) for number, user in enumerate(["alice", "bob", "dave"])], connect("carol", 2)
    for number in range(4 * CYCLES):
        name = f"plan-{number}"
        for owner in owners:
            owner.create_session(name)
        start = threading.Barrier(len(owners))
        transfers = [Transfer(owner, name, start) for owner in owners]
        with running([*transfers]):
            pass
        assert sorted(transfer.result for transfer in transfers) == ["moved", "taken", "taken"]
        assert carol.get_session(name).owner == "carol"
