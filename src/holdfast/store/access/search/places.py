"""Rows at many places of logs, read with one statement."""

from collections.abc import Sequence

import msgspec

from holdfast.store.database import Tx

Place = tuple[int, int]
"""A log, and a number in it."""


def select_places(tx: Tx, columns: str, table: str, condition: str) -> str:
    """Return a statement that looks up the row at each place. Its first parameter is `encode_places`.

    `condition` compares the row with `p.log_id` and `p.first_seq`. PostgreSQL would read the whole table if a join did
    not force it to look up one place after the other.
    """
    places = f"({tx.dialect.ranges}) AS p"
    if not tx.dialect.has_lateral_joins:
        return f"SELECT {columns} FROM {places} CROSS JOIN {table} WHERE {condition}"
    row = f"SELECT {columns} FROM {table} WHERE {condition} LIMIT 1"
    return f"SELECT r.* FROM {places} CROSS JOIN LATERAL ({row}) AS r"


def encode_places(places: Sequence[Place]) -> str:
    return msgspec.json.encode([(log_id, number, number) for log_id, number in places]).decode()
