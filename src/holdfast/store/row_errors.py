"""Errors that damaged rows cause, in place of which callers get one clear error.

Rows are not validated when they are read. A row whose values have changed on the disk can therefore raise an error of
any function that uses its values. All of them are translated here, at the end of a transaction.
"""

import re

import msgspec

from holdfast.errors import DataDamagedError, describe_unexpected, short_repr
from holdfast.store.database import Statement

ROW_ERRORS = (
    msgspec.MsgspecError,
    TypeError,
    ValueError,  # includes UnicodeDecodeError
    OverflowError,
    LookupError,
    AttributeError,
)
MAX_SHOWN_PARAMETERS = 4
_TABLE = re.compile(r"\b(?:FROM|INTO|UPDATE) (\w+)")


def damage_error(error: Exception, statement: Statement | None, problem: str = "") -> DataDamagedError:
    """The error for an unexpected one in a transaction, with the table and the row that were read last.

    `problem` is what the database says. The message of any other error is left out: it may quote a conversation.
    """
    sql, params = statement or ("", ())
    found = _TABLE.search(sql)
    table = found[1] if found else "unknown"
    # The first parameters of a query are keys. Those of other statements may be text of a conversation.
    keys = params[:MAX_SHOWN_PARAMETERS] if sql.startswith("SELECT") else ()
    row = ", ".join(short_repr(key) for key in keys)
    cause = problem or describe_unexpected(error)
    return DataDamagedError(
        f"the database is probably damaged: {cause}, after a query of {table} for {row or 'rows'}",
        table=table,
        row=row,
    )
