"""Database locks that make writes wait."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import apsw
import psycopg


@contextmanager
def block_writes(target: str) -> Iterator[None]:
    """Block writes of messages to `target` until the block ends. Reads are not blocked."""
    if "://" in target:
        with psycopg.connect(target) as connection:
            connection.execute("LOCK TABLE messages IN EXCLUSIVE MODE")
            yield
            connection.rollback()
        return
    with closing(apsw.Connection(target)) as connection:
        connection.set_busy_timeout(10_000)
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")
