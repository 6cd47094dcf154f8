"""Holdfast with a slow operation: `GET .../stats/sessions/...` computes in SQLite until it is stopped."""

from typing import Any

import msgspec

from holdfast.cli import main
from holdfast.engine import engine
from holdfast.engine.gate.operation_handler import CallContext
from holdfast.model.identity import Principal
from holdfast.ops.sessions import GetSessionStats
from holdfast.store.database import Tx

COUNT_SLOWLY = """
    WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers LIMIT 300000000)
    SELECT COUNT(*) FROM numbers
"""


def read_slowly(tx: Tx, _principal: Principal, _op: GetSessionStats, _prepared: None, _context: CallContext) -> Any:
    return tx.all(COUNT_SLOWLY)


engine.HANDLERS[GetSessionStats] = msgspec.structs.replace(engine.HANDLERS[GetSessionStats], handle=read_slowly)

if __name__ == "__main__":
    main()
