"""Authentication in the modes `dev`, `api_key` and `trusted`, with a cache of recently used keys."""

import asyncio
import functools
import ipaddress
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import msgspec

from holdfast.config import AuthMode, Settings
from holdfast.engine.gate import keys
from holdfast.engine.gate.keys import KeyOwner
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
AGENT = b"x-openviking-agent"
MAX_CACHED_KEYS = 10_000


class AuthenticatedCaller(msgspec.Struct, frozen=True):
    """The caller of a request: a user of an account, or the operator."""

    principal: Principal
    is_operator: bool = False
    """Whether the caller sent the root key and named no user. The operator has no access to the data of accounts."""
    key_id: str = ""
    """The id of the key that the caller sent. The root key has none."""


OPERATOR_CALLER = AuthenticatedCaller(OPERATOR, is_operator=True)


def auth_mode(settings: Settings) -> AuthMode:
    """The mode in the settings; if there is none, `api_key` with a root key and `dev` without."""
    return settings.auth_mode or ("dev" if settings.root_api_key is None else "api_key")


def require_secure_binding(settings: Settings, host: str) -> None:
    """Refuse to start a server that anyone on the network could use without a key."""
    mode = auth_mode(settings)
    if mode == "dev" and not is_loopback(host):
        raise FailedPreconditionError(
            f"without keys Holdfast serves only this machine, not {host}; set root_api_key to serve others"
        )
    if mode != "dev" and not settings.root_api_key:
        raise FailedPreconditionError(f"auth_mode {mode} needs a root_api_key; set HOLDFAST_ROOT_API_KEY")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host.

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
    """Identifies the caller of a request from its headers."""

    def __init__(self, executor: EngineExecutor, settings: Settings, clock: Callable[[], int]) -> None:
        self.mode = auth_mode(settings)
        self._executor = executor
        self._clock = clock
        self._root_key = settings.root_api_key or ""
        self._timeout = settings.request_timeout_seconds
        self._cache_micros = int(settings.key_cache_seconds * 1_000_000)
        self._cache_version = 0
        self._cache: dict[str, tuple[AuthenticatedCaller, int]] = {}
        """Callers by the hash of their key, each with the time until which the entry is valid."""

    async def identify(
        self, headers: Headers, address: str = "", *, is_new_request: bool = True
    ) -> AuthenticatedCaller:
        """Return the caller of a request. With `is_new_request=False`, a request that was counted asks again."""
        caller = await self._identify(headers, address, is_new_request=is_new_request)
        agent = headers.get(AGENT)
        return caller if agent is None or caller.is_operator else _with_agent(caller, agent)

    async def _identify(self, headers: Headers, address: str, *, is_new_request: bool) -> AuthenticatedCaller:
        key = _key_from_headers(headers)
        if self.mode == "dev":
            _require_local(headers.get(b"host", b""), headers.get(b"origin"), headers.get(b"sec-fetch-site"))
        if key is not None and keys.is_link(key):
            return await self._caller_of_link(key, address, is_new_request=is_new_request)
        if self.mode == "dev":
            return _dev_caller(headers.get(ACCOUNT, b"default"), headers.get(USER, b"default"))
        if key is None:
            raise UnauthenticatedError("no key was sent; send it as X-API-Key or as Authorization: Bearer")
        if keys.is_same_secret(self._root_key, key):
            return _trusted_caller(headers) if self.mode == "trusted" else OPERATOR_CALLER
        if self.mode == "trusted":
            raise _invalid_key()
        return await self._caller_of_key(key, address)

    def clear_cache(self) -> None:
        """Forget the cached keys, so that each is looked up again. Called after a change of keys or roles."""
        self._cache.clear()
        self._cache_version += 1

    async def _caller_of_key(self, key: str, address: str) -> AuthenticatedCaller:
        hashed = keys.hash_of(key)
        cached = self._cache.get(hashed)
        now = self._clock()
        if cached is not None and now < cached[1]:
            return cached[0]
        version = self._cache_version
        owner = await self._look_up(key, address)
        if owner is None:
            self._cache.pop(hashed, None)
            raise _invalid_key()
        caller = AuthenticatedCaller(owner.principal, key_id=owner.key_id)
        if self._cache_micros and version == self._cache_version:  # else the result may predate a change of keys
            if len(self._cache) >= MAX_CACHED_KEYS:
                self._cache.clear()
            valid_until = now + self._cache_micros
            self._cache[hashed] = (caller, min(valid_until, owner.expires_at or valid_until))
        return caller

    async def _caller_of_link(self, link: str, address: str, *, is_new_request: bool) -> AuthenticatedCaller:
        """Look up a share link, each time: every request is counted, and a revoked link ends at once."""
        owner = await self._look_up(link, address, counts_use=is_new_request)
        if owner is None:
            raise UnauthenticatedError("this share link is not valid; it may be wrong, expired or revoked")
        return AuthenticatedCaller(owner.principal, key_id=owner.key_id)

    async def _look_up(self, key: str, address: str, *, counts_use: bool = True) -> KeyOwner | None:
        try:
            async with asyncio.timeout(self._timeout):
                owner: KeyOwner | None = await self._executor.in_thread(
                    functools.partial(self._executor.engine.find_key_owner, key, address, counts_use=counts_use)
                )
                return owner
        except TimeoutError:
            raise DeadlineExceededError(
                f"the key was not looked up within {self._timeout:g} s; nothing was done, try again"
            ) from None


