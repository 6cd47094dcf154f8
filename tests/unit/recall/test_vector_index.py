"""The index of vectors on PostgreSQL, for an owner who has many. Without the extension, all are compared."""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any
from unittest.mock import Mock

import msgspec
import numpy as np
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.recall.embeddings import indexed_vectors, vector_index_kind
from holdfast.engine.recall.embeddings.matrices import Matrices
from holdfast.engine.recall.embeddings.owner_matrix import Nearest
from holdfast.model.identity import OPERATOR, Principal
from holdfast.ops.administration import DeleteAccount
from holdfast.ops.sessions import DeleteSession
from holdfast.ops.tasks import ListTasks
from holdfast.ops.vectors import ReembedDocuments
from holdfast.providers.static_vectors import StaticEmbedder
from holdfast.store.database import Tx
from holdfast.store.tables import documents
from holdfast.store.tables.embeddings import vector_index
from holdfast.store.tables.embeddings.vectors import EVERYTHING, VectorFilter
from holdfast.store.tables.lineage import WHOLE_LOG, LogRange
from holdfast.testing.model import running_model
from holdfast.testing.postgres import PostgresServer

ALICE = Principal("acme", "alice", "root")
BOB = Principal("acme", "bob", "user")
STATIC = StaticEmbedder.space
WORDS = ["cat", "dog", "house", "garden", "deploy", "server", "friday", "lunch", "soup", "train", "music", "river"]
FEW = {"exact_vectors": 50}
AddTexts = Callable[..., None]
RunTasks = Callable[..., None]


@pytest.fixture(params=["postgres"])
def target(request: pytest.FixtureRequest, postgres: PostgresServer) -> Any:
    url = postgres.new_migrated_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture
def extension(target: str, postgres: PostgresServer) -> None:
    """The extension, which only a superuser can create."""
    url = postgres.url(str(conninfo_to_dict(target)["dbname"]))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")


@pytest.fixture(autouse=True)
def index_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_index_kind, "MAX_NEWER", 10)


def texts(count: int, start: int = 0) -> list[str]:
    rng = np.random.default_rng(start + 1)
    return [" ".join(rng.choice(WORDS, 5)) + f" {start + n}" for n in range(count)]


def compare(engine: Engine, wanted: VectorFilter = EVERYTHING, k: int = 20, owner: str = "alice") -> float:
    """The share of the nearest documents that a search finds, compared with an exact search."""
    shares = []
    for text in ("the cat in the garden", "deploy the server", "music by the river"):
        query = StaticEmbedder().embed([text]).vectors[0]
        found, exact = engine.db.read("acme", partial(both_ways, owner=owner, query=query, k=k, wanted=wanted))
        assert len(found.numbers) == len(exact.numbers)
        assert found.cosines.tolist() == sorted(found.cosines.tolist(), reverse=True)
        assert abs(found.mean - exact.mean) < 0.05
        if len(exact.numbers):
            shares.append(np.mean(found.cosines >= exact.cosines[-1] - 1e-3))
    return float(np.mean(shares)) if shares else 1.0


def both_ways(tx: Tx, owner: str, query: Any, k: int, wanted: VectorFilter) -> tuple[Nearest, Nearest]:
    """What a search finds, and what an exact comparison finds."""
    columns = Matrices(1 << 30).columns(tx, owner, STATIC)
    assert columns is not None
    return Matrices(1 << 30).nearest(tx, owner, STATIC, query, k, wanted), columns.nearest(query, k, wanted)


def is_indexed(engine: Engine, owner: str = "alice") -> bool:
    return engine.db.read("acme", lambda tx: vector_index.indexed_version(tx, owner, STATIC)) is not None


