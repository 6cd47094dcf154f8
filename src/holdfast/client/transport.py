"""How a client's operations reach a gate."""

from typing import Protocol, TypeVar

from holdfast.client.http import HttpTransport
from holdfast.client.opening import Place, open_engine
from holdfast.client.wire import Courier
from holdfast.engine import Engine
from holdfast.model import Principal
from holdfast.ops import Operation

R = TypeVar("R")


class Transport(Protocol):
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


def open_transport(place: Place) -> Transport:
    if place.url is not None:
        return HttpTransport(Courier(place.url, place.headers, place.settings))
    return LocalTransport(open_engine(place), place.who)
