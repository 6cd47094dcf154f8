"""From a path or a URL to an engine. Each backend's library is imported when it is asked for, not before."""

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.errors import InvalidArgumentError
from holdfast.store.database import Database


def open_engine(target: str | None, settings: Settings | None) -> Engine:
    """An engine on what `target` names: a path, `:memory:`, a `postgresql://` URL, or None for the default."""
    chosen = settings or Settings.load()
    return Engine(open_database(target, chosen), chosen)


def open_database(target: str | None, settings: Settings) -> Database:
    if target is None or "://" not in target:
        from holdfast.store.sqlite import SqliteDatabase  # noqa: PLC0415

        return SqliteDatabase(
            settings.database_file(target),
            busy_timeout_ms=settings.sqlite_busy_timeout_ms,
            idle_readers=settings.sqlite_idle_readers,
        )
    if not target.startswith(("postgresql://", "postgres://")):
        raise InvalidArgumentError("target", f"{target!r} is neither a path nor a postgresql:// URL")
    try:
        from holdfast.store.postgres import PostgresDatabase  # noqa: PLC0415
    except ImportError as error:
        raise InvalidArgumentError(
            "target", f"PostgreSQL needs its driver: pip install 'holdfast[postgres]' ({error})"
        ) from None
    return PostgresDatabase(target, pool_max=settings.postgres_pool_max, wait_seconds=settings.postgres_wait_seconds)
