"""The client contract: embedded and over HTTP, synchronous and asynchronous, on both databases."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.testing.awaited import Awaited, EventLoop
from holdfast.testing.contract import ClientContract
from holdfast.testing.postgres import PostgresServer
from holdfast.testing.server import running_server

ROOT_KEY = "the-operators-key"


@pytest.fixture(scope="module")
def loop() -> Iterator[EventLoop]:
    loop = EventLoop()
    yield loop
    loop.close()


@pytest.fixture(scope="session")
def sqlite_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(tmp_path_factory.mktemp("served"), root_api_key=ROOT_KEY, auth_mode="trusted") as server:
        yield server.url


@pytest.fixture(scope="session")
def postgres_served(postgres: PostgresServer) -> Iterator[str]:
    with running_server(postgres.new_database(), root_api_key=ROOT_KEY, auth_mode="trusted") as server:
        yield server.url


@pytest.fixture(params=["sqlite", "postgres", "http-sqlite", "http-postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Where to connect to: an empty database, or a server with no accounts."""
    if request.param == "sqlite":
        yield {"target": str(tmp_path / "holdfast.db")}
    elif request.param == "postgres":
        yield {"target": request.getfixturevalue("postgres").new_database()}
    else:
        url = request.getfixturevalue("sqlite_server" if request.param == "http-sqlite" else "postgres_served")
        yield {"target": url, "api_key": ROOT_KEY}
        with holdfast.connect(url, api_key=ROOT_KEY) as operator:
            for account in operator.admin.list_accounts():
                operator.admin.delete_account(account.account_id)


@pytest.fixture(params=["sync", "async"])
def connect_as(request: pytest.FixtureRequest, place: dict[str, Any], loop: EventLoop) -> Iterator[Callable[..., Any]]:
    opened: list[Any] = []

    def connect(account: str, user: str, role: Any = "root") -> Any:
        if request.param == "sync":
            client: Any = holdfast.connect(**place, account=account, user=user, role=role)
        else:
            client = Awaited(holdfast.connect_async(**place, account=account, user=user, role=role), loop)
        opened.append(client)
        return client

    yield connect
    for client in opened:
        client.close()


@pytest.fixture
def client(connect_as: Callable[..., Any]) -> Any:
    return connect_as("acme", "alice")


class TestClient(ClientContract):
    pass
