"""The index of vectors at its full size: it finds what an exact comparison finds, and a search is fast."""

import random
import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.recall.embeddings.matrices import Matrices
from holdfast.engine.recall.embeddings.owner_matrix import Nearest
from holdfast.providers.static_vectors import StaticEmbedder
from holdfast.store.access import accounts
from holdfast.store.database import Database, Tx
from holdfast.store.drivers.postgres.database import PostgresDatabase
from holdfast.store.tables import documents
from holdfast.store.tables.documents import NewDocument
from holdfast.store.tables.embeddings import unembedded, vector_index, vectors
from holdfast.store.tables.embeddings.vectors import DocumentToEmbed, Position
from holdfast.testing.postgres import PostgresServer

COUNT = 100_000
K = 100
MIN_RECALL = 0.97
CHATS = Path(__file__).parents[2] / "testdata" / "assistant_chats"
SPACE = StaticEmbedder.space


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[Database]:
    url = postgres.new_migrated_database()
    with psycopg.connect(postgres.url(str(conninfo_to_dict(url)["dbname"])), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    database = PostgresDatabase(url)
    database.migrate(0)
    yield database
    database.close()
    postgres.drop_database(url)


def sentences() -> list[str]:
    text = " ".join(path.read_text("utf-8") for path in sorted(CHATS.glob("*.txt")))
    found = {part.strip() for part in text.replace("?", ".").replace("\n", ".").split(".")}
    return sorted(part for part in found if len(part) > 15)


def different_texts(parts: list[str], count: int) -> list[str]:
    rng = random.Random(7)
    texts: set[str] = set()
    while len(texts) < count:
        texts.add(" ".join(rng.sample(parts, rng.choice((1, 2, 2, 3)))))
    return sorted(texts)


def insert(tx: Tx, first: int, rows: Any) -> None:
    new = [
        NewDocument(
            kind="message",
            log_id=1 + (first + n) // 1_000,
            number=1 + (first + n) % 1_000,
            level=2,
            role="user",
            speaker="",
            created_at=first + n,
            flags=0,
            dates="[]",
            words=["word"],
            text="word",
        )
        for n in range(len(rows))
    ]
    stored = documents.read(tx, documents.insert(tx, "alice", new))
    embedded = [
        (DocumentToEmbed(each.n, each.kind, each.log_id, each.number, each.version, each.content_id), row.tobytes())
        for each, row in zip(stored, rows, strict=True)
    ]
    last = stored[-1]
    vectors.insert(tx, "alice", SPACE, embedded, Position(last.version, last.n))


def both_ways(tx: Tx, matrices: Matrices, query: Any) -> tuple[Nearest, Nearest]:
    columns = matrices.columns(tx, "alice", SPACE)
    assert columns is not None
    return matrices.nearest(tx, "alice", SPACE, query, K), columns.nearest(query, K)


def test_the_index_finds_what_an_exact_comparison_finds_among_100_000(database: Database) -> None:
    database.write("acme", lambda tx: accounts.insert(tx, "acme", 1))
    parts = sentences()
    texts = different_texts(parts, COUNT)
    random.Random(3).shuffle(texts)
    rows = StaticEmbedder().embed(texts).vectors.astype("<f2")
    for first, last in pairwise(range(0, COUNT + 1, 1_000)):
        database.write("acme", partial(insert, first=first, rows=rows[first:last]))
        if first % 20_000 == 0:  # as the server would, if it were not configured for short tests
            database.write("acme", lambda tx: tx.run_script("ANALYZE documents; ANALYZE vectors"))
    database.write("acme", partial(vectors.lock_spaces, space=SPACE))
    database.write("acme", partial(unembedded.add, owner_id="alice"))
    engine = Engine(database, Settings(worker_threads=1))
    engine.start_workers(polls=False)
    assert engine.workers is not None
    engine.workers.close(600)
    assert database.read("acme", lambda tx: vector_index.indexed_version(tx, "alice", SPACE)) is not None
    queries = StaticEmbedder().embed(random.Random(5).sample(parts, 200)).vectors
    matrices = Matrices(1 << 30)
    recalls = []
    for query in queries:
        found, exact = database.read("acme", partial(both_ways, matrices=matrices, query=query))
        recalls.append(float(np.mean(found.cosines >= exact.cosines[-1] - 2e-4)))
        assert abs(found.mean - exact.mean) < 0.02
    begun = time.monotonic()
    for query in queries:
        database.read("acme", partial(matrices.nearest, owner_id="alice", space=SPACE, query=query, k=K))
    milliseconds = (time.monotonic() - begun) / len(queries) * 1_000
    print(f"recall at {K}: {np.mean(recalls):.4f}, {milliseconds:.1f} ms per search")  # noqa: T201 - the figure
    assert np.mean(recalls) >= MIN_RECALL
