"""Keys: what one looks like, and whose it is.

A key is `hf.<account>.<key id>.<secret>`. It names its account, so that looking it up is a read within that account
like any other; its secret is 256 random bits, so that a plain hash of it gives nothing away.
"""

import base64
import binascii
import hashlib
import hmac

import msgspec

from holdfast.engine.gate.ids import Ids
from holdfast.model.base import is_name

PREFIX = "hf"


class NewKey(msgspec.Struct, frozen=True):
    key_id: str
    text: str
    hash: str


def make(account_id: str, ids: Ids) -> NewKey:
    key_id = ids.secret(8).hex()
    account = base64.urlsafe_b64encode(account_id.encode()).decode().rstrip("=")
    secret = base64.urlsafe_b64encode(ids.secret(32)).decode().rstrip("=")
    text = f"{PREFIX}.{account}.{key_id}.{secret}"
    return NewKey(key_id, text, hash_of(text))


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def parse_key(text: str) -> tuple[str, str] | None:
    """The account and the key id that a key names, or None if it is not one.

    >>> parse_key("hf.YWNtZQ.0123456789abcdef.secret")
    ('acme', '0123456789abcdef')
    """
    pieces = text.split(".")
    if len(pieces) != 4 or pieces[0] != PREFIX or not all(pieces):  # noqa: PLR2004 - as in the docstring above
        return None
    try:
        account = base64.urlsafe_b64decode(pieces[1] + "=" * (-len(pieces[1]) % 4)).decode()
    except (binascii.Error, ValueError):
        return None
    return (account, pieces[2]) if is_name(account) else None


def same(known: str, given: str) -> bool:
    """Whether two secrets are equal, in a time that tells nothing about where they differ."""
    return hmac.compare_digest(known.encode(), given.encode())
