"""API keys: their format and their owners.

A key is `hf.<account>.<key id>.<secret>`. It names its account, so that it is looked up by a read within that account,
like any other row. Its secret is 256 random bits, so that an unsalted hash of the key reveals nothing.
"""

import base64
import binascii
import hashlib
import hmac

import msgspec

from holdfast.engine.gate.audit_log import MICROS_PER_HOUR, AuditLog
from holdfast.engine.gate.ids import Ids
from holdfast.model.access import link_internal_id, link_user_name
from holdfast.model.base import is_name
from holdfast.model.identity import Principal
from holdfast.store.access import share_links, users
from holdfast.store.database import Database

PREFIX = "hf"
LINK_PREFIX = "hfl"
"""Share links have the format of keys, with this prefix."""
LAST_USE_INTERVAL_MICROS = 60_000_000
"""The last use of a key is recorded once a minute, not at every request."""


class NewKey(msgspec.Struct, frozen=True):
    key_id: str
    text: str
    """The key itself. It is shown once and never stored."""
    hash: str


class KeyOwner(msgspec.Struct, frozen=True):
    """The principal of a key or a share link, and when it expires."""

    principal: Principal
    expires_at: int | None
    key_id: str


def new_key(account_id: str, ids: Ids) -> NewKey:
    return _new(PREFIX, account_id, ids)


def new_link(account_id: str, ids: Ids) -> NewKey:
    return _new(LINK_PREFIX, account_id, ids)


def is_link(key: str) -> bool:
    return key.startswith(f"{LINK_PREFIX}.")


def _new(prefix: str, account_id: str, ids: Ids) -> NewKey:
    key_id = ids.secret_bytes(8).hex()
    account = base64.urlsafe_b64encode(account_id.encode()).decode().rstrip("=")
    secret = base64.urlsafe_b64encode(ids.secret_bytes(32)).decode().rstrip("=")
    text = f"{prefix}.{account}.{key_id}.{secret}"
    return NewKey(key_id, text, hash_of(text))


def hash_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def parse_key(key: str) -> tuple[str, str] | None:
    """Return the account and the key id that a key or a share link names, or None if it is malformed.

    >>> parse_key("hf.YWNtZQ.0123456789abcdef.secret")
    ('acme', '0123456789abcdef')
    """
    pieces = key.split(".")
    if len(pieces) != 4 or pieces[0] not in {PREFIX, LINK_PREFIX} or not all(pieces):  # noqa: PLR2004 - as in the docstring above
        return None
    try:
        account = base64.urlsafe_b64decode(pieces[1] + "=" * (-len(pieces[1]) % 4)).decode()
    except (binascii.Error, ValueError):
        return None
    return (account, pieces[2]) if is_name(account) else None


def is_same_secret(one: str, other: str) -> bool:
    """Compare two secrets in constant time, so that the time reveals nothing about where they differ."""
    return hmac.compare_digest(one.encode(), other.encode())


def find_owner(
    db: Database, key: str, now: int, audit_log: AuditLog, address: str, *, counts_use: bool
) -> KeyOwner | None:
    """Return the owner of a key or a share link, or None if it is malformed, unknown, wrong or expired.

    `counts_use` is False if a request asks again, such as a stream before each page.
    """
    parsed = parse_key(key)
    if parsed is None:
        return None
    account, key_id = parsed
    if is_link(key):
        return _find_link(db, account, key_id, key, now, audit_log, address, counts_use=counts_use)
    stored = db.read(account, lambda tx: users.find_key(tx, key_id))
    is_valid = stored is not None and is_same_secret(stored.hash, hash_of(key))
    if stored is None or not is_valid or (stored.expires_at is not None and stored.expires_at <= now):
        audit_log.record_denied_key(account, key_id, address)
        return None
    principal = Principal(account, stored.user_id, stored.role, internal_id=stored.internal_id)
    last_used = stored.last_used_at or 0
    if abs(now - last_used) > LAST_USE_INTERVAL_MICROS:  # the clock may have been ahead
        # Submitted without waiting: a long write by another process must not delay this request.
        is_first = now // MICROS_PER_HOUR != last_used // MICROS_PER_HOUR
        audit_log.record_key_use(principal, key_id, address, now, is_first_in_hour=is_first)
    return KeyOwner(principal, stored.expires_at, key_id)


def _find_link(
    db: Database,
    account: str,
    link_id: str,
    key: str,
    now: int,
    audit_log: AuditLog,
    address: str,
    *,
    counts_use: bool,
) -> KeyOwner | None:
    """Return a guest whose only access is the grant of the link."""
    stored = db.read(account, lambda tx: share_links.find(tx, link_id))
    is_valid = stored is not None and is_same_secret(stored.hash, hash_of(key))
    if stored is None or not is_valid or (stored.expires_at is not None and stored.expires_at <= now):
        audit_log.record_denied_key(account, link_id, address)
        return None
    guest = Principal(account, link_user_name(link_id), "guest", internal_id=link_internal_id(link_id))
    if counts_use:
        audit_log.record_link_use(guest, link_id, address, now, stored.last_used_at)
    return KeyOwner(guest, stored.expires_at, link_id)
