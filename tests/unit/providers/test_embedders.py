"""Embedders: static vectors, and servers over real HTTP connections."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Settings
from holdfast.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from holdfast.providers import static_vectors
from holdfast.providers.configured import open_embedder
from holdfast.providers.remote_embedder import OpenAIEmbedder
from holdfast.providers.static_vectors import StaticEmbedder, word_vectors
from holdfast.testing.model import Behaviour, FakeModel, running_model

KEY = "sk-very-secret-0123456789"


@pytest.fixture
def server() -> Iterator[FakeModel]:
    with running_model() as model:
        yield model


@pytest.fixture
def open_remote(server: FakeModel) -> Iterator[Callable[[], OpenAIEmbedder]]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(OpenAIEmbedder("vectors", base_url=server.url, api_key=KEY)))


def test_vectors_of_a_server_are_normalised_and_in_the_order_of_their_texts(
    open_remote: Callable[[], OpenAIEmbedder],
) -> None:
    embedder = open_remote()
    texts = [f"text {n}" for n in range(200)]
    in_batch, alone = embedder.embed(texts).vectors, embedder.embed(texts[150:151]).vectors
    assert in_batch.dtype == np.float32
    assert in_batch.shape == (200, embedder.dimensions) == (200, 16)
    assert np.allclose(np.linalg.norm(in_batch, axis=1), 1)
    assert np.array_equal(in_batch[150], alone[0])


def test_an_empty_text_has_a_zero_vector(open_remote: Callable[[], OpenAIEmbedder]) -> None:
    for embedder in (open_remote(), open_embedder(Settings())):
        vectors = embedder.embed(["", "something"]).vectors
        assert not vectors[0].any()
        assert np.isfinite(vectors).all()
        assert embedder.embed([]).vectors.shape == (0, embedder.dimensions)


def test_an_embedder_raises_the_same_errors_as_a_model(
    open_remote: Callable[[], OpenAIEmbedder], server: FakeModel
) -> None:
    embedder = open_remote()
    server.behaviour = "rate_limited"
    with pytest.raises(UnavailableError):
        embedder.embed(["text"])
    server.behaviour = "unauthorized"
    with pytest.raises(FailedPreconditionError):
        embedder.embed(["text"])


def test_the_dimensions_are_those_of_the_first_answer(
    open_remote: Callable[[], OpenAIEmbedder], server: FakeModel
) -> None:
    server.behaviour = Behaviour(text='{"data": [{"embedding": [3, 4, 0]}]}')
    embedder = open_remote()
    assert embedder.embed(["text"]).vectors.tolist() == [[np.float32(0.6), np.float32(0.8), 0]]
    assert (embedder.dimensions, server.calls) == (3, 1)
    server.behaviour = "normal"
    with pytest.raises(UnavailableError, match="vectors of 16 dimensions, not 3 as before"):
        embedder.embed(["text"])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"data": [{"index": 0, "embedding": [1, 2]}]}', "1 vectors for 2 texts"),
        ('{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}', "2 vectors for 2 texts"),
        ('{"data": [{"embedding": [1]}, {"embedding": [1, 2]}]}', "not lists of numbers of one length"),
        ('{"data": [{"embedding": "AACAPw=="}, {"embedding": "AACAPw=="}]}', "not lists of numbers"),
        ('{"data": [{"embedding": [1]}, {"embedding": [null]}]}', "not finite"),
        ('{"data": [{"embedding": [1]}, {"embedding": [1e300]}]}', "not finite"),
        ('{"data": [{"embedding": [1]}, {"embedding": [NaN]}]}', "not valid JSON"),
        (f'{{"data": [{{"embedding": [1]}}, {{"embedding": [1{"0" * 400}]}}]}}', "not lists of numbers"),
        ('{"data": [{"index": 1e999, "embedding": [1]}, {"embedding": [1]}]}', "without vectors|not valid JSON"),
        ('{"data": [{"embedding": []}, {"embedding": []}]}', "vectors of 0 dimensions"),
        ('{"data": [1, 2]}', "without vectors"),
        ('{"data": null}', "without vectors"),
        ('{"error": {"message": "overloaded", "code": "busy"}}', r"with an error \(busy\)"),
    ],
)
def test_a_wrong_answer_of_an_embedding_server_is_described(
    open_remote: Callable[[], OpenAIEmbedder], server: FakeModel, content: str, problem: str
) -> None:
    server.behaviour = Behaviour(text=content)
    with pytest.raises(UnavailableError, match=problem) as raised:
        open_remote().embed(["first", "second"])
    assert raised.value.details["service"] == "model"


def test_large_numbers_of_a_server_are_normalised_and_an_absurd_count_of_tokens_is_ignored(
    open_remote: Callable[[], OpenAIEmbedder], server: FakeModel
) -> None:
    for count in ("1e300", "1" + "0" * 400, "-5", '"many"'):
        server.behaviour = Behaviour(
            text=f'{{"data": [{{"embedding": [3e38, 0, -3e38]}}], "usage": {{"total_tokens": {count}}}}}'
        )
        embedded = open_remote().embed(["text"])
        assert np.allclose(embedded.vectors, [[0.5**0.5, 0, -(0.5**0.5)]])
        assert embedded.tokens == 0


def test_a_server_that_accepts_few_texts_at_once_gets_few(
    open_remote: Callable[[], OpenAIEmbedder], server: FakeModel
) -> None:
    texts = [f"text {n}" for n in range(150)]
    expected = open_remote().embed(texts).vectors
    server.behaviour = Behaviour(max_texts=20)
    embedder = open_remote()
    assert np.array_equal(embedder.embed(texts).vectors, expected)
    server.clear_requests()
    assert np.array_equal(embedder.embed(texts).vectors, expected)
    assert {len(request.body["input"]) for request in server.requests} == {16, 6}


def test_a_server_that_accepts_short_texts_only_gets_the_beginning_of_a_long_one(
    open_remote: Callable[[], OpenAIEmbedder], server: FakeModel
) -> None:
    server.behaviour = Behaviour(max_text_chars=700)
    long = "word " * 2_000
    vectors = open_remote().embed(["short", long]).vectors
    assert np.array_equal(vectors, open_remote().embed(["short", long[:625]]).vectors)
    server.behaviour = Behaviour(max_text_chars=10)
    server.clear_requests()
    with pytest.raises(FailedPreconditionError, match=r"answered 413 \(error\); use a model for longer texts"):
        open_remote().embed([long])
    assert server.calls < 6


def test_a_wrong_setting_of_an_embedding_server_is_named() -> None:
    settings = Settings(embedder="openai", embedding_model="m", embedding_base_url="localhost:1")
    with pytest.raises(InvalidArgumentError, match="embedding_base_url"):
        open_embedder(settings)
    settings = Settings(embedder="openai", embedding_model="m", embedding_api_key="a\nb")
    with pytest.raises(InvalidArgumentError, match="embedding_api_key"):
        open_embedder(settings)


def test_static_vectors_of_similar_texts_are_close() -> None:
    first, similar, different = (
        open_embedder(Settings())
        .embed(["How do I configure the database?", "Setting up a database", "The cat sleeps in the sun"])
        .vectors
    )
    assert first @ similar > first @ different + 0.2
    first, similar, different = (
        open_embedder(Settings()).embed(["如何配置嵌入模型?", "怎样设置向量模型", "今天天气很好"]).vectors
    )
    assert first @ similar > first @ different + 0.2


def test_static_vectors_are_normalised_for_every_text() -> None:
    texts = ["a", "你好", "😀", "\x00", "long " * 50_000, "  two  "]
    vectors = open_embedder(Settings()).embed(texts).vectors
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.array_equal(vectors[:2], open_embedder(Settings()).embed(texts[:2]).vectors)


def test_static_vectors_are_loaded_once_for_all_threads() -> None:
    code = """
