"""The checks of `holdfast doctor`. They change nothing without `--fix`; one that finds a problem suggests a remedy."""

import os
import platform
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Literal

import msgspec

import holdfast
from holdfast import lazy
from holdfast.cli.options import DATABASE_SCHEMES, SERVER_SCHEMES, SharedOptions, without_password
from holdfast.cli.progress import progress_bar
from holdfast.composition import open_database
from holdfast.computing.runners import CAN_LIMIT
from holdfast.config import Settings
from holdfast.config_file import SettingsSource
from holdfast.engine.gate.ids import system_clock
from holdfast.errors import HoldfastError, PermissionDeniedError
from holdfast.model.base import WireStruct
from holdfast.store import damage, diagnostics, file_damage
from holdfast.store.database import Database
from holdfast.store.timestamps import from_micros

MIN_FREE_BYTES = 100 * 1024**2
"""With less free space the check fails."""
LOW_FREE_BYTES = 1024**3
"""With less free space the check warns."""
MIN_CLOCK_MICROS = 1_767_225_600_000_000
"""The start of 2026. An earlier clock is wrong."""

MAX_CHECKED_ROWS = 2_000
"""How many rows of each table are checked without --deep."""
DAMAGE_REMEDY = "restore a backup; or run `holdfast backup --allow-damage`, then `holdfast doctor --fix`"
MAX_CLOCK_SECONDS = 5.0
"""A larger difference between the clocks of this machine and of the database is reported."""

SQLITE_HEADER = b"SQLite format 3\0"

EXTRAS = {
    # name: (what needs it, its packages)
    "server": ("holdfast serve", ("starlette", "uvicorn", "httptools", "prometheus_client")),
    "postgres": ("a postgresql:// URL", ("psycopg",)),
    "documents": ("PDF, Office files and images as resources", ("pypdfium2", "docx", "pptx", "openpyxl", "PIL")),
}


class Finding(WireStruct, frozen=True):
    """The result of one check."""

    name: str
    state: Literal["ok", "warn", "fail"]
    result: str = msgspec.field(name="said")
    remedy: str = ""
    """What to do about a problem."""


class CheckOptions(msgspec.Struct, frozen=True):
    """How thoroughly the database is checked, and whether damage is repaired."""

    deep: bool = False
    """Check every row and the whole file."""
    fix: bool = False
    """Put readable rows in place of damaged ones."""


def run_checks(shared: SharedOptions, options: CheckOptions) -> Iterator[Finding]:
    version = f"{platform.python_version()} on {platform.system()}; holdfast {holdfast.__version__}"
    yield Finding("python", "ok", version)
    yield _check_clock()
    try:
        settings, source = shared.load_settings()
    except HoldfastError as error:
        yield Finding("settings", "fail", error.message)
        return
    yield _describe_settings(settings, source)
    yield from (Finding("settings", "warn", warning) for warning in source.warnings)
    target = shared.target() or settings.url or settings.path
    with_short_timeouts = msgspec.structs.replace(
        settings, http_attempts=1, http_timeout_seconds=5.0, postgres_wait_seconds=5.0, sqlite_busy_timeout_ms=2_000
    )
    yield from (_check_extra(name, target) for name in EXTRAS)
    if target is not None and target.startswith(SERVER_SCHEMES):
        yield from _check_server(shared, with_short_timeouts, target)
        if options != CheckOptions():
            yield Finding("integrity", "fail", "a server is not checked deeply", "run this on its machine, with --path")
        return
    yield _describe_computing(settings)
    if target is not None and target.startswith(DATABASE_SCHEMES):
        yield from _check_database(target, with_short_timeouts, without_password(target), options)
    else:
        yield _describe_sqlite()
        yield from _check_file(settings.database_file(target), with_short_timeouts, options)


def _describe_settings(settings: Settings, source: SettingsSource) -> Finding:
    defaults = msgspec.structs.asdict(Settings())
    changed = [name for name, value in msgspec.structs.asdict(settings).items() if value != defaults[name]]
    text = f"{source.describe()}; set: {', '.join(changed) or 'none, all have their defaults'}"
    return Finding("settings", "ok", text)


