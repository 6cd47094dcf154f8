"""The client contract: synchronous and asynchronous, on both databases."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import holdfast
from holdfast.testing.awaited import Awaited, EventLoop
from holdfast.testing.contract import ClientContract


@pytest.fixture(scope="module")
def loop() -> Iterator[EventLoop]:
    loop = EventLoop()
    yield loop
    loop.close()


@pytest.fixture(params=["sync", "async"])
def connect_as(request: pytest.FixtureRequest, target: str, loop: EventLoop) -> Iterator[Callable[..., Any]]:
    opened: list[Any] = []

    def connect(account: str, user: str, role: Any = "root") -> Any:
        if request.param == "sync":
            client: Any = holdfast.connect(target, account=account, user=user, role=role)
        else:
            client = Awaited(holdfast.connect_async(target, account=account, user=user, role=role), loop)
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
