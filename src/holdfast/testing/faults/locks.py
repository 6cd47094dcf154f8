"""Somebody else who holds the database, so that a write must wait."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import apsw
import psycopg


@contextmanager
def held(target: str) -> Iterator[None]:
    """No message can be written to `target` until the end. Reading goes on."""
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
