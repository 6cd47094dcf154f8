"""Backups of SQLite databases: written while the database is in use, checked, and restored."""

from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

from holdfast.errors import AlreadyExistsError, DataDamagedError, FailedPreconditionError
from holdfast.model.system import Backup, Restored
from holdfast.store import damage, diagnostics
from holdfast.store.database import Database
from holdfast.store.drivers.sqlite import backup as sqlite_backup
from holdfast.store.drivers.sqlite.database import SqliteDatabase

MAX_SHOWN_DAMAGES = 5
Progress = Callable[[int, int, str], None]


def back_up(
    database: Database, target: Path, progress: Progress, *, overwrite: bool = False, allow_damage: bool = False
) -> Backup:
    """Write a checked copy of the database to the file `target`.

    It has everything that was acknowledged before. A damaged database is refused, so that it does not replace a good
    backup, unless `allow_damage` is set.
    """
    file = Path(database.file) if isinstance(database, SqliteDatabase) and database.file != ":memory:" else None
    if isinstance(database, SqliteDatabase):
        sqlite_backup.require_new_target(target, file, overwrite=overwrite)
        if file is not None and not file.exists():
            raise FailedPreconditionError(f"{file} does not exist: there is nothing to back up; check --path")
    temporary = sqlite_backup.temporary_name(target)
    try:
        database.copy_to(temporary, lambda done, total: progress(done, total, "copying pages"))
        damages = _check(temporary, progress)
        if damages and not allow_damage:
            raise _damaged(damages, "the database", "; back it up as it is with --allow-damage")
        sqlite_backup.publish(temporary, target)
    finally:
        sqlite_backup.discard(temporary)
    return Backup(file=str(target), bytes=target.stat().st_size, damaged_rows=len(damages))


def restore(source: Path, target: Path, progress: Progress, *, force: bool = False) -> Restored:
    """Put a checked copy of the backup `source` in place of the database file `target`.

    An existing database is refused; with `force` it is moved aside. No process may have it open.
    """
    if target.exists() and not force:
        raise AlreadyExistsError(
            f"{target} exists; restore to another path, or use --force, which keeps the old file under another name",
            resource=str(target),
        )
    if target.exists() and source.exists() and target.samefile(source):
        raise FailedPreconditionError(f"{source} is the database itself; give the file of a backup")
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = sqlite_backup.temporary_name(target)
    try:
        with closing(sqlite_backup.open_source(source)) as opened:
            sqlite_backup.copy_database(opened, temporary, lambda done, total: progress(done, total, "copying pages"))
        damages = _check(temporary, progress)
        if damages and not force:
            raise _damaged(damages, "the backup", "; use another one, or restore it as it is with --force")
        moved_to = _replace(temporary, target)
    finally:
        sqlite_backup.discard(temporary)
    return Restored(file=str(target), bytes=target.stat().st_size, damaged_rows=len(damages), previous_file=moved_to)


def _replace(temporary: Path, target: Path) -> str | None:
    if not target.exists():
        sqlite_backup.move_aside(target, "before-restore")  # a log without its database would be applied to the new one
        sqlite_backup.publish(temporary, target)
        return None
    with sqlite_backup.locked_for_replacement(target):
        moved_to = sqlite_backup.move_aside(target, "before-restore")
        sqlite_backup.publish(temporary, target)
    return str(moved_to)


def _check(file: Path, progress: Progress) -> list[damage.Damage]:
    """Check a copy. A copy of an earlier version has no checksums, so only the file itself is checked."""
    database = SqliteDatabase(str(file))
    with closing(database):
        if not diagnostics.has_schema(database):
            raise FailedPreconditionError("the file is not a Holdfast database: it has no schema of Holdfast")
        if diagnostics.list_pending_migrations(database):
            problems = diagnostics.find_corruption(database, "integrity_check") or []
            return [damage.Damage(table="file", problem=problem) for problem in problems]
        return list(damage.find(database, progress))


def _damaged(damages: Sequence[damage.Damage], subject: str, advice: str) -> DataDamagedError:
    shown = "; ".join(each.describe() for each in islice(damages, MAX_SHOWN_DAMAGES))
    return DataDamagedError(f"{subject} has {len(damages)} damaged rows ({shown}){advice}", table=damages[0].table)