def _describe_computing(settings: Settings) -> Finding:
    limits = f"at most {settings.compute_seconds:g} s of CPU time and {settings.compute_memory_mb} MB each"
    texts = {
        "process": f"summaries are computed in a child process, with {limits}",
        "thread": "summaries are computed in threads of the program, without limits",
    }
    if settings.compute is not None:
        return Finding("computing", "ok", texts[settings.compute])
    if not CAN_LIMIT:
        return Finding("computing", "ok", texts["thread"])
    return Finding("computing", "ok", f"in a server and a worker, {texts['process']}; elsewhere in threads")


def _check_extra(name: str, target: str | None) -> Finding:
    purpose, packages = EXTRAS[name]
    missing = [package for package in packages if find_spec(package) is None]
    if not missing:
        return Finding(f"[{name}]", "ok", f"the packages for {purpose} are installed")
    is_required = name == "postgres" and target is not None and target.startswith(DATABASE_SCHEMES)
    return Finding(
        f"[{name}]",
        "fail" if is_required else "ok",
        f"not installed, needed only for {purpose} ({', '.join(missing)})",
        f"pip install 'holdfast[{name}]'",
    )


def _describe_sqlite() -> Finding:
    apsw = lazy.apsw
    return Finding("sqlite", "ok", f"{apsw.sqlite_lib_version()}, with apsw {apsw.apsw_version()}")


def _check_server(shared: SharedOptions, settings: Settings, url: str) -> Iterator[Finding]:
    try:
        with shared.open_client(settings) as client:
            client.check_health()
            yield Finding("server", "ok", f"{url} answers")
            caller = client.whoami()
            yield Finding("identity", "ok", f"{caller.user_id} of {caller.account_id}, with role {caller.role}")
            if caller.role not in {"guest", "auditor"}:  # they may not see the components
                yield from _check_components(client)
    except PermissionDeniedError:  # the role of the caller has just been changed
        return
    except HoldfastError as error:
        yield Finding("server", "fail", error.message)


def _check_components(client: "holdfast.Client") -> Iterator[Finding]:
    for component in client.system_health().components.values():
        is_ok = component.is_healthy and not component.has_errors
        yield Finding(component.name, "ok" if is_ok else "fail", component.summary)


def _check_file(file: str, settings: Settings, options: CheckOptions) -> Iterator[Finding]:
    if file == ":memory:":
        yield Finding("database", "warn", ":memory: stores nothing", "give a folder or a file with --path")
        return
    if _is_other_format(Path(file)):
        yield Finding("database", "fail", f"{file} is not an SQLite database", "give another file with --path")
    elif Path(file).is_file():
        yield from _check_database(file, settings, file, options)
    else:
        yield _check_new_file(Path(file))
    yield _check_space(Path(file))


def _is_other_format(file: Path) -> bool:
    """Whether the file exists, is not empty, and is not an SQLite database."""
    try:
        with file.open("rb") as opened:
            return opened.read(len(SQLITE_HEADER)) not in (b"", SQLITE_HEADER)
    except OSError:
        return False


def _check_new_file(file: Path) -> Finding:
    """Check whether a missing database file can be created."""
    folder = _existing_parent(file)
    if not folder.is_dir():
        return Finding("database", "fail", f"{folder} is not a folder", "give another path with --path")
    if not os.access(folder, os.W_OK | os.X_OK):
        return Finding("database", "fail", f"{folder} is not writable", "check its permissions")
    return Finding("database", "ok", f"does not exist yet; the first use creates {file}")


def _check_database(target: str, settings: Settings, label: str, options: CheckOptions) -> Iterator[Finding]:
    """Run the database checks in order. Each needs the one before it, so they stop at the first problem."""
    try:
        database = open_database(target, settings)
    except HoldfastError as error:
        yield Finding("database", "fail", error.message)
        return
    try:
        for name, check in DATABASE_CHECKS.items():
            finding = _run_check(name, check, database, label)
            yield finding
            if finding.state != "ok" and not (options.deep and name == "integrity"):
                return
        if options.fix:
            yield from _fix(database)
        yield from _check_rows(database, options)
    finally:
        database.close()


def _run_check(name: str, check: Callable[[Database, str], Finding], database: Database, label: str) -> Finding:
    try:
        return check(database, label)
    except HoldfastError as error:
        return Finding(name, "fail", error.message)


