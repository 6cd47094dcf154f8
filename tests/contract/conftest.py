"""Fixtures: a client of each kind, embedded and over HTTP, synchronous and asynchronous, on both databases."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast.composition import open_database
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.testing.awaited import Awaited, EventLoop
from holdfast.testing.postgres import PostgresServer
from holdfast.testing.server import running_server

ROOT_KEY = "the-operators-key"


class Place(msgspec.Struct, frozen=True):
    """An empty Holdfast."""

    target: str
    api_key: str | None
    database: str
    """The path or URL of what is behind it."""


@pytest.fixture(scope="module")
def loop() -> Iterator[EventLoop]:
    loop = EventLoop()
    yield loop
    loop.close()


class Kept:
    """Places that are used by many tests, each made when first asked for, and emptied after each test.

    To make one takes longer than most tests: a server has to start, PostgreSQL to make some twenty tables.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._places: dict[tuple[str, int], tuple[Place, holdfast.Client]] = {}

    def place(self, kind: str, threads: int, new_database: Callable[[], str]) -> Place:
        if (kind, threads) not in self._places:
            database = new_database()
            place = Place(database, None, database)
            if kind.startswith("http"):
                server = running_server(database, root_api_key=ROOT_KEY, auth_mode="trusted", worker_threads=threads)
                place = Place(self._stack.enter_context(server).url, ROOT_KEY, database)
            quiet = Settings(worker_threads=0)
            operator = holdfast.connect(place.target, api_key=place.api_key, settings=quiet)
            self._places[kind, threads] = place, self._stack.enter_context(operator)
        return self._places[kind, threads][0]

    def empty(self, kind: str, threads: int) -> None:
        _, operator = self._places[kind, threads]
        for account in operator.admin.list_accounts():
            operator.admin.delete_account(account.account_id)


@pytest.fixture(scope="session")
def places() -> Iterator[Kept]:
    with ExitStack() as stack:
        yield Kept(stack)


@pytest.fixture
def settings() -> Settings:
    """Those of the clients, and of the servers as far as their workers go."""
    return Settings()


@pytest.fixture(params=["sqlite", "postgres", "http-sqlite", "http-postgres"])
def place(request: pytest.FixtureRequest, tmp_path_factory: Any, settings: Settings, places: Kept) -> Iterator[Place]:
    """An empty database, or a server with no accounts."""

    def new_database() -> str:
        if request.param.endswith("sqlite"):
            return str(tmp_path_factory.mktemp("place") / "holdfast.db")
        server: PostgresServer = request.getfixturevalue("postgres")
        return server.new_database()

    if request.param == "sqlite":
        database = new_database()
        yield Place(database, None, database)
        return
    yield places.place(request.param, settings.worker_threads, new_database)
    places.empty(request.param, settings.worker_threads)


@pytest.fixture(params=["sync", "async"])
def connect_as(
    request: pytest.FixtureRequest, place: Place, settings: Settings, loop: EventLoop
) -> Iterator[Callable[..., Any]]:
    opened: list[Any] = []

    def connect(account: str, user: str, role: Any = "root") -> Any:
        where: dict[str, Any] = {"target": place.target, "api_key": place.api_key, "settings": settings}
        if request.param == "sync":
            client: Any = holdfast.connect(**where, account=account, user=user, role=role)
        else:
            client = Awaited(holdfast.connect_async(**where, account=account, user=user, role=role), loop)
        opened.append(client)
        return client

    yield connect
    for client in opened:
        client.close()


@pytest.fixture
def client(connect_as: Callable[..., Any]) -> Any:
    return connect_as("acme", "alice")


@pytest.fixture
def work(place: Place) -> Callable[..., None]:
    """Does all background work that is due, as a worker process beside whatever is there would, and ends."""

    def work(**settings: Any) -> None:
        chosen = Settings(**{"worker_threads": 1, "close_seconds": 60.0, **settings})
        engine = Engine(open_database(place.database, chosen), chosen)
        engine.work(polls=False)
        engine.close()

    return work
