"""Set the clock of a database in a test."""

from holdfast.store.database import EVERY_ACCOUNT, Database, Tx

_REPLACE_FUNCTION = (
    "CREATE OR REPLACE FUNCTION holdfast_now() RETURNS bigint LANGUAGE sql VOLATILE AS"
    " 'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + ({})'"
)
_READ_ERROR = "SELECT holdfast_now() - (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


def advance_clock(database: Database, micros: int) -> None:
    """Advance the database's clock for everybody who uses it. A clock of PostgreSQL can also go back.

    Other open databases on the same SQLite file follow when they store their time.
    """

    def advance(tx: Tx) -> None:
        if tx.dialect.name == "sqlite":
            tx.execute("UPDATE clock SET time = time + ?", (micros,))
        else:
            tx.run_script(_REPLACE_FUNCTION.format(tx.all(_READ_ERROR)[0][0] + micros))

    database.write(EVERY_ACCOUNT, advance)
    database.store_time(0)