def _check_reading(database: Database, label: str) -> Finding:
    diagnostics.check_read(database)
    return Finding("database", "ok", f"{label} can be opened")


def _check_schema(database: Database, _label: str) -> Finding:
    if not diagnostics.has_schema(database):
        remedy = "if the database is new, the first use creates the schema; else give another one with --path"
        return Finding("schema", "warn", "there is no Holdfast schema", remedy)
    pending = diagnostics.list_pending_migrations(database)
    if pending:
        return Finding("schema", "warn", f"{', '.join(pending)} not applied yet", "any other command applies them")
    return Finding("schema", "ok", "up to date")


def _check_writing(database: Database, _label: str) -> Finding:
    diagnostics.check_write(database, system_clock())
    return Finding("writing", "ok", "a test write succeeded and was rolled back")


def _check_integrity(database: Database, _label: str) -> Finding:
    problems = diagnostics.find_corruption(database, "quick_check")
    if problems is None:
        return Finding("integrity", "ok", "not checked: PostgreSQL has its own checks")
    if not problems:
        return Finding("integrity", "ok", "no corruption found")
    return Finding("integrity", "fail", "; ".join(problems), "restore the file from a backup")


def _check_rows(database: Database, options: CheckOptions) -> Iterator[Finding]:
    """Check the checksums of all rows, or of some."""
    max_rows = None if options.deep or options.fix else MAX_CHECKED_ROWS
    count = 0
    with progress_bar("checking rows") as progress:
        found = (
            damage.find(database, progress) if max_rows is None else damage.find_in_rows(database, progress, max_rows)
        )
        for each in chain(found, file_damage.find_in_files(database, progress, max_rows)):
            count += 1
            yield Finding("rows", "fail", each.describe(), DAMAGE_REMEDY)
    unused = file_damage.count_unused(database)
    if unused:
        yield Finding("files", "ok", f"{unused} blobs that nothing refers to", "`holdfast doctor --fix` deletes them")
    if not count:
        checked = "every row was checked" if max_rows is None else f"up to {max_rows} rows of each table were checked"
        yield Finding("rows", "ok", f"no damage found; {checked}")


def _fix(database: Database) -> Iterator[Finding]:
    with progress_bar("repairing") as progress:
        for repaired in lazy.load("holdfast.store.repair").repair(database, progress, system_clock):
            yield Finding("repair", "ok" if repaired.is_done else "warn", repaired.result)


def _check_database_clock(database: Database, label: str) -> Finding:
    """SQLite's clock stands still while the machine is off, so only a difference from a server's clock is a problem."""
    seconds = diagnostics.clock_difference(database, system_clock()) / 1e6
    text = (
        f"the clock of this machine is {abs(seconds):,.0f} s {'ahead of' if seconds > 0 else 'behind'} the database's"
    )
    if abs(seconds) <= MAX_CLOCK_SECONDS:
        return Finding("database clock", "ok", "the same time as this machine's clock")
    if not label.startswith(DATABASE_SCHEMES):
        return Finding("database clock", "ok", f"{text}; due times and retention go by the database's")
    return Finding("database clock", "warn", text, "synchronise the clocks: ids and message times have this error")


DATABASE_CHECKS = {
    "database": _check_reading,
    "schema": _check_schema,
    "writing": _check_writing,
    "integrity": _check_integrity,
    "database clock": _check_database_clock,
}


def _check_space(file: Path) -> Finding:
    free = shutil.disk_usage(_existing_parent(file)).free
    text = f"{free / 1024**3:,.1f} GiB free"
    if free >= LOW_FREE_BYTES:
        return Finding("space", "ok", text)
    return Finding("space", "warn" if free >= MIN_FREE_BYTES else "fail", text, "free some space on that disk")


def _check_clock() -> Finding:
    now = system_clock()
    text = f"{from_micros(now):%Y-%m-%d %H:%M:%S} UTC"
    if now < MIN_CLOCK_MICROS:
        return Finding("clock", "fail", text, "set the clock: ids and times are derived from it")
    return Finding("clock", "ok", text)


def _existing_parent(file: Path) -> Path:
    """The folder of a file, or the nearest parent of it that exists."""
    return next(folder for folder in file.absolute().parents if folder.exists())
