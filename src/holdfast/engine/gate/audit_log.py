"""Audit lines that no transaction waits for: opened sessions and denied attempts, and the sealing of lines.

None of this delays or fails a call. What is recorded is limited, so that nobody can fill the disk by being denied.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from typing import Any

from holdfast import forking
from holdfast.engine.gate import audit_lines
from holdfast.engine.gate.ids import Clock, Ids
from holdfast.errors import HoldfastError
from holdfast.model.access import INTERNAL_ID_SEPARATOR
from holdfast.model.base import is_name
from holdfast.model.identity import OPERATOR, Origin, Principal
from holdfast.model.uris import parse_uri
from holdfast.ops.table import Operation
from holdfast.store.access import accounts, audit, share_links, users
from holdfast.store.access.audit import NewLine, Sealed
from holdfast.store.database import EVERY_ACCOUNT, Database, Submission, Tx
from holdfast.store.tables.sessions import StoredSession

MICROS_PER_HOUR = 3_600_000_000
MAX_KEYS = 50_000
"""How many opened sessions and denied attempts a process remembers, to record each once an hour."""
MAX_DENIED_PER_USER = 100
"""How many denied attempts of a user are recorded in an hour, by each process."""
MAX_DENIED = 10_000
"""How many denied attempts in an account are recorded in an hour, by each process."""
MAX_WAITING = 1_000
"""How many lines may wait to be written. Further ones are dropped: the database is down."""
MAX_BUSY_ATTEMPTS = 5
MAX_SLICES = 20
"""How many slices of lines a reader seals before it reads. The rest is sealed in the background."""
MAX_WAIT_MICROS = 60_000_000
"""How long a line may wait to be written. A larger difference of times comes from a wrong clock."""
SETTLE_SECONDS = 2.0
OPEN = "OpenSession"
_RESOURCE_FIELDS = ("session_id", "task_id", "user_id", "account_id")


class HourlyFilter:
    """Admits each key once an hour. It has no lock: at worst a key is admitted twice."""

    def __init__(self) -> None:
        self._hour = -1
        self._seen: set[int] = set()
        self._counts: Counter[Hashable] = Counter()

    def admits(self, key: Hashable, now: int) -> bool:
        self._begin_hour(now)
        mark = hash(key)
        if mark in self._seen:
            return False
        if len(self._seen) >= MAX_KEYS:
            self._seen.clear()  # some are recorded again: better than not at all
        self._seen.add(mark)
        return True

    def admits_limited(self, key: Hashable, account: str, user: str, now: int) -> bool:
        """As `admits`, but at most `MAX_DENIED_PER_USER` keys of a user, and `MAX_DENIED` of an account."""
        self._begin_hour(now)
        groups = {account: MAX_DENIED, (account, user): MAX_DENIED_PER_USER}
        is_full = any(self._counts[group] >= limit for group, limit in groups.items())
        if is_full or not self.admits((account, user, key), now):
            return False
        if len(self._counts) >= MAX_KEYS:
            self._counts.clear()
        self._counts.update(groups.keys())
        return True

    def _begin_hour(self, now: int) -> None:
        hour = now // MICROS_PER_HOUR
        if hour != self._hour:
            self._hour = hour
            self._seen.clear()
            self._counts.clear()


class AuditLog:
    """Writes audit lines in the background. Thread-safe."""

    def __init__(self, db: Database, ids: Ids, clock: Clock) -> None:
        self._db = db
        self._ids = ids
        self._clock = clock
        self._opened = HourlyFilter()
        self._used = HourlyFilter()
        """Keys and links. Many requests may read the time of the last use before the first of them is stored."""
        self._denied = HourlyFilter()
        self._denied_keys = HourlyFilter()
        self.reset()
        _all_logs.add(self)

    def reset(self) -> None:
        """Forget what waits to be written. In a forked child, the parent writes it."""
        self._lock = threading.Lock()
        self._waiting: set[object] = set()
        self._sealing: dict[str, bool] = {}
        """The accounts whose lines are being sealed, and whether more lines have been written since that began."""

    def record_open(self, principal: Principal, op: Operation[Any], origin: Origin, version: str) -> None:
        """Record that a user reads the session that an operation names, once an hour."""
        resource = _opened_session(op, principal)
        if resource:
            self._record_open(principal, resource, origin, version)

    def record_found(self, principal: Principal, session: StoredSession, origin: Origin) -> None:
        """Record that a user reads a session that a search has found, once an hour."""
        owner = "" if session.owner_id == principal.internal_id else f" owner={session.owner_id}"
        self._record_open(principal, f"{session.session_id}{owner}", origin, audit_lines.version_of(session))

    def _record_open(self, principal: Principal, resource: str, origin: Origin, version: str) -> None:
        now, log_id = self._clock(), version.partition("-")[0]  # a name that is used again has another log
        if self._opened.admits((principal.account_id, principal.user_id, resource, log_id), now):
            line = audit_lines.new_line(principal, OPEN, resource, self._ids, now, origin, version=version)
            self._submit_line(principal.account_id, line, unless=partial(_is_recorded, line=line))

    def record_denied(self, principal: Principal, action: str, named: Any, origin: Origin) -> None:
        """Record an attempt that was denied. `named` is the operation, or a dictionary of its fields.

        The same attempt is recorded once an hour, and the attempts of a user up to a limit.
        """
        account = EVERY_ACCOUNT if principal.account_id == OPERATOR.account_id else principal.account_id
        resource, now = _named_resource(named, principal), self._clock()
        if self._denied.admits_limited((action, resource), account, principal.user_id, now):
            line = audit_lines.new_line(principal, action, resource, self._ids, now, origin, outcome="denied")
            self._submit_line(account, line)

    def record_denied_key(self, account: str, key_id: str, address: str) -> None:
        """Record the use of a key that is not valid, if the account that it names exists.

        Anybody can send such keys. They count against no limit of users, and made-up accounts against none at all.
        """
        now = self._clock()
        if not self._db.read(account, lambda tx: accounts.exists(tx, account)):
            return
        if self._denied_keys.admits_limited(key_id, account, "", now):
            line = NewLine(
                id=self._ids.new("aud"),
                at=now,
                user_id="",
                role="",
                action="UseKey",
                resource=key_id if is_name(key_id) else "",
                address=address[: audit_lines.MAX_ADDRESS_LENGTH],
                outcome="denied",
            )
            self._submit_line(account, line)

    def record_key_use(
        self, principal: Principal, key_id: str, address: str, now: int, *, is_first_in_hour: bool
    ) -> None:
        """Store when a key was used. The first use in an hour is also a line, written in the same transaction."""
        line = None
        if is_first_in_hour and self._used.admits((principal.account_id, key_id), now):
            origin = Origin(address, key_id)
            line = audit_lines.new_line(principal, "UseKey", principal.user_id, self._ids, now, origin)
        self._submit_line(principal.account_id, line, first=lambda tx: users.touch_key(tx, key_id, now))

    def record_link_use(self, guest: Principal, link_id: str, address: str, now: int, last_used_at: int | None) -> None:
        """Count the use of a share link. The first use in an hour is also a line, written in the same transaction."""
        line = None
        is_first_in_hour = now // MICROS_PER_HOUR != (last_used_at or 0) // MICROS_PER_HOUR
        if is_first_in_hour and self._used.admits((guest.account_id, link_id), now):
            line = audit_lines.new_line(guest, "UseLink", link_id, self._ids, now, Origin(address, link_id))
        self._submit_line(guest.account_id, line, first=lambda tx: share_links.count_use(tx, link_id, now))

    def _submit_line(
        self,
        account: str,
        line: NewLine | None,
        *,
        first: Callable[[Tx], None] = lambda _tx: None,
        unless: Callable[[Tx], bool] = lambda _tx: False,
    ) -> None:
        """Write a line without waiting, unless the account does not exist. `first` is done in the same transaction."""
        salt = audit_lines.new_salt(self._ids)

        def write(tx: Tx) -> bool | None:
            if account != EVERY_ACCOUNT and not (accounts.hold(tx, account) and _existed(tx, account, line)):
                return None
            first(tx)
            return None if line is None or unless(tx) else audit.record(tx, line, salt)

        def written(is_sealed: Any, _error: BaseException | None) -> None:
            if is_sealed is False:
                self.seal_later(account)

        self._submit(account, write, written)

    def seal_later(self, account: str) -> None:
        """Seal the unsealed lines of an account without waiting. At most one such transaction runs at a time."""
        with self._lock:
            if account in self._sealing:
                self._sealing[account] = True
                return
            self._sealing[account] = False
        self._submit_seal(account, MAX_BUSY_ATTEMPTS)

    def seal_now(self, account: str) -> None:
        """Seal the lines of an account that were written before this call, unless they are very many.

        It suppresses errors: with a full disk, the audit can be read.
        """
        self.settle()
        with suppress(HoldfastError):
            if not self._db.read(account, audit.count_unsealed):
                return
            slices, deadline = 0, time.monotonic() + SETTLE_SECONDS
            while slices < MAX_SLICES and time.monotonic() < deadline:
                sealed = self._db.write(account, self._seal)
                if not sealed.has_more:
                    return
                if sealed.lines:
                    slices += 1
                else:
                    time.sleep(0.005)  # another transaction seals

    def settle(self) -> None:
        """Wait until the lines that this process has submitted are written, but not for long."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while self._waiting and time.monotonic() < deadline:
            time.sleep(0.001)

    def seal_all(self) -> None:
        """Seal all unsealed lines of all accounts."""
        account: str | None = ""
        while account is not None:
            account = self._db.read(EVERY_ACCOUNT, partial(audit.account_with_unsealed, after=account))
            if account is not None:
                while (sealed := self._db.write(account, self._seal)).has_more and sealed.lines:
                    pass

    def _seal(self, tx: Tx) -> Sealed:
        accounts.hold(tx, tx.account)  # else a deletion at the same time would leave a part of the chain
        return audit.seal(tx, partial(audit_lines.new_salt, self._ids))

    def _submit_seal(self, account: str, attempts: int) -> None:
        def finished(sealed: Sealed | None, _error: BaseException | None) -> None:
            is_busy = sealed is not None and sealed.has_more and not sealed.lines
            with self._lock:
                has_more = self._sealing.get(account, False) or (sealed is not None and sealed.has_more)
                if sealed is None or not has_more or (is_busy and attempts <= 1):
                    self._sealing.pop(account, None)
                    return
                self._sealing[account] = False
            self._submit_seal(account, attempts - 1 if is_busy else MAX_BUSY_ATTEMPTS)

        if not self._submit(account, self._seal, finished):
            with self._lock:
                self._sealing.pop(account, None)

    def _submit(
        self, account: str, transaction: Callable[[Tx], Any], reply: Callable[[Any, BaseException | None], None]
    ) -> bool:
        """Submit a write. Return False if too many wait, or if the database is closed."""
        ticket = object()

        def finished(outcome: Any, error: BaseException | None) -> None:
            try:
                reply(outcome, error)
            finally:
                self._waiting.discard(ticket)

        if len(self._waiting) >= MAX_WAITING:
            return False
        self._waiting.add(ticket)
        try:
            self._db.submit([Submission(account, transaction, finished)])
        except Exception:  # noqa: BLE001 - a call must not fail because it cannot be recorded
            self._waiting.discard(ticket)
            return False
        return True


