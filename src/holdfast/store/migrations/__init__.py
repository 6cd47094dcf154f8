"""Migrations: numbered SQL files, one per dialect, applied in order and recorded with their checksums.

A file that has been released must not change, comments included: its checksum would no longer match.
"""

import functools
import hashlib
from importlib import resources

import msgspec

from holdfast.errors import FailedPreconditionError, UnavailableError
from holdfast.store.database import Tx

CREATE_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    number     bigint NOT NULL PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at bigint NOT NULL
)
"""


class Migration(msgspec.Struct, frozen=True):
    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def list_available(dialect: str) -> list[Migration]:
    """The migrations of this version, in order. Files are named `0001_core.sqlite.sql`."""
    suffix = f".{dialect}.sql"
    files = sorted(
        (entry for entry in resources.files(__name__).iterdir() if entry.name.endswith(suffix)),
        key=lambda entry: entry.name,
    )
    return [Migration(int(file.name[:4]), file.name.removesuffix(suffix), file.read_text("utf-8")) for file in files]


@functools.cache
def newest_known(dialect: str) -> int:
    """The number of the newest migration of this version."""
    return list_available(dialect)[-1].number


def newer_schema_error(dialect: str, newest: int) -> UnavailableError:
    return UnavailableError(
        f"the database has schema {newest}, and this process knows schemas up to {newest_known(dialect)}: a newer"
        " version of holdfast has upgraded the database. Nothing was written; upgrade holdfast here and start this"
        " process again",
        service=dialect,
        reason="newer schema",
    )


def require_known_schema(tx: Tx) -> None:
    """Raise an error if a newer version has upgraded the database."""
    newest = latest_applied(tx)
    if newest > newest_known(tx.dialect.name):
        raise newer_schema_error(tx.dialect.name, newest)


def list_pending(tx: Tx) -> list[Migration]:
    """The migrations that are not applied yet. Raises an error if this version cannot upgrade the database."""
    applied = {row[0]: row[1:] for row in tx.all("SELECT number, name, checksum FROM schema_migrations")}
    known = {migration.number: migration for migration in list_available(tx.dialect.name)}
    for number, (name, checksum) in applied.items():
        if number not in known:
            raise FailedPreconditionError(
                f"the database has migration {name}, which this version does not know: upgrade holdfast"
            )
        if known[number].checksum != checksum:
            raise FailedPreconditionError(
                f"migration {name} was applied with content different from this version's: "
                "install the version of holdfast that created the database"
            )
    return [migration for number, migration in known.items() if number not in applied]


def latest_applied(tx: Tx) -> int:
    """The number of the latest migration that was applied."""
    return int(tx.all("SELECT MAX(number) FROM schema_migrations")[0][0])


def record(tx: Tx, migration: Migration, now: int) -> None:
    tx.execute(
        "INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)",
        (migration.number, migration.name, migration.checksum, now),
    )
