"""Numbered SQL files, one per dialect, applied in order and remembered with their checksums."""

import hashlib
from importlib import resources

import msgspec

from holdfast.errors import FailedPreconditionError
from holdfast.store.database import Tx

TABLE = """
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


def shipped(dialect: str) -> list[Migration]:
    """The migrations of this version, in order. Files are named `0001_core.sqlite.sql`."""
    ending = f".{dialect}.sql"
    files = sorted(
        (entry for entry in resources.files(__name__).iterdir() if entry.name.endswith(ending)),
        key=lambda entry: entry.name,
    )
    return [Migration(int(file.name[:4]), file.name.removesuffix(ending), file.read_text("utf-8")) for file in files]


def pending(tx: Tx) -> list[Migration]:
    """What this database still lacks; an error if it is not one that this version can bring up to date."""
    applied = {row[0]: row[1:] for row in tx.all("SELECT number, name, checksum FROM schema_migrations")}
    known = {migration.number: migration for migration in shipped(tx.dialect.name)}
    for number, (name, checksum) in applied.items():
        if number not in known:
            raise FailedPreconditionError(
                f"the database has migration {name}, which this version does not know: upgrade holdfast"
            )
        if known[number].checksum != checksum:
            raise FailedPreconditionError(
                f"migration {name} was applied with another content than this version ships: "
                "install the version of holdfast that created the database"
            )
    return [migration for number, migration in known.items() if number not in applied]


def record(tx: Tx, migration: Migration, now: int) -> None:
    tx.execute(
        "INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)",
        (migration.number, migration.name, migration.checksum, now),
    )
