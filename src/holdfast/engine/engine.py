"""The gate: every operation, from every surface, goes through `Engine.call`."""

from typing import Any, TypeVar

from holdfast.config import Settings
from holdfast.engine import access, administration, messages, sessions, toolresults
from holdfast.engine.ids import Clock, Ids, system_clock
from holdfast.engine.rule import Moment, Rule
from holdfast.model import Principal
from holdfast.ops import OPERATIONS, Operation, checked
from holdfast.store.database import EVERY_ACCOUNT, Database, Tx

R = TypeVar("R")

RULES: dict[type[Operation[Any]], Rule] = {
    **sessions.RULES,
    **messages.RULES,
    **toolresults.RULES,
    **administration.RULES,
}


class Engine:
    """Owns the database, the clock and the ids. Thread-safe; close it when done."""

    def __init__(
        self,
        db: Database,
        settings: Settings | None = None,
        *,
        clock: Clock = system_clock,
        ids: Ids | None = None,
    ) -> None:
        self.db = db
        self.settings = settings or Settings()
        self.clock = clock
        self.ids = ids or Ids(clock)
        try:
            db.migrate(clock())
        except BaseException:
            db.close()
            raise

    def call(self, who: Principal, op: Operation[R]) -> R:
        """Do `op` on behalf of `who`: allowed, checked, prepared outside and done inside one transaction."""
        cls = type(op)
        entry, rule = OPERATIONS[cls], RULES[cls]
        access.allow(who, entry, cls.__name__)
        op = checked(op)
        moment = Moment(self.clock(), self.ids, self.settings)
        ready = rule.prepare(moment, who, op)

        def work(tx: Tx) -> R:
            result: R = rule.handle(tx, who, op, ready, moment)
            if entry.audited:
                access.record(tx, who, cls.__name__, access.resource_of(op, result), moment)
            return result

        run = self.db.write if rule.writes(op) else self.db.read
        return run(EVERY_ACCOUNT if entry.role == "root" else who.account_id, work)

    def close(self) -> None:
        self.db.close()
