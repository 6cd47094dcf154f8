"""The vectors of an owner in memory: they follow the rows, whatever is added, removed, shared or forked."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from holdfast.config import Settings
from holdfast.engine.recall.embeddings import matrices as matrices_module
from holdfast.engine.recall.embeddings.matrices import Matrices, matrices_of
from holdfast.engine.recall.embeddings.owner_matrix import Nearest
from holdfast.store.access import accounts
from holdfast.store.database import Database, Tx
from holdfast.store.tables import documents
from holdfast.store.tables.documents import NewDocument
from holdfast.store.tables.embeddings import vectors
from holdfast.store.tables.embeddings.vectors import EVERYTHING, DocumentToEmbed, VectorFilter
from holdfast.store.tables.lineage import WHOLE_LOG, LogRange

WIDTH = 32
RNG = np.random.default_rng(5)


@pytest.fixture
def db(database: Database) -> Database:
    database.write("acme", lambda tx: accounts.insert(tx, "acme", 1))
    return database


def unit_vectors(count: int) -> Any:
    rows = RNG.standard_normal((count, WIDTH)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def new_document(log_id: int, number: int, kind: str = "message", created_at: int = 0) -> NewDocument:
    return NewDocument(
        kind=kind,
        log_id=log_id,
        number=number,
        level=2 if kind == "message" else 1,
        role="user",
        speaker="",
        created_at=created_at,
        flags=0,
        dates="[]",
        words=["word"],
        text="word",
    )


def add(
    db: Database, new: Sequence[NewDocument], rows: Any, owner: str = "alice", space: str = "s", account: str = "acme"
) -> list[int]:
    """Add documents with vectors, and return their numbers."""

    def write(tx: Tx) -> list[int]:
        numbers = documents.insert(tx, owner, new)
        stored = documents.read(tx, numbers)
        pairs = [
            (DocumentToEmbed(each.n, each.kind, each.log_id, each.number, each.version, each.content_id), row.tobytes())
            for each, row in zip(stored, rows.astype("<f2"), strict=True)
        ]
        vectors.insert(tx, owner, space, pairs, pairs[-1][0].position)
        return numbers

    return db.write(account, write)


def nearest(
    db: Database,
    matrices: Matrices,
    query: Any,
    k: int = 5,
    wanted: VectorFilter = EVERYTHING,
    owner: str = "alice",
    space: str = "s",
) -> Nearest:
    return db.read("acme", lambda tx: matrices.nearest(tx, owner, space, query, k, wanted))


def assert_statistics(found: Nearest, cosines: Any) -> None:
    assert found.compared == len(cosines)
    assert found.mean == pytest.approx(float(cosines.mean()), abs=1e-6)


def expected_order(numbers: Sequence[int], rows: Any, query: Any) -> list[int]:
    cosines = rows.astype("<f2").astype(np.float32) @ query
    return [numbers[row] for row in np.argsort(-cosines, kind="stable")]


def test_the_nearest_vectors_are_found_with_the_mean_and_the_deviation_of_all(db: Database) -> None:
    rows, query = unit_vectors(300), unit_vectors(1)[0]
    numbers = add(db, [new_document(1, n) for n in range(1, 301)], rows)
    found = nearest(db, Matrices(1 << 30), query, k=10)
    cosines = rows.astype("<f2").astype(np.float32) @ query
    assert found.numbers.tolist() == expected_order(numbers, rows, query)[:10]
    assert np.allclose(found.cosines, np.sort(cosines)[::-1][:10], atol=1e-6)
    assert_statistics(found, cosines)
    assert found.compared == 300


@pytest.mark.parametrize("k", [0, 1, 3, 7, 1_000])
def test_any_number_of_vectors_can_be_asked_for(db: Database, k: int) -> None:
    rows, query = unit_vectors(7), unit_vectors(1)[0]
    numbers = add(db, [new_document(1, n) for n in range(1, 8)], rows)
    assert nearest(db, Matrices(1 << 30), query, k).numbers.tolist() == expected_order(numbers, rows, query)[:k]


def test_an_owner_without_vectors_has_none(db: Database) -> None:
    matrices, query = Matrices(1 << 30), unit_vectors(1)[0]
    assert nearest(db, matrices, query).compared == 0
    assert np.isnan(db.read("acme", lambda tx: matrices.cosines(tx, "alice", "s", query, [1, 2]))).all()


def test_new_vectors_are_added_without_reading_the_others(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    matrices, query = Matrices(1 << 30), unit_vectors(1)[0]
    rows = unit_vectors(500)
    numbers = add(db, [new_document(1, n) for n in range(1, 401)], rows[:400])
    nearest(db, matrices, query)
    monkeypatch.setattr(vectors, "read_page", None)
    for first in range(400, 500, 10):
        numbers += add(db, [new_document(1, n + 1) for n in range(first, first + 10)], rows[first : first + 10])
        found = nearest(db, matrices, query, k=20)
        assert found.numbers.tolist() == expected_order(numbers, rows[: first + 10], query)[:20]
    columns = db.read("acme", lambda tx: matrices.columns(tx, "alice", "s"))
    assert columns is not None
    assert len(columns.numbers) == 500
    assert columns.vectors.base is not None  # a view of a larger buffer


def test_columns_that_a_search_holds_do_not_change(db: Database) -> None:
    matrices = Matrices(1 << 30)
    rows = unit_vectors(30)
    add(db, [new_document(1, n) for n in range(1, 11)], rows[:10])
    columns = db.read("acme", lambda tx: matrices.columns(tx, "alice", "s"))
    assert columns is not None
    before = columns.vectors.copy()
    add(db, [new_document(1, n) for n in range(11, 31)], rows[10:])
    db.read("acme", lambda tx: matrices.columns(tx, "alice", "s"))
    db.write("acme", lambda tx: documents.delete_slice(tx, 1, 5))
    db.read("acme", lambda tx: matrices.columns(tx, "alice", "s"))
    assert np.array_equal(columns.vectors, before)


def test_deleted_documents_are_not_found_any_more(db: Database) -> None:
    matrices, query = Matrices(1 << 30), unit_vectors(1)[0]
    rows = unit_vectors(40)
    numbers = add(db, [new_document(1 + n // 20, n % 20 + 1) for n in range(40)], rows)
    nearest(db, matrices, query)
    db.write("acme", lambda tx: documents.delete_slice(tx, 1, 100))
    again = unit_vectors(5)
    numbers = numbers[20:] + add(db, [new_document(3, n) for n in range(1, 6)], again)
    left = np.concatenate([rows[20:], again])
    assert nearest(db, matrices, query, k=30).numbers.tolist() == expected_order(numbers, left, query)


def test_a_number_that_is_used_again_has_its_new_vector(db: Database) -> None:
    """SQLite gives the number of the last document again after its deletion."""
    matrices, query = Matrices(1 << 30), unit_vectors(1)[0]
    add(db, [new_document(1, 1)], unit_vectors(1))
    nearest(db, matrices, query)
    db.write("acme", lambda tx: documents.delete_slice(tx, 1, 1))
    new = unit_vectors(1)
    (number,) = add(db, [new_document(2, 1)], new)
    found = nearest(db, matrices, query)
    assert found.numbers.tolist() == [number]
    assert found.cosines[0] == pytest.approx(float(new[0].astype("<f2").astype(np.float32) @ query), abs=1e-6)


def test_another_account_with_the_name_of_a_deleted_one_starts_empty(db: Database) -> None:
    matrices, query = Matrices(1 << 30), unit_vectors(1)[0]
    add(db, [new_document(1, n) for n in range(1, 4)], unit_vectors(3))
    assert nearest(db, matrices, query).compared == 3
    db.write("*", lambda tx: accounts.delete(tx, "acme"))
    db.write("acme", lambda tx: accounts.insert(tx, "acme", 2))
    assert nearest(db, matrices, query).compared == 0
    numbers = []
    for number in range(1, 8):
        numbers += add(db, [new_document(9, number)], unit_vectors(1))
    assert sorted(nearest(db, matrices, query, k=20).numbers.tolist()) == sorted(numbers)


def test_spaces_and_owners_are_separate(db: Database) -> None:
    matrices, query = Matrices(1 << 30), unit_vectors(1)[0]
    alice = add(db, [new_document(1, 1)], unit_vectors(1))
    bob = add(db, [new_document(2, 1)], unit_vectors(1), owner="bob")
    other = add(db, [new_document(3, 1)], unit_vectors(1), space="t")
    assert nearest(db, matrices, query).numbers.tolist() == alice
    assert nearest(db, matrices, query, owner="bob").numbers.tolist() == bob
    assert nearest(db, matrices, query, space="t").numbers.tolist() == other
    assert nearest(db, matrices, query, space="unknown").compared == 0


FILTERS: list[tuple[VectorFilter, Callable[[NewDocument], bool]]] = [
    (VectorFilter(kinds=["overview"]), lambda d: d.kind == "overview"),
    (VectorFilter(kinds=["message", "memory"]), lambda d: d.kind == "message"),
    (VectorFilter(levels=[1]), lambda d: d.level == 1),
    (VectorFilter(since=50, until=120), lambda d: 50 <= d.created_at < 120),
    (VectorFilter(without_logs=[2, 3]), lambda d: d.log_id not in {2, 3}),
    (VectorFilter(ranges=[]), lambda d: False),
    (VectorFilter(ranges=[LogRange(1, 1, WHOLE_LOG)]), lambda d: d.log_id == 1),
    (VectorFilter(ranges=[LogRange(2, 3, 5)]), lambda d: d.log_id == 2 and d.kind == "message" and 3 <= d.number <= 5),
    (
        VectorFilter(ranges=[LogRange(1, 1, 2), LogRange(1, 9, 9), LogRange(3, 1, WHOLE_LOG), LogRange(77, 1, 5)]),
        lambda d: d.log_id == 3 or (d.log_id == 1 and d.kind == "message" and d.number in {1, 2, 9}),
    ),
    (
        VectorFilter(kinds=["message"], since=30, without_logs=[1]),
        lambda d: d.log_id != 1 and d.created_at >= 30 and d.kind == "message",
    ),
]


@pytest.mark.parametrize("max_bytes", [1 << 30, 0])
@pytest.mark.parametrize("filter_number", range(len(FILTERS)))
def test_only_what_the_filter_allows_is_compared(db: Database, filter_number: int, max_bytes: int) -> None:
    wanted, is_allowed = FILTERS[filter_number]
    new = [
        new_document(1 + n % 3, n // 3 + 1, "overview" if n % 7 == 0 else "message", created_at=n * 4)
        for n in range(60)
    ]
    rows, query = unit_vectors(60), unit_vectors(1)[0]
    numbers = add(db, new, rows)
    allowed = [row for row, document in enumerate(new) if is_allowed(document)]
    found = nearest(db, Matrices(max_bytes), query, k=8, wanted=wanted)
    expected = expected_order([numbers[row] for row in allowed], rows[allowed], query)[:8] if allowed else []
    assert found.numbers.tolist() == expected
    assert found.compared == len(allowed)
    if allowed:
        cosines = rows[allowed].astype("<f2").astype(np.float32) @ query
        assert_statistics(found, cosines)


@pytest.mark.parametrize("max_bytes", [1 << 30, 0])
def test_the_cosines_of_some_documents_can_be_asked_for(db: Database, max_bytes: int) -> None:
    rows, query = unit_vectors(50), unit_vectors(1)[0]
    numbers = add(db, [new_document(1, n) for n in range(1, 51)], rows)
    asked = [numbers[40], 999_999, numbers[3], numbers[3], numbers[49], 0]
    matrices = Matrices(max_bytes)
    found = db.read("acme", lambda tx: matrices.cosines(tx, "alice", "s", query, asked))
    expected = rows.astype("<f2").astype(np.float32) @ query
    assert np.allclose(found[[0, 2, 3, 4]], expected[[40, 3, 3, 49]], atol=1e-6)
    assert np.isnan(found[[1, 5]]).all()


def test_the_least_recently_used_matrix_is_dropped(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    owners = ["alice", "bob", "carol"]
    for log_id, owner in enumerate(owners, 1):
        add(db, [new_document(log_id, n) for n in range(1, 101)], unit_vectors(100), owner=owner)
    query = unit_vectors(1)[0]
    probe = Matrices(1 << 30)
    nearest(db, probe, query)
    matrices = Matrices(int(probe.bytes * 2.5))
    read_page = Mock(wraps=vectors.read_page)
    monkeypatch.setattr(vectors, "read_page", read_page)
    for owner in ("alice", "bob", "alice", "carol", "alice", "bob"):
        assert nearest(db, matrices, query, owner=owner).compared == 100
        assert matrices.bytes <= probe.bytes * 2.5
    assert [call.args[1] for call in read_page.call_args_list] == ["alice", "bob", "carol", "bob"]


def test_an_owner_with_more_vectors_than_the_budget_is_searched_in_pages(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrices_module, "PAGE_ROWS", 30)
    rows, query = unit_vectors(100), unit_vectors(1)[0]
    numbers = add(db, [new_document(1, n) for n in range(1, 101)], rows)
    matrices = Matrices(50 * WIDTH * 4)
    found = nearest(db, matrices, query, k=12)
    cosines = rows.astype("<f2").astype(np.float32) @ query
    assert found.numbers.tolist() == expected_order(numbers, rows, query)[:12]
    assert_statistics(found, cosines)
    assert matrices.bytes == 0


def test_a_damaged_vector_is_left_out(db: Database) -> None:
    rows, query = unit_vectors(5), unit_vectors(1)[0]
    numbers = add(db, [new_document(1, n) for n in range(1, 6)], rows)
    db.write("acme", partial(damage, number=numbers[2]))
    found = nearest(db, Matrices(1 << 30), query)
    assert numbers[2] not in found.numbers.tolist()
    assert found.compared == 4


def damage(tx: Tx, number: int) -> None:
    tx.execute("UPDATE vectors SET vector = ? WHERE account_id = ? AND n = ?", (b"\1\2", tx.account, number))


def test_threads_that_search_while_documents_are_added_see_whole_rows(db: Database) -> None:
    matrices, query = Matrices(1 << 30), unit_vectors(1)[0]
    rows = unit_vectors(600)
    by_number: dict[int, float] = {}
    stop = threading.Event()

    def search() -> int:
        searches = 0
        while not stop.is_set():
            found = nearest(db, matrices, query, k=50)
            for number, cosine in zip(found.numbers.tolist(), found.cosines.tolist(), strict=True):
                if number in by_number:
                    assert cosine == pytest.approx(by_number[number], abs=1e-5)
            searches += 1
        return searches

    with ThreadPoolExecutor(4) as threads:
        searching = [threads.submit(search) for _ in range(3)]
        for first in range(0, 600, 20):
            numbers = add(db, [new_document(1, n + 1) for n in range(first, first + 20)], rows[first : first + 20])
            cosines = rows[first : first + 20].astype("<f2").astype(np.float32) @ query
            assert by_number.keys().isdisjoint(numbers)
            by_number.update(zip(numbers, cosines.tolist(), strict=True))
            if first == 300:
                db.write("acme", lambda tx: documents.delete_slice(tx, 1, 40))
        stop.set()
        assert all(each.result() > 0 for each in searching)
    assert nearest(db, matrices, query).compared == 560


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_child_starts_with_empty_matrices(db: Database) -> None:
    matrices = Matrices(1 << 30)
    add(db, [new_document(1, 1)], unit_vectors(1))
    nearest(db, matrices, unit_vectors(1)[0])
    with matrices._lock:  # another thread could hold it during a fork
        child = os.fork()
        if child == 0:
            os._exit(0 if matrices.bytes == 0 else 1)
    deadline = time.monotonic() + 20
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ended == (child, 0)
    assert matrices.bytes > 0


def test_clients_of_one_database_share_its_matrices(db: Database) -> None:
    assert matrices_of(db, Settings()) is matrices_of(db, Settings())
