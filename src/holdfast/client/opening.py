"""From a path or a URL to a place, and from a place to an engine. A backend's library is imported when asked for."""

from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from holdfast.checking import conform
from holdfast.client.wire import headers_for
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.errors import InvalidArgumentError
from holdfast.model import AccessRole, Principal
from holdfast.store.database import Database

POSTGRES = ("postgresql://", "postgres://")
HTTP = ("http://", "https://")


class Place(msgspec.Struct, frozen=True):
    """Where Holdfast is and as whom to use it."""

    settings: Settings
    who: Principal
    target: str | None
    """A path, `:memory:`, a `postgresql://` URL, or None for the default; unless it is a server."""
    url: str | None
    """The server's, if it is one."""
    headers: dict[str, str]
    """What to tell a server about the caller."""


def find_place(
    target: str | Path | None,
    api_key: str | None,
    account: str | None,
    user: str | None,
    role: AccessRole | None,
    settings: Settings | None,
) -> Place:
    chosen = _checked_settings(settings)
    named = _target_name(target) or chosen.url or chosen.path
    who = Principal(
        "default" if account is None else account,
        "default" if user is None else user,
        "root" if role is None else role,
    )
    if named is not None and named.startswith(HTTP):
        headers = headers_for(api_key or chosen.api_key, account, user, role)
        return Place(chosen, who, None, _checked_url(named), headers)
    if api_key is not None:
        raise InvalidArgumentError("api_key", "is for a server; give its http:// URL as the target")
    if named is not None and "://" in named and not named.startswith(POSTGRES):
        raise InvalidArgumentError("target", f"{named!r} is neither a path nor a postgresql:// or http:// URL")
    return Place(chosen, who, named, None, {})


def open_engine(place: Place, *, polls: bool = False) -> Engine:
    """An engine that also does the background work; who `polls` looks time and again for what others left."""
    engine = Engine(open_database(place.target, place.settings), place.settings)
    try:
        engine.work(polls=polls)
    except BaseException:
        engine.close()
        raise
    return engine


def open_database(target: str | None, settings: Settings) -> Database:
    if target is None or not target.startswith(POSTGRES):
        from holdfast.store.sqlite import SqliteDatabase  # noqa: PLC0415

        return SqliteDatabase(
            settings.database_file(target),
            busy_timeout_ms=settings.sqlite_busy_timeout_ms,
            idle_readers=settings.sqlite_idle_readers,
        )
    try:
        from holdfast.store.postgres import PostgresDatabase  # noqa: PLC0415
    except ImportError as error:
        raise InvalidArgumentError(
            "target", f"PostgreSQL needs its driver: pip install 'holdfast[postgres]' ({error})"
        ) from None
    return PostgresDatabase(target, pool_max=settings.postgres_pool_max, wait_seconds=settings.postgres_wait_seconds)


def _checked_settings(settings: Settings | None) -> Settings:
    if settings is None:
        return Settings.load()
    if not isinstance(settings, Settings):
        raise InvalidArgumentError("settings", f"is a {type(settings).__name__}; give a holdfast.Settings")
    return conform(msgspec.structs.asdict(settings), Settings)


def _target_name(target: str | Path | None) -> str | None:
    if target is None or isinstance(target, str | Path):
        return None if target is None else str(target)
    raise InvalidArgumentError("target", f"is a {type(target).__name__}; give a path or a URL")


def _checked_url(url: str) -> str:
    try:
        pieces = urlsplit(url)
        host, _ = pieces.hostname, pieces.port
    except ValueError:
        host = None
    if not host:
        raise InvalidArgumentError("target", "is not a URL with a host; give one such as http://127.0.0.1:1933")
    if "@" in pieces.netloc or pieces.query:
        raise InvalidArgumentError("target", f"the URL of {host} has a user or a query; give the key as api_key")
    return url.rstrip("/")