import threading
from holdfast import Settings
from holdfast.providers import static_vectors
from holdfast.providers.configured import open_embedder
loads = []
find = static_vectors._package_folder
static_vectors._package_folder = lambda: loads.append(1) or find()
threads = [threading.Thread(target=lambda: open_embedder(Settings()).embed(["x"])) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
import sys
print(len(loads), "wordllama" in sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.split() == ["1", "False"]


TEXT = st.text(st.one_of(st.sampled_from(" ▁\n\tabcé.-'</s>0我😀"), st.characters(codec="utf-8")), max_size=60)


@pytest.mark.rounds
@given(st.lists(TEXT, max_size=8))
def test_a_text_has_the_tokens_that_the_tokenizer_gives_it(texts: list[str]) -> None:
    """The words of a text are encoded separately and remembered, which is faster."""
    table = static_vectors._loaded()
    vectors = StaticEmbedder().embed(texts).vectors
    for text, vector in zip(texts, vectors, strict=True):
        ids = table._tokenizer.encode(text, add_special_tokens=False).ids
        assert list(table.text_ids(text)) == ids
        mean = table._vectors[ids].astype(np.float64).mean(axis=0) if ids else np.zeros(256)
        assert np.allclose(vector, mean / (np.linalg.norm(mean) or 1), atol=1e-5)


@pytest.mark.rounds
@given(st.lists(TEXT, max_size=20))
def test_a_word_has_the_vector_of_the_word_as_a_text(words: list[str]) -> None:
    vectors = word_vectors(words)
    assert vectors.shape == (len(words), 256)
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors, StaticEmbedder().embed(words).vectors)


def test_vectors_do_not_depend_on_the_words_that_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"word{n} and word{n * 7} again" for n in range(200)]
    expected = StaticEmbedder().embed(texts).vectors
    monkeypatch.setattr(static_vectors, "MAX_REMEMBERED_WORDS", 50)
    table = static_vectors._loaded()
    for first, last in pairwise(range(0, 201, 20)):
        assert np.array_equal(StaticEmbedder().embed(texts[first:last]).vectors, expected[first:last])
        assert len(table._remembered) <= 50


def test_similar_words_have_similar_vectors() -> None:
    car, vehicle, banana, nothing = word_vectors(["car", "vehicle", "banana", ""])
    assert car @ vehicle > car @ banana + 0.2
    assert not nothing.any()
