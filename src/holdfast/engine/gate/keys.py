"""API keys: their format and their owners.

A key is `hf.<account>.<key id>.<secret>`. It names its account, so that it is looked up by a read within that account,
like any other row. Its secret is 256 random bits, so that an unsalted hash of the key reveals nothing.
"""

import base64
import binascii
import hashlib
import hmac

import msgspec

from holdfast.engine.gate.ids import Ids
from holdfast.model.access import link_internal_id, link_user_name
from holdfast.model.base import is_name
from holdfast.model.identity import Principal
from holdfast.store.access import share_links, users
from holdfast.store.database import Database, Submission

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


def find_owner(db: Database, key: str, now: int) -> KeyOwner | None:
    """Return the owner of a key or a share link, or None if it is malformed, unknown, wrong or expired."""
    parsed = parse_key(key)
    if parsed is None:
        return None
    account, key_id = parsed
    if is_link(key):
        return _find_link(db, account, key_id, key, now)
    stored = db.read(account, lambda tx: users.find_key(tx, key_id))
    if stored is None or not is_same_secret(stored.hash, hash_of(key)):
        return None
    if stored.expires_at is not None and stored.expires_at <= now:
        return None
    if abs(now - (stored.last_used_at or 0)) > LAST_USE_INTERVAL_MICROS:  # the clock may have been ahead
        # Submitted without waiting: a long write by another process must not delay this request.
        db.submit([Submission(account, lambda tx: users.touch_key(tx, key_id, now), lambda *_: None)])
    principal = Principal(account, stored.user_id, stored.role, internal_id=stored.internal_id)
    return KeyOwner(principal, stored.expires_at, key_id)


def _find_link(db: Database, account: str, link_id: str, key: str, now: int) -> KeyOwner | None:
    """Return a guest whose only access is the grant of the link. Each use is counted."""
    stored = db.read(account, lambda tx: share_links.find(tx, link_id))
    if stored is None or not is_same_secret(stored.hash, hash_of(key)):
        return None
    if stored.expires_at is not None and stored.expires_at <= now:
        return None
    db.submit([Submission(account, lambda tx: share_links.count_use(tx, link_id, now), lambda *_: None)])
    guest = Principal(account, link_user_name(link_id), "guest", internal_id=link_internal_id(link_id))
    return KeyOwner(guest, stored.expires_at, link_id)
