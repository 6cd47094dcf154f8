"""Upkeep of the audit log: it removes old lines, and saves the heads of chains to a file."""

import os
import stat
from contextlib import suppress
from functools import partial

import msgspec

from holdfast import audit_chain
from holdfast.config import Settings
from holdfast.engine.gate import audit_lines
from holdfast.engine.gate.ids import Clock, Ids
from holdfast.errors import UnavailableError
from holdfast.model.audit import SavedHead
from holdfast.model.identity import OPERATOR
from holdfast.store.access import audit
from holdfast.store.access.audit import NewLine
from holdfast.store.database import EVERY_ACCOUNT, Database, Tx, read_time

MICROS_PER_DAY = 86_400_000_000
HEADS_PER_READ = 1_000
MAX_TAIL_BYTES = 256 * 1024


class AuditUpkeep:
    """Runs in the workers of a server, a worker process or an embedded client."""

    def __init__(self, db: Database, settings: Settings, ids: Ids, clock: Clock) -> None:
        self._db = db
        self._settings = settings
        self._ids = ids
        self._clock = clock
        self._saved: dict[str, str] | None = None
        """The link of the head that was saved last, of each account. None until the end of the file was read."""

    def remove_old_lines(self) -> None:
        """Remove lines that are older than the settings keep them. A checkpoint in the chain records it first."""
        if not self._settings.audit_retention_days:
            return
        for account, _head in self._heads():
            self._db.write(account, self._add_checkpoint)
            while self._db.write(account, audit.delete_pruned):
                pass

    def save_heads(self) -> None:
        """Add the heads that have changed since the last call to the file that the settings name."""
        file = self._settings.audit_head_file
        if file is None:
            return
        if self._saved is None:
            self._saved = _last_saved(file)
        now = audit_chain.time_text(self._clock())
        changed = [
            (account, head) for account, head in self._heads() if head.number and self._saved.get(account) != head.link
        ]
        lines = [
            msgspec.json.encode(SavedHead(account_id=account, number=head.number, link=head.link, at=now)) + b"\n"
            for account, head in changed
        ]
        if not lines:
            return
        try:
            _append_lines(file, lines)
        except OSError as error:
            raise UnavailableError(
                f"the audit heads cannot be saved to {file!r}: {error.strerror}; check audit_head_file",
                service="disk",
                reason=type(error).__name__,
            ) from error
        self._saved.update((account, head.link) for account, head in changed)

    def _heads(self) -> list[tuple[str, audit.Head]]:
        found: list[tuple[str, audit.Head]] = []
        while True:
            after = found[-1][0] if found else ""
            page = self._db.read(EVERY_ACCOUNT, partial(audit.heads, after=after, limit=HEADS_PER_READ))
            found += page
            if len(page) < HEADS_PER_READ:
                return found

    def _add_checkpoint(self, tx: Tx) -> None:
        head = audit.lock_head(tx, wait=True)
        if head is None:
            return
        oldest = read_time(tx) - self._settings.audit_retention_days * MICROS_PER_DAY
        last = audit.last_before(tx, head, oldest)
        if last is None:
            return
        resource = audit_chain.checkpoint_text(self._settings.audit_key, tx.account, *last)
        line = NewLine(
            id=self._ids.new("aud"),
            at=self._clock(),
            user_id=OPERATOR.user_id,
            role=OPERATOR.role,
            action=audit_chain.CHECKPOINT,
            resource=resource,
        )
        audit.append_sealed(tx, head, line, audit_lines.new_salt(self._ids))
        audit.set_pruned(tx, *last)


def _append_lines(file: str, lines: list[bytes]) -> None:
    """Write lines to the end of a file, or to a named pipe. It does not wait for the reader of a pipe."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o600)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            # A disk that was full may have cut the last line.
            unfinished = b"" if _tail(file, 1) in {b"", b"\n"} else b"\n"
            _write_all(descriptor, unfinished + b"".join(lines))
            os.fsync(descriptor)
        else:
            for line in lines:  # a pipe takes a short line as a whole, or not at all
                _write_all(descriptor, line)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _tail(file: str, size: int) -> bytes:
    """The last bytes of a file. Empty if it is missing, or a pipe: opening one to read would wait for a writer."""
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):  # noqa: PTH116 - it may be a pipe or a device
            return b""
        with open(file, "rb") as opened:  # noqa: PTH123 - as above
            opened.seek(max(0, os.fstat(opened.fileno()).st_size - size))
            return opened.read(size)
    except OSError:
        return b""


def _last_saved(file: str) -> dict[str, str]:
    """The last head of each account in the last part of the file. A head that is not found is saved again."""
    saved: dict[str, str] = {}
    for line in _tail(file, MAX_TAIL_BYTES).splitlines():
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):
            head = msgspec.json.decode(line, type=SavedHead)
            saved[head.account_id] = head.link
    return saved
