"""Who is calling: dev, api_key and trusted mode, and the keys that were seen lately."""

import asyncio
import functools
import ipaddress
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import msgspec

from holdfast.config import AuthMode, Settings
from holdfast.engine.admin import keys
from holdfast.engine.engine import Identified
from holdfast.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from holdfast.http.executor import EngineExecutor
from holdfast.model.identity import OPERATOR, AccessRole, Principal

Headers = Mapping[bytes, bytes]

ACCOUNT = b"x-openviking-account"
USER = b"x-openviking-user"
ROLE = b"x-openviking-role"
MAX_CACHED_KEYS = 10_000


class Caller(msgspec.Struct, frozen=True):
    principal: Principal
    operator: bool = False
    """Whether this is the operator's key alone, which opens no tenant's data."""


AS_OPERATOR = Caller(OPERATOR, operator=True)


def mode_of(settings: Settings) -> AuthMode:
    """What is set, or what follows from whether there is a root key."""
    return settings.auth_mode or ("dev" if settings.root_api_key is None else "api_key")


def require_safe(settings: Settings, host: str) -> None:
    """Refuse to start where anyone could walk in."""
    mode = mode_of(settings)
    if mode == "dev" and not is_loopback(host):
        raise FailedPreconditionError(
            f"without keys Holdfast serves this machine only, not {host}; set root_api_key to serve others"
        )
    if mode != "dev" and not settings.root_api_key:
        raise FailedPreconditionError(f"auth_mode {mode} needs a root_api_key; set HOLDFAST_ROOT_API_KEY")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it.

    >>> is_loopback("127.0.0.1"), is_loopback("[::1]"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    name = host.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class Authenticator:
    """Tells who is calling from what they show."""

    def __init__(self, executor: EngineExecutor, settings: Settings, clock: Callable[[], int]) -> None:
        self.mode = mode_of(settings)
        self._bridge = executor
        self._clock = clock
        self._root_key = settings.root_api_key or ""
        self._timeout = settings.request_timeout_seconds
        self._keep = int(settings.key_cache_seconds * 1_000_000)
        self._changes = 0
        self._known: dict[str, tuple[Caller, int]] = {}

    async def identify(self, headers: Headers) -> Caller:
        if self.mode == "dev":
            _require_local(headers.get(b"host", b""), headers.get(b"origin"), headers.get(b"sec-fetch-site"))
            return _in_dev(headers.get(ACCOUNT, b"default"), headers.get(USER, b"default"))
        key = _shown_key(headers)
        if key is None:
            raise UnauthenticatedError("no key was sent; send yours as X-API-Key or as Authorization: Bearer")
        if keys.same(self._root_key, key):
            return _as_told(headers) if self.mode == "trusted" else AS_OPERATOR
        if self.mode == "trusted":
            raise _unknown()
        return await self._by_key(key)

    def forget_keys(self) -> None:
        """After a change of keys or roles, everyone is looked up again."""
        self._known.clear()
        self._changes += 1

    async def _by_key(self, key: str) -> Caller:
        hashed = keys.hash_of(key)
        known = self._known.get(hashed)
        now = self._clock()
        if known is not None and now < known[1]:
            return known[0]
        before = self._changes
        found = await self._looked_up(key)
        if found is None:
            self._known.pop(hashed, None)
            raise _unknown()
        caller = Caller(found.principal)
        if self._keep and before == self._changes:  # else it may be what was true before the change
            if len(self._known) >= MAX_CACHED_KEYS:
                self._known.clear()
            self._known[hashed] = (caller, min(now + self._keep, found.expires_at or now + self._keep))
        return caller

    async def _looked_up(self, key: str) -> Identified | None:
        try:
            async with asyncio.timeout(self._timeout):
                found: Identified | None = await self._bridge.in_thread(
                    functools.partial(self._bridge.engine.identify, key)
                )
                return found
        except TimeoutError:
            raise DeadlineExceededError(
                f"the key was not looked up within {self._timeout:g} s; nothing was done, try again"
            ) from None


def _shown_key(headers: Headers) -> str | None:
    shown = headers.get(b"x-api-key")
    if not shown:
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        shown = token.strip() if scheme.lower() == b"bearer" else b""
    return shown.decode("latin-1") or None


def _unknown() -> UnauthenticatedError:
    return UnauthenticatedError("this key does not work; ask for one, or for a new one if yours has expired")


def _as_told(headers: Headers) -> Caller:
    """In trusted mode whoever has the root key speaks for its users."""
    account, user = headers.get(ACCOUNT), headers.get(USER)
    if account is None and user is None:
        return AS_OPERATOR
    if account is None or user is None:
        missing = "X-OpenViking-Account" if account is None else "X-OpenViking-User"
        raise InvalidArgumentError(missing, "is missing; say on whose behalf you call")
    return _trusted(account, user, headers.get(ROLE, b"user"))


@functools.lru_cache(maxsize=1024)
def _trusted(account: bytes, user: bytes, role: bytes) -> Caller:
    named: AccessRole = role.decode("latin-1")  # type: ignore[assignment]  # a Principal checks itself
    return Caller(Principal(account.decode("latin-1"), user.decode("latin-1"), named))


@functools.lru_cache(maxsize=1024)
def _in_dev(account: bytes, user: bytes) -> Caller:
    return Caller(Principal(account.decode("latin-1"), user.decode("latin-1"), "root"))


def _host_of(origin: str) -> str:
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""


@functools.lru_cache(maxsize=256)
def _require_local(host: bytes, origin: bytes | None, site: bytes | None) -> None:
    """Without keys, a web page of anyone must not get in through the browser of someone on this machine."""
    name = host.decode("latin-1").rsplit(":", 1)[0] if not host.endswith(b"]") else host.decode("latin-1")
    if host and not is_loopback(name):
        raise PermissionDeniedError(f"without keys Holdfast answers to this machine's own names only, not {name}")
    if site == b"cross-site" or (origin is not None and not is_loopback(_host_of(origin.decode("latin-1")))):
        raise PermissionDeniedError("without keys Holdfast does not answer to pages of other sites; set root_api_key")
