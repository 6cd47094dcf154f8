"""Documents get vectors in the background, whatever happens to the model, the process or the documents."""

import hashlib
import time
from collections.abc import Callable
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.engine.recall.embeddings import embedding_task
from holdfast.engine.recall.embeddings.matrices import Matrices
from holdfast.engine.recall.vector_search import QueryVector, embed_query
from holdfast.engine.tasks.claimed_task import LeaseLostError
from holdfast.errors import FailedPreconditionError, UnavailableError
from holdfast.model.identity import OPERATOR, Principal
from holdfast.model.tasks import ReembeddingStarted, Task
from holdfast.ops.sessions import DeleteSession
from holdfast.ops.system import WaitUntilIdle
from holdfast.ops.tasks import GetTask, ListTasks
from holdfast.ops.vectors import ReembedDocuments
from holdfast.providers.static_vectors import StaticEmbedder
from holdfast.store.database import Tx
from holdfast.store.tables import documents
from holdfast.store.tables.embeddings import unembedded, vectors
from holdfast.testing.model import Behaviour, running_model

ALICE = Principal("acme", "alice", "root")
BOB = Principal("acme", "bob", "user")
RunTasks = Callable[..., None]
AddTexts = Callable[..., None]
STATIC = StaticEmbedder.space


def remote_space(url: str) -> str:
    """The space of the model `vectors` behind a URL."""
    return f"openai/vectors@{hashlib.sha256(url.encode()).hexdigest()[:8]}/16"


def read_vectors(engine: Engine, owner: str = "alice", space: str = STATIC) -> dict[int, Any]:
    """The vectors of an owner's messages, by the number of the message."""
    rows = engine.db.read("acme", lambda tx: vectors.read_page(tx, owner, space, after=0, limit=10_000))
    return {row[2]: np.frombuffer(row[-1], "<f2").astype(np.float32) for row in rows}


def task_of_kind(engine: Engine, kind: str) -> Task:
    (task,) = engine.call(OPERATOR, ListTasks(task_type=kind))
    return task


def test_each_message_gets_the_vector_of_its_text(engine: Engine, add_messages: AddTexts, run_tasks: RunTasks) -> None:
    texts = ["We deploy on Friday", "The cat sleeps", "Où est la gare? 車站在哪裡?"]
    add_messages(texts)
    run_tasks()
    found = read_vectors(engine)
    expected = StaticEmbedder().embed(texts).vectors
    assert sorted(found) == [1, 2, 3]
    assert all(np.allclose(found[seq], expected[seq - 1], atol=1e-3) for seq in found)


