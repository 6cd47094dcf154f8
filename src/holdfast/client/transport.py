"""How a client's operations reach a gate."""

from typing import Protocol, TypeVar

from holdfast.client.opening import open_engine
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.model import AccessRole, Principal
from holdfast.ops import Operation

R = TypeVar("R")


class Transport(Protocol):
    who: Principal

    def call(self, op: Operation[R]) -> R: ...
    def close(self) -> None: ...


class LocalTransport:
    """Straight into an engine in this process: a call is a call."""

    def __init__(self, engine: Engine, who: Principal) -> None:
        self.who = who
        self.engine = engine

    def call(self, op: Operation[R]) -> R:
        return self.engine.call(self.who, op)

    def close(self) -> None:
        self.engine.close()


def open_transport(
    target: str | None, account: str, user: str, role: AccessRole, settings: Settings | None
) -> Transport:
    who = Principal(account, user, role)
    return LocalTransport(open_engine(target, settings), who)
