"""The transport to an engine in this process."""

from pathlib import Path
from typing import TypeVar

from holdfast.composition import Target, open_engine
from holdfast.engine import Engine
from holdfast.model.identity import Principal
from holdfast.model.system import Backup
from holdfast.ops.table import Operation

R = TypeVar("R")


class LocalTransport:
    """Calls an engine directly."""

    def __init__(self, engine: Engine, principal: Principal) -> None:
        self.principal = principal
        self.engine = engine

    def call(self, op: Operation[R]) -> R:
        return self.engine.call(self.principal, op)

    def back_up(self, target: Path, *, overwrite: bool) -> Backup:
        return self.engine.back_up(self.principal, target, overwrite=overwrite)

    def close(self) -> None:
        self.engine.close()


def open_local(target: Target, principal: Principal) -> LocalTransport:
    return LocalTransport(open_engine(target), principal)