def test_new_messages_are_embedded_once(
    engine: Engine, add_messages: AddTexts, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded: list[str] = []
    embed = StaticEmbedder.embed

    def record(self: StaticEmbedder, texts: Any) -> Any:
        embedded.extend(texts)
        return embed(self, texts)

    monkeypatch.setattr(StaticEmbedder, "embed", record)
    monkeypatch.setattr(embedding_task, "BATCH_DOCUMENTS", 7)
    first = [f"message {n}" for n in range(40)]
    add_messages(first)
    run_tasks()
    add_messages(["another one", "a last one"])
    add_messages(["of Bob"], "b", BOB)
    run_tasks()
    run_tasks()
    assert sorted(embedded) == sorted([*first, "another one", "a last one", "of Bob"])
    assert len(read_vectors(engine)) == 42
    assert len(read_vectors(engine, "bob")) == 1
    assert engine.db.read("acme", lambda tx: unembedded.page(tx, after=None, limit=10)) == []


def test_a_message_without_a_word_has_no_vector(engine: Engine, add_messages: AddTexts, run_tasks: RunTasks) -> None:
    add_messages(["first", " ", "third"])
    with running_model() as model:
        run_tasks(embedder="openai", embedding_model="vectors", embedding_base_url=model.url)
    assert sorted(read_vectors(engine, space=remote_space(model.url))) == [1, 3]


def test_a_long_message_is_embedded_by_its_beginning(
    engine: Engine, add_messages: AddTexts, run_tasks: RunTasks
) -> None:
    text = "a cat sleeps " * 200_000
    add_messages([text, "short", text])
    run_tasks()
    expected = StaticEmbedder().embed([text[:2_000]]).vectors[0]
    found = read_vectors(engine)
    assert np.allclose(found[1], expected, atol=1e-3)
    assert np.allclose(found[3], expected, atol=1e-3)


def test_a_model_that_is_down_delays_nothing_but_the_vectors(
    engine: Engine, add_messages: AddTexts, run_tasks: RunTasks
) -> None:
    with running_model("unavailable") as model:
        settings = {"embedder": "openai", "embedding_model": "vectors", "embedding_base_url": model.url}
        add_messages(["first", "second"])
        run_tasks(**settings)
        assert engine.db.read("acme", lambda tx: documents.statistics(tx, "alice")).documents == 2
        assert read_vectors(engine, space=remote_space(model.url)) == {}
        task = task_of_kind(engine, "embed")
        assert (task.status, task.error_code) in {("pending", "UNAVAILABLE"), ("failed", "UNAVAILABLE")}
        engine.call(ALICE, WaitUntilIdle(timeout=5))
        model.behaviour = "normal"
        engine.db.write("*", lambda tx: tx.execute("UPDATE unembedded SET due_at = 0"))
        engine.db.write("*", lambda tx: tx.execute("UPDATE tasks SET run_at = 0 WHERE run_at IS NOT NULL"))
        run_tasks(**settings)
    assert sorted(read_vectors(engine, space=remote_space(model.url))) == [1, 2]


def test_a_wrong_setting_fails_the_task_and_is_tried_again_later(
    engine: Engine, add_messages: AddTexts, run_tasks: RunTasks
) -> None:
    add_messages(["first"])
    run_tasks(embedder="minilm", embedding_model_path="/nowhere")
    task = task_of_kind(engine, "embed")
    assert (task.status, task.error_code) == ("failed", FailedPreconditionError.code)
    run_tasks()
    assert read_vectors(engine) == {}
    assert task_of_kind(engine, "embed").attempts == task.attempts
    engine.db.write("*", lambda tx: tx.execute("UPDATE unembedded SET due_at = 0"))
    run_tasks()
    assert sorted(read_vectors(engine)) == [1]


def test_a_document_that_is_deleted_while_it_is_embedded_gets_no_vector(
    engine: Engine, add_messages: AddTexts, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_messages(["secret"], "gone")
    add_messages(["kept"], "kept")
    embed = StaticEmbedder.embed

    def embed_and_delete(self: StaticEmbedder, texts: Any) -> Any:
        if "secret" in texts:
            monkeypatch.setattr(StaticEmbedder, "embed", embed)
            engine.call(ALICE, DeleteSession(session_id="gone"))
            log_ids = [row[0] for row in engine.db.read("acme", list_stale)]
            engine.db.write("acme", lambda tx: [documents.delete_slice(tx, log_id, 100) for log_id in log_ids])
        return embed(self, texts)

    monkeypatch.setattr(StaticEmbedder, "embed", embed_and_delete)
    run_tasks()
    (vector,) = read_vectors(engine).values()
    assert np.allclose(vector, StaticEmbedder().embed(["kept"]).vectors[0], atol=1e-3)


def list_stale(tx: Tx) -> list[Any]:
    return tx.all("SELECT log_id FROM unindexed WHERE account_id = ? AND is_stale = 1", (tx.account,))


def test_a_worker_that_dies_is_continued_by_the_next(
    engine: Engine, add_messages: AddTexts, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_task, "BATCH_DOCUMENTS", 5)
    add_messages([f"message {n}" for n in range(23)])
    insert = vectors.insert
    calls = 0

    def insert_twice(*args: Any) -> int:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise LeaseLostError
        return insert(*args)

    monkeypatch.setattr(vectors, "insert", insert_twice)
    run_tasks(task_lease_seconds=0.05)
    assert len(read_vectors(engine)) == 10
    monkeypatch.setattr(vectors, "insert", insert)
    engine.db.write("*", lambda tx: tx.execute("UPDATE tasks SET run_at = 0 WHERE run_at IS NOT NULL"))
    run_tasks()
    assert sorted(read_vectors(engine)) == list(range(1, 24))


def test_reembed_keeps_the_old_space_until_the_new_one_is_complete(
    engine: Engine, add_messages: AddTexts, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_task, "BATCH_DOCUMENTS", 5)
    texts = [f"message {n}" for n in range(12)]
    add_messages(texts)
    add_messages(["of Bob"], "b", BOB)
    run_tasks()
    with running_model() as model:
        settings = {"embedder": "openai", "embedding_model": "vectors", "embedding_base_url": model.url}
        started = start_reembedding(engine, settings)
        assert (started.space, started.documents) == (remote_space(model.url), 13)
        assert start_reembedding(engine, settings).task_id == started.task_id

        def fail(tx: Tx, *args: Any) -> None:
            raise LeaseLostError

        monkeypatch.setattr("holdfast.engine.recall.embeddings.reembedding_task._switch", fail)
        run_tasks(**settings)
        spaces = engine.db.read("acme", vectors.find_spaces)
        assert spaces == vectors.Spaces(STATIC, remote_space(model.url))
        assert len(read_vectors(engine)) == len(read_vectors(engine, space=remote_space(model.url))) == 12
        add_messages(["written meanwhile"])
        run_tasks(**settings, worker_threads=1)
        assert len(read_vectors(engine)) == len(read_vectors(engine, space=remote_space(model.url))) == 13
        calls = model.calls
        monkeypatch.undo()
        engine.db.write("*", lambda tx: tx.execute("UPDATE tasks SET run_at = 0 WHERE run_at IS NOT NULL"))
        run_tasks(**settings)
        assert model.calls <= calls + 1
    task = engine.call(ALICE, GetTask(task_id=started.task_id))
    assert (task.status, task.task_type) == ("completed", "reembed")
    assert task.result == {"space": remote_space(model.url), "documents": task.result and task.result["documents"]}
    assert engine.db.read("acme", vectors.find_spaces) == vectors.Spaces(remote_space(model.url), None)
    assert read_vectors(engine) == read_vectors(engine, "bob") == {}
    assert len(read_vectors(engine, space=remote_space(model.url))) == 13
    assert len(read_vectors(engine, "bob", remote_space(model.url))) == 1


def start_reembedding(engine: Engine, settings: dict[str, Any]) -> ReembeddingStarted:
    remote = Engine(engine.db, open_settings(**settings))
    with closing(remote.models):
        return remote.call(ALICE, ReembedDocuments())


def test_a_server_with_another_model_of_the_same_name_has_another_space(
    engine: Engine, add_messages: AddTexts, run_tasks: RunTasks
) -> None:
    add_messages(["first", "second"])
    with running_model() as model:
        settings = {"embedder": "openai", "embedding_model": "vectors", "embedding_base_url": model.url}
        run_tasks(**settings)
        old = remote_space(model.url)
        assert sorted(read_vectors(engine, space=old)) == [1, 2]
        model.behaviour = Behaviour(text='{"data": [{"embedding": [3, 4, 0]}]}')
        assert embed_with(engine, settings, "text") == (
            None,
            [f"ranked without vectors, which are of the embedder {old}; run holdfast reembed"],
        )
        add_messages(["third"])
        run_tasks(**settings)
        assert {vector.size for vector in read_vectors(engine, space=old).values()} == {16}
        assert start_reembedding(engine, settings).space == old.replace("/16", "/3")
        model.behaviour = "normal"
    with running_model() as elsewhere:
        settings["embedding_base_url"] = elsewhere.url
        start_reembedding(engine, settings)
        run_tasks(**settings)
        assert sorted(read_vectors(engine, space=remote_space(elsewhere.url))) == [1, 2, 3]
    assert read_vectors(engine, space=old) == {}


@pytest.mark.parametrize("content", ['{"data": [{"embedding": [1e999]}]}', '{"data": [{"index": 1e999}]}', "[]"])
def test_reembed_with_a_server_that_answers_nonsense_fails_at_once(engine: Engine, content: str) -> None:
    with running_model(Behaviour(text=content)) as model:
        settings = {"embedder": "openai", "embedding_model": "vectors", "embedding_base_url": model.url}
        with pytest.raises((UnavailableError, FailedPreconditionError), match="answered with"):
            start_reembedding(engine, settings)
        assert model.calls == 1


def open_settings(**values: Any) -> Settings:
    return msgspec.convert({"worker_threads": 0, **values}, Settings)


def test_after_a_change_of_the_setting_the_static_space_is_still_filled_until_reembed(
    engine: Engine, add_messages: AddTexts, run_tasks: RunTasks
) -> None:
    add_messages(["first"])
    run_tasks()
    add_messages(["second"])
    with running_model() as model:
        run_tasks(embedder="openai", embedding_model="vectors", embedding_base_url=model.url)
        assert model.calls == 0
    assert sorted(read_vectors(engine)) == [1, 2]


def test_documents_of_a_space_without_an_embedder_wait_for_reembed(
    engine: Engine, add_messages: AddTexts, run_tasks: RunTasks
) -> None:
    add_messages(["first"])
    with running_model() as model:
        run_tasks(embedder="openai", embedding_model="vectors", embedding_base_url=model.url)
    add_messages(["second"])
    run_tasks()
    assert sorted(read_vectors(engine, space=remote_space(model.url))) == [1]
    engine.call(ALICE, ReembedDocuments())
    run_tasks()
    assert sorted(read_vectors(engine)) == [1, 2]
    assert read_vectors(engine, space=remote_space(model.url)) == {}


def test_a_worker_with_another_embedder_leaves_a_reembedding_to_others(
    engine: Engine, add_messages: AddTexts, run_tasks: RunTasks
) -> None:
    add_messages(["first"])
    run_tasks()
    with running_model() as model:
        settings = {"embedder": "openai", "embedding_model": "vectors", "embedding_base_url": model.url}
        task_id = start_reembedding(engine, settings).task_id
        run_tasks()
        task = engine.call(ALICE, GetTask(task_id=task_id))
        assert task.error is not None
        assert "this process has an embedder of wordllama" in task.error
        # Started again with the present embedder, the first task ends.
        assert engine.call(ALICE, ReembedDocuments()).task_id != task_id
        run_tasks()
    assert engine.call(ALICE, GetTask(task_id=task_id)).status == "cancelled"
    assert sorted(read_vectors(engine)) == [1]


def test_only_an_administrator_reembeds(engine: Engine) -> None:
    with pytest.raises(Exception, match="needs the role admin"):
        engine.call(BOB, ReembedDocuments())


def test_vectors_are_searched_in_the_order_of_their_similarity(
    engine: Engine, add_messages: AddTexts, run_tasks: RunTasks
) -> None:
    add_messages(["The weather is nice", "How do I configure the database?", "I had soup for lunch"])
    run_tasks()
    query = StaticEmbedder().embed(["Setting up a database"]).vectors[0]
    matrices = Matrices(1 << 30)
    nearest = engine.db.read("acme", lambda tx: matrices.nearest(tx, "alice", STATIC, query, 2))
    by_number = engine.db.read("acme", lambda tx: documents.read(tx, nearest.numbers.tolist()))
    assert by_number[0].number == 2
    assert nearest.compared == 3


def test_a_query_is_embedded_in_the_space_that_serves(
    engine: Engine, add_messages: AddTexts, run_tasks: RunTasks
) -> None:
    assert embed_with(engine, {}, "text") == (None, [])
    add_messages(["first"])
    run_tasks()
    with running_model() as model:
        settings = {"embedder": "openai", "embedding_model": "vectors", "embedding_base_url": model.url}
        for each in ({}, settings):
            found, notes = embed_with(engine, each, "text")
            assert found is not None
            assert (found.space, notes) == (STATIC, [])
            assert np.array_equal(found.vector, StaticEmbedder().embed(["text"]).vectors[0])
        assert model.calls == 0
        start_reembedding(engine, settings)
        run_tasks(**settings)
        found, _ = embed_with(engine, settings, "text")
        assert found is not None
        assert found.space == remote_space(model.url)
        assert embed_with(engine, settings, "  ") == (None, [])
    assert embed_with(engine, {}, "text") == (
        None,
        [f"ranked without vectors, which are of the embedder {remote_space(model.url)}; run holdfast reembed"],
    )


def test_a_search_waits_seconds_for_an_embedder_that_does_not_answer_and_not_again(
    engine: Engine, add_messages: AddTexts, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engine.gate.models.QUERY_TIMEOUT_SECONDS", 0.2)
    add_messages(["first"])
    with running_model() as model:
        settings = {"embedder": "openai", "embedding_model": "vectors", "embedding_base_url": model.url}
        run_tasks(**settings)
        model.gate.clear()
        model.clear_requests()
        with closing(Engine(engine.db, open_settings(**settings)).models) as models:
            resources: Any = SimpleNamespace(db=engine.db, models=models)
            begun = time.monotonic()
            for _ in range(5):
                found, notes = embed_query(resources, engine.db.read("acme", vectors.find_spaces), "text")
                assert found is None
                assert notes[0].startswith("ranked without vectors: ")
            assert time.monotonic() - begun < 3
            assert model.calls == 1


def embed_with(engine: Engine, settings: dict[str, Any], query: str) -> tuple[QueryVector | None, list[str]]:
    with closing(Engine(engine.db, open_settings(**settings)).models) as models:
        resources: Any = SimpleNamespace(db=engine.db, models=models)
        return embed_query(resources, engine.db.read("acme", vectors.find_spaces), query)
