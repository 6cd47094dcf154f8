"""What is particular to PostgreSQL."""

from concurrent.futures import ThreadPoolExecutor
from random import Random

import psycopg
import pytest

import holdfast
from holdfast import ToolPart
from holdfast.errors import UnavailableError
from holdfast.store.drivers.postgres import PostgresDatabase
from holdfast.testing.postgres import PostgresServer


def test_what_the_server_does_by_default_does_not_matter(postgres: PostgresServer) -> None:
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


def test_appends_that_share_large_outputs_in_any_order_do_not_lock_each_other_out(postgres: PostgresServer) -> None:
    outputs = [f"{n}" * 10_000 for n in range(4)]
    with holdfast.connect(postgres.new_database()) as client:

        def add(number: int) -> int:
            shuffled = Random(number).sample(outputs, 4)
            return client.add_message(
                f"s{number % 8}", "tool", parts=[ToolPart(output=each) for each in shuffled]
            ).added

        with ThreadPoolExecutor(8) as threads:
            assert sum(threads.map(add, range(80))) == 80


def test_a_user_without_rights_gets_an_explanation(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    with psycopg.connect(postgres.url(), autocommit=True) as operator:
        role = url.split("//")[1].split("@")[0]
        operator.execute(f"ALTER SCHEMA {role} OWNER TO postgres".encode())
    with pytest.raises(UnavailableError, match=r"permission denied.*rights of its user"):
        holdfast.connect(url)
