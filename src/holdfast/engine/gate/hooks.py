"""Hooks: functions that run before and after every operation. None is installed by default."""

from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.model.identity import Principal
from holdfast.ops.table import Operation

BeforeHook = Callable[[Principal, Operation[Any]], Operation[Any]]
"""Called with an authorised, valid operation, outside any transaction. It returns the operation to run, which has the
same type and is validated again, or raises an error to refuse it."""
AfterHook = Callable[[Principal, Operation[Any], Any], None]
"""Called with the operation and its result, after its transaction was committed."""


class Hooks(msgspec.Struct, frozen=True):
    """The hooks of an engine, in the order in which they run.

    A hook may block, for example on the network: an engine with hooks runs its operations in threads for this.
    """

    before: tuple[BeforeHook, ...] = ()
    after: tuple[AfterHook, ...] = ()

    def run_before(self, principal: Principal, op: Operation[Any]) -> Operation[Any]:
        for hook in self.before:
            op = hook(principal, op)
        return op

    def run_after(self, principal: Principal, op: Operation[Any], result: Any) -> None:
        for hook in self.after:
            hook(principal, op, result)
