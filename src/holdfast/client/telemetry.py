"""Telemetry of calls in this process. A server measures its requests itself."""

from time import perf_counter
from typing import TypeVar

import msgspec

from holdfast.engine import Engine
from holdfast.model.identity import Principal
from holdfast.model.messages import Appended, Telemetry, TelemetrySummary
from holdfast.ops.table import Operation

R = TypeVar("R")


def call_measured(engine: Engine, principal: Principal, op: Operation[R]) -> R:
    """Call an operation. If it asks for telemetry, the result has it."""
    begun = perf_counter()
    result = engine.call(principal, op)
    if not isinstance(result, Appended) or not getattr(op, "telemetry", False):
        return result
    duration_ms = round((perf_counter() - begun) * 1_000, 3)
    summary = TelemetrySummary(type(op).__name__, "ok", duration_ms)
    return msgspec.structs.replace(result, telemetry=Telemetry(engine.ids.new("req"), summary))
