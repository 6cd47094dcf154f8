"""The transport that carries operations to an engine: in this process, or over HTTP."""

from pathlib import Path
from typing import Protocol, TypeVar

from holdfast.client.local import open_local
from holdfast.client.sync.http import HttpTransport
from holdfast.client.target import Connection
from holdfast.client.wire import HttpCodec
from holdfast.model.system import Backup
from holdfast.ops.table import Operation

R = TypeVar("R")


class Transport(Protocol):
    def call(self, op: Operation[R]) -> R: ...
    def back_up(self, target: Path, *, overwrite: bool) -> Backup: ...
    def close(self) -> None: ...


def open_transport(connection: Connection) -> Transport:
    target = connection.target
    if target.url is not None:
        return HttpTransport(HttpCodec(target.url, connection.headers, target.settings))
    return open_local(target, connection.principal)
