"""Fixtures: a client of each kind, embedded and over HTTP, synchronous and asynchronous, on both databases."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
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
from holdfast.testing.stored_files import StoredFile, store_file

ROOT_KEY = "the-operators-key"
ALICE = ("acme", "alice", "root")
"""The account, user and role of the caller in most tests."""
MAX_RESPONSE_BYTES = 400_000
"""More than a page, so that responses are streamed, and less than the long sessions of the contract."""


class Instance(msgspec.Struct, frozen=True):
    """An empty Holdfast: a database, or a server with a database."""

    target: str
    api_key: str | None
    database: str
    """The path or URL of the database."""
    is_shared: bool
    """Whether later tests use it, too."""


class Connector(msgspec.Struct, frozen=True):
    """Opens clients of one kind: synchronous, or asynchronous in an event loop."""

    loop: EventLoop | None

    def open(
        self, instance: Instance, settings: Settings, account: str, user: str, role: Any, agent: str | None = None
    ) -> Any:
        target: dict[str, Any] = {"target": instance.target, "api_key": instance.api_key, "settings": settings}
        caller: dict[str, Any] = {"account": account, "user": user, "role": role, "agent": agent}
        if self.loop is None:
            return holdfast.connect(**target, **caller)
        return Awaited(holdfast.connect_async(**target, **caller), self.loop)


@pytest.fixture(scope="session")
def loop() -> Iterator[EventLoop]:
    loop = EventLoop()
    yield loop
    loop.close()


class InstancePool:
    """Instances and clients that many tests share. An instance is created at its first use and emptied after each test.

    Creating one takes longer than most tests: a server has to start, and PostgreSQL has to create about twenty tables
    and to start a process for each connection.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._instances: dict[tuple[str, int], tuple[Instance, holdfast.Client]] = {}
        self._clients: dict[tuple[Instance, Connector, int], Any] = {}

    def get(self, kind: str, threads: int, new_database: Callable[[], str]) -> Instance:
        if (kind, threads) not in self._instances:
            database = new_database()
            instance = Instance(database, None, database, is_shared=True)
            if kind.startswith("http"):
                server = running_server(
                    database,
                    root_api_key=ROOT_KEY,
                    auth_mode="trusted",
                    worker_threads=threads,
                    max_response_bytes=MAX_RESPONSE_BYTES,
                )
                instance = Instance(self._stack.enter_context(server).url, ROOT_KEY, database, is_shared=True)
            no_workers = Settings(worker_threads=0)
            operator = holdfast.connect(instance.target, api_key=instance.api_key, settings=no_workers)
            self._instances[kind, threads] = instance, self._stack.enter_context(operator)
        return self._instances[kind, threads][0]

    def client_of_alice(self, instance: Instance, connector: Connector, settings: Settings) -> Any:
        key = instance, connector, settings.worker_threads
        if key not in self._clients:
            client = self._clients[key] = connector.open(instance, settings, *ALICE)
            self._stack.callback(client.close)
        return self._clients[key]

    def empty(self, kind: str, threads: int) -> None:
        _, operator = self._instances[kind, threads]
        for account in operator.admin.list_accounts():
            operator.admin.delete_account(account.account_id)


@pytest.fixture(scope="session")
def instances(loop: EventLoop) -> Iterator[InstancePool]:
    with ExitStack() as stack:
        yield InstancePool(stack)


@pytest.fixture
def settings() -> Settings:
    """The settings of the clients. Their number of worker threads also applies to the servers."""
    return Settings()


@pytest.fixture(params=["sqlite", "postgres", "http-sqlite", "http-postgres"])
def instance(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    empty_sqlite_file: Path,
    settings: Settings,
    instances: InstancePool,
) -> Iterator[Instance]:
    """An empty database, or a server without accounts."""

    def new_database() -> str:
        if request.param.endswith("sqlite"):
            return str(shutil.copy(empty_sqlite_file, tmp_path_factory.mktemp("instance")))
        server: PostgresServer = request.getfixturevalue("postgres")
        return server.new_migrated_database()

    if request.param == "sqlite":
        database = new_database()
        yield Instance(database, None, database, is_shared=False)
        return
    yield instances.get(request.param, settings.worker_threads, new_database)
    instances.empty(request.param, settings.worker_threads)


@pytest.fixture(params=["sync", "async"])
def connect_as(
    request: pytest.FixtureRequest, instance: Instance, settings: Settings, loop: EventLoop, instances: InstancePool
) -> Iterator[Callable[..., Any]]:
    connector = Connector(loop if request.param == "async" else None)
    clients: list[Any] = []

    def connect(account: str, user: str, role: Any = "root", agent: str | None = None) -> Any:
        if instance.is_shared and (account, user, role) == ALICE and agent is None:
            return instances.client_of_alice(instance, connector, settings)
        client = connector.open(instance, settings, account, user, role, agent)
        clients.append(client)
        return client

    yield connect
    for client in clients:
        client.close()


@pytest.fixture
def client(connect_as: Callable[..., Any]) -> Any:
    return connect_as(*ALICE)


@pytest.fixture
def run_tasks(instance: Instance) -> Callable[..., None]:
    """Runs all due background tasks in a second engine on the same database, as a worker process would."""

    def run_tasks(**settings: Any) -> None:
        worker_settings = Settings(**{"worker_threads": 1, "close_seconds": 60.0, **settings})
        engine = Engine(open_database(instance.database, worker_settings), worker_settings)
        engine.start_workers(polls=False)
        engine.close()  # it waits until the due tasks are finished

    return run_tasks


@pytest.fixture
def store_files(instance: Instance) -> Callable[[Sequence[StoredFile]], None]:
    """Stores files of the account with their documents, as the processing of files does."""

    def store(files: Sequence[StoredFile]) -> None:
        settings = Settings(worker_threads=0)
        engine = Engine(open_database(instance.database, settings), settings)
        for number, file in enumerate(files, 1):
            engine.db.write(ALICE[0], partial(store_file, file=file, node_id=number, now=number))
        engine.close()

    return store
