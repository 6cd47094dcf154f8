"""From a path or a URL to an engine. Each backend's library is imported when it is asked for, not before."""

from pathlib import Path

import msgspec

from holdfast.checking import conform
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.errors import InvalidArgumentError
from holdfast.store.database import Database

POSTGRES = ("postgresql://", "postgres://")


def open_engine(target: str | None, settings: Settings | None) -> Engine:
    """An engine on what `target` names: a path, `:memory:`, a `postgresql://` URL, or None for what is set."""
    if settings is not None and not isinstance(settings, Settings):
        raise InvalidArgumentError("settings", f"is a {type(settings).__name__}; give a holdfast.Settings")
    chosen = Settings.load() if settings is None else conform(msgspec.structs.asdict(settings), Settings)
    return Engine(open_database(target or chosen.path, chosen), chosen)


def target_name(target: str | Path | None) -> str | None:
    if target is None or isinstance(target, str | Path):
        return None if target is None else str(target)
    raise InvalidArgumentError("target", f"is a {type(target).__name__}; give a path or a URL")


def require_target(target: str | None) -> None:
    if target is not None and "://" in target and not target.startswith(POSTGRES):
        raise InvalidArgumentError("target", f"{target!r} is neither a path nor a postgresql:// URL")


def open_database(target: str | None, settings: Settings) -> Database:
    require_target(target)
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
