"""The composition root: resolves a target, and builds an engine on a database.

A database library is imported when a database of its kind is opened.
"""

from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from holdfast import lazy
from holdfast.computing.runners import CAN_LIMIT
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.errors import InvalidArgumentError
from holdfast.store.database import Database
from holdfast.validation import convert

POSTGRES = ("postgresql://", "postgres://")
HTTP = ("http://", "https://")


class Target(msgspec.Struct, frozen=True):
    """A database or a server, and the settings to use it with."""

    settings: Settings
    database: str | None
    """A path, `:memory:`, a `postgresql://` URL, or None for the default path."""
    url: str | None
    """The URL of a server. None if the target is a database."""


def resolve_target(target: str | Path | None, settings: Settings | None) -> Target:
    """Resolve `target` to a database or a server. Without `target`, the settings name it."""
    checked = _check_settings(settings)
    name = _target_name(target) or checked.url or checked.path
    if name is not None and name.startswith(HTTP):
        return Target(checked, None, _check_url(name))
    if name is not None and "://" in name and not name.startswith(POSTGRES):
        raise InvalidArgumentError("target", f"{name!r} is neither a path nor a postgresql:// or http:// URL")
    return Target(checked, name, None)


def open_engine(target: Target, *, polls: bool = False) -> Engine:
    """Open an engine that also runs background tasks.

    With `polls`, it polls for tasks of other processes, and computes in a child process unless the settings say where.
    """
    settings = target.settings
    if polls and settings.compute is None and CAN_LIMIT:
        settings = msgspec.structs.replace(settings, compute="process")
    engine = Engine(open_database(target.database, settings), settings)
    try:
        engine.start_workers(polls=polls)
    except BaseException:
        engine.close()
        raise
    return engine


def open_database(target: str | None, settings: Settings) -> Database:
    if target is None or not target.startswith(POSTGRES):
        return _open_sqlite(target, settings)
    return _open_postgres(target, settings)


def _open_sqlite(target: str | None, settings: Settings) -> Database:
    driver = lazy.load("holdfast.store.drivers.sqlite.database")
    database: Database = driver.SqliteDatabase(
        settings.database_file(target),
        busy_timeout_ms=settings.sqlite_busy_timeout_ms,
        idle_readers=settings.sqlite_idle_readers,
    )
    return database


def _open_postgres(url: str, settings: Settings) -> Database:
    try:
        driver = lazy.load("holdfast.store.drivers.postgres.database")
    except ImportError as error:
        raise InvalidArgumentError(
            "target", f"PostgreSQL needs its driver: pip install 'holdfast[postgres]' ({error})"
        ) from None
    database: Database = driver.PostgresDatabase(
        url,
        pool_max=settings.postgres_pool_max,
        wait_seconds=settings.postgres_wait_seconds,
        request_seconds=settings.request_timeout_seconds,
    )
    return database


def _check_settings(settings: Settings | None) -> Settings:
    if settings is None:
        return Settings.load()
    if not isinstance(settings, Settings):
        raise InvalidArgumentError("settings", f"is a {type(settings).__name__}; give a holdfast.Settings")
    return convert(msgspec.structs.asdict(settings), Settings)


def _target_name(target: str | Path | None) -> str | None:
    if target is None or isinstance(target, str | Path):
        return None if target is None else str(target)
    raise InvalidArgumentError("target", f"is a {type(target).__name__}; give a path or a URL")


def _check_url(url: str) -> str:
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