def test_an_owner_with_many_vectors_is_searched_by_an_index(
    engine: Engine, extension: None, add_messages: AddTexts, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_messages(texts(300))
    add_messages(texts(20), "b", BOB)
    run_tasks(**FEW)
    assert is_indexed(engine)
    assert not is_indexed(engine, "bob")
    assert compare(engine) > 0.97
    assert compare(engine, owner="bob") == 1
    nearest = Mock(wraps=vector_index.nearest)
    monkeypatch.setattr(vector_index, "nearest", nearest)
    compare(engine)
    assert nearest.call_count == 3


def test_vectors_that_are_too_long_for_an_index_are_compared_exactly(
    engine: Engine, extension: None, add_messages: AddTexts, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_index, "MAX_DIMENSIONS", 255)
    add_messages(texts(60))
    run_tasks(**FEW)
    assert not is_indexed(engine)
    assert compare(engine) == 1
    monkeypatch.setattr(vector_index, "MAX_DIMENSIONS", 256)
    add_messages(texts(60, 60))
    run_tasks(**FEW)
    assert is_indexed(engine)


def test_the_index_is_used_by_the_plan(
    engine: Engine, extension: None, add_messages: AddTexts, run_tasks: RunTasks
) -> None:
    add_messages(texts(300))
    run_tasks(**FEW)
    plan: list[str] = []

    def explain(tx: Tx) -> None:
        class Explained:
            account, dialect = tx.account, tx.dialect

            @staticmethod
            def all_of(statements: Any) -> Any:
                rows = [tx.all(f"EXPLAIN {sql}" if " <#> " in sql else sql, params) for sql, params in statements]
                plan.extend(row[0] for row in rows[1])
                return [[], [], []]

        query = indexed_vectors.to_text(StaticEmbedder().embed(["cat"]).vectors[0])
        wanted = VectorFilter(kinds=["message"], since=1)
        vector_index.nearest(Explained, "alice", STATIC, query, 20, wanted)  # type: ignore[arg-type]
        assert tx.one("SHOW enable_sort") == ("on",)

    engine.db.read("acme", explain)
    assert any("_hnsw" in line for line in plan), "\n".join(plan)


def test_without_the_extension_vectors_are_compared_exactly(
    engine: Engine, add_messages: AddTexts, run_tasks: RunTasks
) -> None:
    add_messages(texts(100))
    run_tasks(**FEW)
    assert not is_indexed(engine)
    assert engine.call(OPERATOR, ListTasks(task_type="index_vectors")) == []
    assert compare(engine) == 1


def test_vectors_that_are_newer_than_the_index_are_found(
    engine: Engine, extension: None, add_messages: AddTexts, run_tasks: RunTasks
) -> None:
    add_messages(texts(100))
    run_tasks(**FEW)
    before = engine.db.read("acme", lambda tx: vector_index.indexed_version(tx, "alice", STATIC))
    add_messages(["the cat in the garden"])
    run_tasks(**FEW)
    assert engine.db.read("acme", lambda tx: vector_index.indexed_version(tx, "alice", STATIC)) == before
    assert compare(engine, k=1) == 1
    add_messages(texts(50, 1_000))
    run_tasks(**FEW)
    after = engine.db.read("acme", lambda tx: vector_index.indexed_version(tx, "alice", STATIC))
    assert after is not None
    assert before is not None
    assert after > before
    assert compare(engine) > 0.97


def test_deleted_documents_are_not_found_in_the_index(
    engine: Engine, extension: None, add_messages: AddTexts, run_tasks: RunTasks
) -> None:
    add_messages(texts(100), "gone")
    add_messages(texts(100, 500), "kept")
    run_tasks(**FEW)
    engine.call(ALICE, DeleteSession(session_id="gone"))
    run_tasks(**FEW)
    query = StaticEmbedder().embed(["the cat in the garden"]).vectors[0]
    found = engine.db.read("acme", lambda tx: Matrices(1 << 30).nearest(tx, "alice", STATIC, query, 150))
    existing = engine.db.read("acme", lambda tx: documents.read(tx, found.numbers.tolist()))
    assert len(existing) == len(found.numbers) == 100
    assert compare(engine) > 0.97


@pytest.mark.parametrize("exact_documents", [0, 10_000])
def test_filters_apply_to_the_index(
    engine: Engine,
    extension: None,
    add_messages: AddTexts,
    run_tasks: RunTasks,
    monkeypatch: pytest.MonkeyPatch,
    exact_documents: int,
) -> None:
    monkeypatch.setattr(indexed_vectors, "MAX_EXACT_DOCUMENTS", exact_documents)
    for number in range(5):
        add_messages(texts(60, number * 100), f"s{number}")
    run_tasks(**FEW)
    rows = engine.db.read("acme", lambda tx: tx.all("SELECT DISTINCT log_id FROM documents WHERE account_id = 'acme'"))
    logs = sorted(row[0] for row in rows)
    for wanted in (
        VectorFilter(kinds=["message"]),
        VectorFilter(kinds=["overview"]),
        VectorFilter(levels=[2], without_logs=logs[:2]),
        VectorFilter(since=1, until=2**60),
        VectorFilter(until=5),
        VectorFilter(ranges=[]),
        VectorFilter(ranges=[LogRange(logs[0], 1, WHOLE_LOG)]),
        VectorFilter(ranges=[LogRange(logs[1], 5, 30), LogRange(logs[2], 1, WHOLE_LOG), LogRange(987_654, 1, 7)]),
    ):
        assert compare(engine, wanted) > 0.97


def test_the_cosines_of_documents_of_the_index_are_exact(
    engine: Engine, extension: None, add_messages: AddTexts, run_tasks: RunTasks
) -> None:
    add_messages(texts(100))
    run_tasks(**FEW)
    query = StaticEmbedder().embed(["cat"]).vectors[0]

    def read(tx: Tx) -> Any:
        columns = Matrices(1 << 30).columns(tx, "alice", STATIC)
        assert columns is not None
        numbers = columns.numbers[::7].tolist()
        return Matrices(1 << 30).cosines(tx, "alice", STATIC, query, numbers), columns.cosines(query, numbers)

    found, expected = engine.db.read("acme", read)
    assert np.allclose(found, expected, atol=1e-6)


def test_the_index_shows_no_account_the_vectors_of_another(
    engine: Engine, extension: None, add_messages: AddTexts, run_tasks: RunTasks
) -> None:
    add_messages(texts(100))
    run_tasks(**FEW)
    table = vector_index.table_of(STATIC)
    assert engine.db.read("acme", lambda tx: tx.one(f"SELECT COUNT(*) FROM {table}")) == (100,)
    assert engine.db.read("other", lambda tx: tx.one(f"SELECT COUNT(*) FROM {table}")) == (0,)
    engine.call(Principal("ops", "root", "root"), DeleteAccount(account_id="acme"))
    assert engine.db.read("*", lambda tx: tx.one(f"SELECT COUNT(*) FROM {table}")) == (0,)
    assert engine.db.read("*", lambda tx: tx.one("SELECT COUNT(*) FROM indexed_vectors")) == (0,)


def test_reembed_replaces_the_index(
    engine: Engine, extension: None, add_messages: AddTexts, run_tasks: RunTasks
) -> None:
    add_messages(texts(100))
    run_tasks(**FEW)
    with running_model() as model:
        settings = {"embedder": "openai", "embedding_model": "vectors", "embedding_base_url": model.url, **FEW}
        remote = Engine(engine.db, msgspec.convert({"worker_threads": 0, **settings}, Settings))
        with closing(remote.models):
            space = remote.call(ALICE, ReembedDocuments()).space
        run_tasks(**settings)
    assert not is_indexed(engine)
    assert engine.db.read("acme", lambda tx: vector_index.indexed_version(tx, "alice", space)) is not None
    table = vector_index.table_of(STATIC)
    assert engine.db.read("acme", lambda tx: tx.one(f"SELECT COUNT(*) FROM {table}")) == (0,)
