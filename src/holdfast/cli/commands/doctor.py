"""The checks of `holdfast doctor`: each says how it is, and what to do where that is not well. They change nothing."""

import os
import platform
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import msgspec

import holdfast
from holdfast import lazy
from holdfast.cli.options import DATABASES, SERVERS, Choices, without_password
from holdfast.composition import open_database
from holdfast.config import Settings
from holdfast.config_file import Source
from holdfast.engine.gate.ids import system_clock
from holdfast.errors import HoldfastError, PermissionDeniedError
from holdfast.model.base import WireStruct
from holdfast.store import migrations
from holdfast.store.database import EVERY_ACCOUNT, Database, Tx
from holdfast.store.timestamps import from_micros

MIN_SPACE = 100 * 1024**2
LOW_SPACE = 1024**3
EARLIEST = 1_767_225_600_000_000
"""The beginning of 2026, in microseconds: no clock that is right is before it."""

MAGIC = b"SQLite format 3\0"
"""What every SQLite file begins with."""

FIND_SCHEMA = {
    "sqlite": "SELECT name FROM sqlite_master WHERE name = 'schema_migrations'",
    "postgres": "SELECT to_regclass('schema_migrations')::text",
}

EXTRAS = {
    "server": ("holdfast serve", ("starlette", "uvicorn", "httptools", "prometheus_client")),
    "postgres": ("a postgresql:// URL", ("psycopg", "psycopg_pool")),
}


class Finding(WireStruct, frozen=True):
    name: str
    state: Literal["ok", "warn", "fail"]
    said: str
    remedy: str = ""


class TakenBack(Exception):  # noqa: N818 - not an error: it undoes the write that was tried
    pass


def examine(chosen: Choices) -> Iterator[Finding]:
    version = f"{platform.python_version()} on {platform.system()}; holdfast {holdfast.__version__}"
    yield Finding("python", "ok", version)
    yield _clock()
    try:
        settings, source = chosen.load()
    except HoldfastError as error:
        yield Finding("settings", "fail", error.message)
        return
    yield _settings(settings, source)
    yield from (Finding("settings", "warn", warning) for warning in source.warnings)
    named = chosen.target() or settings.url or settings.path
    patient = msgspec.structs.replace(
        settings, http_attempts=1, http_timeout_seconds=5.0, postgres_wait_seconds=5.0, sqlite_busy_timeout_ms=2_000
    )
    yield from (_extra(name, named) for name in EXTRAS)
    if named is not None and named.startswith(SERVERS):
        yield from _server(chosen, patient, named)
    elif named is not None and named.startswith(DATABASES):
        yield from _database(named, patient, without_password(named))
    else:
        yield _library()
        yield from _file(settings.database_file(named), patient)


def _settings(settings: Settings, source: Source) -> Finding:
    defaults = msgspec.structs.asdict(Settings())
    changed = [name for name, value in msgspec.structs.asdict(settings).items() if value != defaults[name]]
    said = f"{source.described()}; set: {', '.join(changed) or 'none, all are at their defaults'}"
    return Finding("settings", "ok", said)


def _extra(name: str, named: str | None) -> Finding:
    purpose, packages = EXTRAS[name]
    missing = [package for package in packages if find_spec(package) is None]
    if not missing:
        return Finding(f"[{name}]", "ok", f"the packages for {purpose} are here")
    needed = name == "postgres" and named is not None and named.startswith(DATABASES)
    return Finding(
        f"[{name}]",
        "fail" if needed else "ok",
        f"not installed, needed for {purpose} only ({', '.join(missing)})",
        f"pip install 'holdfast[{name}]'",
    )


def _library() -> Finding:
    apsw = lazy.apsw
    return Finding("sqlite", "ok", f"{apsw.sqlite_lib_version()}, through apsw {apsw.apsw_version()}")


def _server(chosen: Choices, settings: Settings, url: str) -> Iterator[Finding]:
    try:
        with chosen.open(settings) as client:
            client.check_health()
            yield Finding("server", "ok", f"{url} answers")
            me = client.whoami()
            yield Finding("identity", "ok", f"{me.user_id} of {me.account_id}, as {me.role}")
            if me.role != "user":
                yield from _components(client)
    except PermissionDeniedError:  # how the components are is for administrators
        return
    except HoldfastError as error:
        yield Finding("server", "fail", error.message)


def _components(client: "holdfast.Client") -> Iterator[Finding]:
    for part in client.system_health().components.values():
        yield Finding(part.name, "ok" if part.is_healthy and not part.has_errors else "fail", part.status)