def _key_from_headers(headers: Headers) -> str | None:
    key = headers.get(b"x-api-key")
    if not key:
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        key = token.strip() if scheme.lower() == b"bearer" else b""
    return key.decode("latin-1") or None


def _invalid_key() -> UnauthenticatedError:
    return UnauthenticatedError("this key is not valid; it may be wrong, expired or revoked: request a new one")


def _trusted_caller(headers: Headers) -> AuthenticatedCaller:
    """The caller in trusted mode: the holder of the root key names the user in headers."""
    account, user = headers.get(ACCOUNT), headers.get(USER)
    if account is None and user is None:
        return OPERATOR_CALLER
    if account is None or user is None:
        missing = "X-OpenViking-Account" if account is None else "X-OpenViking-User"
        raise InvalidArgumentError(missing, "is missing; send both the account and the user")
    return _user_caller(account, user, headers.get(ROLE, b"user"))


@functools.lru_cache(maxsize=1024)
def _with_agent(caller: AuthenticatedCaller, agent: bytes) -> AuthenticatedCaller:
    principal = msgspec.structs.replace(caller.principal, agent_id=agent.decode("latin-1"))
    return msgspec.structs.replace(caller, principal=principal)


@functools.lru_cache(maxsize=1024)
def _user_caller(account: bytes, user: bytes, role: bytes) -> AuthenticatedCaller:
    access: AccessRole = role.decode("latin-1")  # type: ignore[assignment]  # Principal validates its fields
    if access == "guest":
        raise InvalidArgumentError("X-OpenViking-Role", "guest is the role of share links; send user, auditor or admin")
    return AuthenticatedCaller(Principal(account.decode("latin-1"), user.decode("latin-1"), access))


@functools.lru_cache(maxsize=1024)
def _dev_caller(account: bytes, user: bytes) -> AuthenticatedCaller:
    return AuthenticatedCaller(Principal(account.decode("latin-1"), user.decode("latin-1"), "root"))


def _host_of(origin: str) -> str:
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""


@functools.lru_cache(maxsize=256)
def _require_local(host: bytes, origin: bytes | None, site: bytes | None) -> None:
    """Reject requests that a foreign web page sends through a browser on this machine, including DNS rebinding."""
    name = host.decode("latin-1").rsplit(":", 1)[0] if not host.endswith(b"]") else host.decode("latin-1")
    if host and not is_loopback(name):
        raise PermissionDeniedError(f"without keys Holdfast accepts only this machine's own host names, not {name}")
    if site == b"cross-site" or (origin is not None and not is_loopback(_host_of(origin.decode("latin-1")))):
        raise PermissionDeniedError(
            "without keys Holdfast does not accept requests from pages of other sites; set root_api_key"
        )
