"""How the system is doing, and counts of what it holds."""

from typing import get_args

from holdfast.engine.rule import Moment, Rule, always
from holdfast.engine.sessions import require
from holdfast.model import (
    Component,
    ComponentName,
    Health,
    Identity,
    MemoryStats,
    Principal,
    QueueCounts,
    SessionStats,
    SystemHealth,
    SystemStatus,
)
from holdfast.ops import (
    CheckHealth,
    GetMemoryStats,
    GetSessionStats,
    GetSystemStatus,
    ObserveComponent,
    ObserveSystem,
    WaitUntilIdle,
    WhoAmI,
)
from holdfast.store import lineage, messages, sessions, toolresults, usages
from holdfast.store.database import Tx
from holdfast.store.moments import from_micros


def _who_am_i(_tx: Tx, who: Principal, _op: WhoAmI, _ready: None, _moment: Moment) -> Identity:
    return Identity(who.account_id, who.user_id, who.role)


def _status(_tx: Tx, who: Principal, _op: GetSystemStatus, _ready: None, _moment: Moment) -> SystemStatus:
    return SystemStatus(initialized=True, user=who.user_id)


def _health(tx: Tx, _who: Principal, _op: CheckHealth, _ready: None, _moment: Moment) -> Health:
    return Health(tx.one("SELECT 1") == (1,))


def _wait(_tx: Tx, _who: Principal, _op: WaitUntilIdle, _ready: None, moment: Moment) -> dict[str, QueueCounts]:
    """As a write it comes behind all that were accepted before it."""
    return {"writes": QueueCounts(moment.waiting())}


def _component(tx: Tx, name: ComponentName, moment: Moment) -> Component:
    status = {
        "storage": f"{tx.dialect.name}, schema {tx.all('SELECT MAX(number) FROM schema_migrations')[0][0]}",
        "queue": f"{moment.waiting()} writes wait",
        "vikingdb": "words of messages, in the database itself",
        "models": "none is configured; none is needed",
        "lock": "held by the database, for no longer than a transaction",
        "retrieval": "messages of a session by their words",
        "filesystem": "none of its own; files are views of rows",
    }
    return Component(name=name, is_healthy=True, has_errors=False, status=status[name])


def _observe_component(tx: Tx, _who: Principal, op: ObserveComponent, _ready: None, moment: Moment) -> Component:
    return _component(tx, op.component, moment)


def _observe_system(tx: Tx, _who: Principal, _op: ObserveSystem, _ready: None, moment: Moment) -> SystemHealth:
    components: dict[str, Component] = {name: _component(tx, name, moment) for name in get_args(ComponentName)}
    return SystemHealth(is_healthy=True, errors=[], components=components)


def _memory_stats(tx: Tx, who: Principal, _op: GetMemoryStats, _ready: None, _moment: Moment) -> MemoryStats:
    count, said, tokens = sessions.totals(tx, who.user_id)
    return MemoryStats(sessions=count, messages=said, tokens=tokens, total_memories=0, by_category={})


def _session_stats(tx: Tx, who: Principal, op: GetSessionStats, _ready: None, _moment: Moment) -> SessionStats:
    session = require(tx, who, op.session_id)
    stretches = lineage.stretches(tx, session)
    by_role, first = messages.totals(tx, stretches)
    contexts, skills = usages.totals(tx, session.log_id)
    last = session.last_message_at
    return SessionStats(
        session_id=session.session_id,
        messages=session.last_seq,
        live_messages=session.live_count,
        messages_by_role=by_role,
        tokens=session.tokens_total,
        pending_tokens=session.tokens_total - session.tokens_archived,
        tool_results=toolresults.count(tx, stretches),
        contexts_used=contexts,
        skills_used=skills,
        first_message_at=None if first is None else from_micros(first),
        last_message_at=None if last is None else from_micros(last),
    )


RULES: dict[type, Rule] = {
    WhoAmI: Rule(_who_am_i),
    GetSystemStatus: Rule(_status),
    CheckHealth: Rule(_health),
    WaitUntilIdle: Rule(_wait, always),
    ObserveComponent: Rule(_observe_component),
    ObserveSystem: Rule(_observe_system),
    GetMemoryStats: Rule(_memory_stats),
    GetSessionStats: Rule(_session_stats),
}