def _file(file: str, settings: Settings) -> Iterator[Finding]:
    if file == ":memory:":
        yield Finding("database", "warn", ":memory: keeps nothing", "name a folder or a file with --path")
        return
    if _is_something_else(Path(file)):
        yield Finding("database", "fail", f"{file} is not a SQLite database", "name another file with --path")
    elif Path(file).is_file():
        yield from _database(file, settings, file)
    else:
        yield _place(Path(file))
    yield _space(Path(file))


def _is_something_else(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(len(MAGIC)) not in (b"", MAGIC)
    except OSError:
        return False


def _place(file: Path) -> Finding:
    """Where there is no database yet, whether there can be one."""
    folder = _nearest(file)
    if not folder.is_dir():
        return Finding("database", "fail", f"{folder} is not a folder", "name another with --path")
    if not os.access(folder, os.W_OK | os.X_OK):
        return Finding("database", "fail", f"{folder} cannot be written to", "check its permissions")
    return Finding("database", "ok", f"none yet; the first use makes {file}")


def _database(target: str, settings: Settings, shown: str) -> Iterator[Finding]:
    """Each check rests on the one before it: the first that fails is the last."""
    try:
        database = open_database(target, settings)
    except HoldfastError as error:
        yield Finding("database", "fail", error.message)
        return
    try:
        for name, check in CHECKS.items():
            finding = _tried(name, check, database, shown)
            yield finding
            if finding.state != "ok":
                return
    finally:
        database.close()


def _tried(name: str, check: Callable[[Database, str], Finding], database: Database, shown: str) -> Finding:
    try:
        return check(database, shown)
    except HoldfastError as error:
        return Finding(name, "fail", error.message)


def _readable(database: Database, shown: str) -> Finding:
    database.read(EVERY_ACCOUNT, lambda tx: tx.one("SELECT 1"))
    return Finding("database", "ok", f"{shown} can be opened")


def _schema(database: Database, _shown: str) -> Finding:
    if database.read(EVERY_ACCOUNT, lambda tx: tx.one(FIND_SCHEMA[tx.dialect.name])) in (None, (None,)):
        remedy = "if it is new, the first use makes one; else name another place"
        return Finding("schema", "warn", "there is no Holdfast schema in it", remedy)
    waiting = database.read(EVERY_ACCOUNT, migrations.pending)
    if waiting:
        names = ", ".join(migration.name for migration in waiting)
        return Finding("schema", "warn", f"{names} not applied yet", "any other command applies it")
    return Finding("schema", "ok", "up to date")


def _writing(database: Database, _shown: str) -> Finding:
    def attempt(tx: Tx) -> None:
        migrations.record(tx, migrations.Migration(-1, "doctor", ""), system_clock())
        raise TakenBack

    try:
        database.write(EVERY_ACCOUNT, attempt)
    except TakenBack:
        return Finding("writing", "ok", "a write was tried and taken back")
    raise AssertionError("unreachable: the attempt ends by raising")


def _integrity(database: Database, _shown: str) -> Finding:
    if database.read(EVERY_ACCOUNT, lambda tx: tx.dialect.name) != "sqlite":
        return Finding("integrity", "ok", "the server's own business")
    found = database.read(EVERY_ACCOUNT, lambda tx: tx.all("PRAGMA quick_check(3)"))
    if found == [("ok",)]:
        return Finding("integrity", "ok", "every page is as it should be")
    return Finding("integrity", "fail", "; ".join(str(row[0]) for row in found), "restore the file from a backup")


CHECKS = {"database": _readable, "schema": _schema, "writing": _writing, "integrity": _integrity}


def _space(file: Path) -> Finding:
    free = shutil.disk_usage(_nearest(file)).free
    state: Literal["ok", "warn", "fail"] = "ok" if free >= LOW_SPACE else "warn" if free >= MIN_SPACE else "fail"
    return Finding("space", state, f"{free / 1024**3:,.1f} GiB free", "" if state == "ok" else "make room on that disk")


def _clock() -> Finding:
    now = system_clock()
    said = f"it is {from_micros(now):%Y-%m-%d %H:%M:%S} UTC"
    if now < EARLIEST:
        return Finding("clock", "fail", said, "set the clock: ids and times come from it")
    return Finding("clock", "ok", said)


def _nearest(file: Path) -> Path:
    """The folder of a file, or the nearest one above it that exists."""
    return next(folder for folder in file.absolute().parents if folder.exists())