def _existed(tx: Tx, account: str, line: NewLine | None) -> bool:
    """Whether an account exists, and was not deleted and created again while a line waited to be written."""
    created_at = accounts.find_creation_time(tx, account)
    return created_at is not None and (line is None or not 0 < created_at - line.at < MAX_WAIT_MICROS)


def _named_resource(named: Any, principal: Principal) -> str:
    """The session, task, user or account that an operation names. Other fields may have any text."""
    if not isinstance(named, dict):
        return _opened_session(named, principal) or _first_name(lambda field: getattr(named, field, None))
    return _first_name(named.get)


def _first_name(value_of: Callable[[str], Any]) -> str:
    return next((str(value) for value in map(value_of, _RESOURCE_FIELDS) if is_name(value)), "")


def _opened_session(op: Operation[Any], principal: Principal) -> str:
    """The session that an operation names, by its id or by the URI of a file of it. Empty if it names none."""
    session_id, owner = getattr(op, "session_id", None), getattr(op, "owner", None)
    uri = getattr(op, "uri", None)
    if session_id is None and uri is not None:
        names = parse_uri(uri)
        if names[2:3] == ("sessions",) and len(names) > 3 and is_name(names[3]):  # noqa: PLR2004 - user/ID/sessions/ID
            session_id, owner = names[3], names[1]
    if session_id is None or not is_name((owner or principal.user_id).partition(INTERNAL_ID_SEPARATOR)[0]):
        return ""
    return str(session_id) if owner in (None, "", principal.user_id) else f"{session_id} owner={owner}"


def _is_recorded(tx: Tx, line: NewLine) -> bool:
    """Whether another process has recorded the same in this hour."""
    hour = line.at // MICROS_PER_HOUR
    return audit.has_line(tx, line, since=hour * MICROS_PER_HOUR, until=(hour + 1) * MICROS_PER_HOUR)


_all_logs = forking.reset_in_child(AuditLog.reset)
