"""Transactions on an SQLite connection: batches of writes, and reads."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import apsw

from holdfast.store import migrations
from holdfast.store.database import (
    Dialect,
    Params,
    Row,
    Statement,
    Tx,
    current_cancellation,
    raise_if_cancelled,
    transaction_scope,
)
from holdfast.store.drivers.group_commit import PendingWrite
from holdfast.store.drivers.sqlite.errors import STATEMENT_ERRORS, STORAGE_ERRORS, constraint_problem, translated_errors
from holdfast.store.index import sqlite_text
from holdfast.store.row_errors import ROW_ERRORS, damage_error

T = TypeVar("T")
Work = tuple[str, Callable[[Tx], T]]

DIALECT = Dialect(
    name="sqlite",
    lock_row="",
    has_lateral_joins=False,
    allocate_documents=sqlite_text.allocate,
    insert_text=sqlite_text.insert,
    delete_text=sqlite_text.delete,
    delete_account_text=sqlite_text.DELETE_ACCOUNT,
    text_hits=sqlite_text.HITS,
    text_query=sqlite_text.query,
    match_text=sqlite_text.match,
    ranges="SELECT value ->> 0 AS log_id, value ->> 1 AS first_seq, value ->> 2 AS last_seq FROM json_each(?)",
    can_index_vectors=False,
    unreadable_row=(apsw.CorruptError, UnicodeDecodeError),
)


class SqliteTx:
    __slots__ = ("_execute", "account", "statement")
    dialect = DIALECT

    def __init__(self, cursor: apsw.Cursor, account: str) -> None:
        self._execute: Callable[..., apsw.Cursor] = cursor.execute
        self.account = account
        self.statement: Statement | None = None
        """The last query, which a damage error names."""

    def limit_to(self, scope: str) -> None:
        pass

    def allow_long_statements(self) -> None:
        pass

    def execute(self, sql: str, params: Params = ()) -> None:
        self._execute(sql, params)

    def one(self, sql: str, params: Params = ()) -> Row | None:
        self.statement = sql, params
        rows = self._execute(sql, params).fetchall()
        return rows[0] if rows else None

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        self.statement = sql, params
        return self._execute(sql, params).fetchall()

    def all_of(self, statements: Sequence[Statement]) -> list[list[Row]]:
        return [self.all(sql, params) for sql, params in statements]

    def all_within(self, sql: str, params: Params, max_bytes: int, order_by: str) -> tuple[list[Row], bool]:  # noqa: ARG002
        self.statement = sql, params
        rows: list[Row] = []
        total = 0
        for row in self._execute(sql, params):
            total += row[-1]
            if rows and total > max_bytes:
                return rows, True
            rows.append(row)
        return rows, False

    def run_script(self, sql: str) -> None:
        self._execute(sql)


class _ReadTx(SqliteTx):
    """A transaction that ends at its next statement after it was cancelled."""

    __slots__ = ()

    def __init__(self, cursor: apsw.Cursor, account: str) -> None:
        def execute(sql: str, params: Params = ()) -> apsw.Cursor:
            raise_if_cancelled()
            return cursor.execute(sql, params)

        super().__init__(cursor, account)
        self._execute = execute


def _run(transaction: Callable[[Tx], T], tx: SqliteTx) -> T:
    try:
        return transaction(tx)
    except STATEMENT_ERRORS as error:
        raise damage_error(error, tx.statement, constraint_problem(error)) from error
    except ROW_ERRORS as error:
        raise damage_error(error, tx.statement) from error


class SchemaCheck:
    """Refuses writes to a database with a newer schema than this process knows.

    The schema is read only if another connection may have changed it: SQLite counts the changes that it notices when a
    transaction begins, and those of the connection itself.
    """

    def __init__(self) -> None:
        self.newest_known: int | None = None
        """None until the database has the newest schema that this version knows: nothing is refused before."""
        self.checked_changes: int | None = None
        """The count after the last commit. None for a new connection, which counts from the beginning."""

    def require_known(self, connection: apsw.Connection) -> None:
        schema: Any = connection.pragma("user_version")
        if self.newest_known is not None and schema > self.newest_known:
            raise migrations.newer_schema_error(DIALECT.name, schema)


def run_batch(
    connection: apsw.Connection, batch: Sequence[PendingWrite[Work[object]]], schema_check: SchemaCheck
) -> None:
    """Run a batch in one transaction. A write that fails is rolled back without the others.

    A savepoint costs as much as an append, and most writes that fail do so before they change a row. Therefore writes
    run without savepoints first. Only if one fails after it has changed rows, the batch runs again with savepoints.
    """
    cursor = connection.cursor()  # shared by all statements: creating a cursor costs as much as a statement
    cursor.execute("BEGIN IMMEDIATE")
    if connection.data_version() != schema_check.checked_changes:
        schema_check.require_known(connection)
    for write in batch:
        account, transaction = write.work
        changes_before = connection.total_changes()
        try:
            write.outcome = _run(transaction, SqliteTx(cursor, account))
        except STORAGE_ERRORS:
            raise
        except Exception as error:  # noqa: BLE001 - it is passed to the caller of this write
            write.error = error
            if len(batch) == 1:
                cursor.execute("ROLLBACK")
                return
            if connection.total_changes() != changes_before:
                cursor.execute("ROLLBACK")
                _run_batch_with_savepoints(connection, batch, schema_check)
                return
    cursor.execute("COMMIT")
    schema_check.checked_changes = connection.data_version()


def _run_batch_with_savepoints(
    connection: apsw.Connection, batch: Sequence[PendingWrite[Work[object]]], schema_check: SchemaCheck
) -> None:
    """Run a batch in one transaction with a savepoint for each write."""
    cursor = connection.cursor()
    execute = cursor.execute
    execute("BEGIN IMMEDIATE")
    if connection.data_version() != schema_check.checked_changes:
        schema_check.require_known(connection)
    for write in batch:
        account, transaction = write.work
        write.outcome = write.error = None
        execute("SAVEPOINT write")
        try:
            write.outcome = _run(transaction, SqliteTx(cursor, account))
        except STORAGE_ERRORS:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            write.error = error
            execute("ROLLBACK TO write")
        execute("RELEASE write")
    execute("COMMIT")
    schema_check.checked_changes = connection.data_version()


def run_read(connection: apsw.Connection, account: str, transaction: Callable[[Tx], T]) -> T:
    with translated_errors, transaction_scope:
        cursor = connection.cursor()
        try:
            cursor.execute("BEGIN")
            tx_class = SqliteTx if current_cancellation.value is None else _ReadTx
            return _run(transaction, tx_class(cursor, account))
        finally:
            cursor.close(True)  # a statement that was not read to its end would keep its snapshot for later reads
            if connection.in_transaction:  # an I/O error rolls it back automatically
                connection.execute("ROLLBACK")
