"""Behaviour specific to the PostgreSQL driver."""

from concurrent.futures import ThreadPoolExecutor
from random import Random

import psycopg
import pytest

import holdfast
from holdfast import ToolPart
from holdfast.errors import UnavailableError
from holdfast.store.drivers.postgres import PostgresDatabase
from holdfast.testing.postgres import PostgresServer


def test_defaults_of_the_server_have_no_effect(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    with psycopg.connect(postgres.url(), autocommit=True) as operator:
        role = url.split("//")[1].split("@")[0]
        for setting, value in (
            ("default_transaction_isolation", "'repeatable read'"),
            ("default_transaction_read_only", "on"),
            ("synchronous_commit", "off"),
        ):
            operator.execute(f"ALTER ROLE {role} SET {setting} = {value}".encode())
    with holdfast.connect(url) as client:
        with ThreadPoolExecutor(8) as threads:
            added = list(threads.map(lambda _: client.add_message("s", "user", "hi"), range(40)))
        assert sorted(result.seq for result in added) == list(range(1, 41))
    database = PostgresDatabase(url)
    assert database.write("default", lambda tx: tx.one("SHOW synchronous_commit")) == ("on",)
    database.close()


def test_appends_that_share_large_outputs_do_not_deadlock(postgres: PostgresServer) -> None:
    outputs = [f"{n}" * 10_000 for n in range(4)]
    with holdfast.connect(postgres.new_database()) as client:

        def add(number: int) -> int:
            shuffled = Random(number).sample(outputs, 4)
            return client.add_message(
                f"s{number % 8}", "tool", parts=[ToolPart(output=output) for output in shuffled]
            ).added

        with ThreadPoolExecutor(8) as threads:
            assert sum(threads.map(add, range(80))) == 80


def test_a_user_without_privileges_gets_an_explanation(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    with psycopg.connect(postgres.url(), autocommit=True) as operator:
        role = url.split("//")[1].split("@")[0]
        operator.execute(f"ALTER SCHEMA {role} OWNER TO postgres".encode())
    with pytest.raises(UnavailableError, match=r"permission denied.*privileges of its user"):
        holdfast.connect(url)
