"""A reranker over real HTTP connections."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing

import msgspec
import pytest

from holdfast import Settings
from holdfast.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from holdfast.providers.configured import open_reranker
from holdfast.providers.rerank import RankedText, Reranker
from holdfast.testing.model import Behaviour, FakeModel, running_model

TEXTS = ["the cat sleeps", "deploy the site", "how to deploy a site on friday", ""]
QUERY = "deploy a site"


@pytest.fixture
def server() -> Iterator[FakeModel]:
    with running_model() as model:
        yield model


@pytest.fixture
def open_service(server: FakeModel) -> Iterator[Callable[..., Reranker]]:
    opened: list[Reranker] = []

    def open_one(**options: str) -> Reranker:
        opened.append(Reranker(server.url, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


def test_texts_are_ranked_best_first(open_service: Callable[..., Reranker], server: FakeModel) -> None:
    ranked = open_service(model="small", api_key="secret").rerank(QUERY, TEXTS)
    assert [text.position for text in ranked] == [2, 1, 0, 3]
    assert ranked[0] == RankedText(2, 1.0)
    (request,) = server.requests
    assert request.path == "/v1/rerank"
    assert request.key == "secret"
    assert request.body == {"model": "small", "query": QUERY, "documents": TEXTS, "top_n": 4}


def test_only_the_best_are_asked_for(open_service: Callable[..., Reranker], server: FakeModel) -> None:
    reranker = open_service()
    assert [text.position for text in reranker.rerank(QUERY, TEXTS, top_n=2)] == [2, 1]
    assert server.requests[0].body["top_n"] == 2
    assert "model" not in server.requests[0].body
    assert reranker.rerank(QUERY, [], top_n=2) == reranker.rerank(QUERY, TEXTS, top_n=0) == []
    assert server.calls == 1


def test_a_server_with_another_field_and_a_bare_list_is_found_and_remembered(
    open_service: Callable[..., Reranker], server: FakeModel
) -> None:
    server.behaviour = Behaviour(texts_field="texts")
    reranker = open_service()
    for _ in range(2):
        assert [text.position for text in reranker.rerank(QUERY, TEXTS, top_n=3)] == [2, 1, 0]
    assert [sorted(request.body) for request in server.requests] == [
        ["documents", "query", "top_n"],
        ["query", "texts", "top_n"],
        ["query", "texts", "top_n"],
    ]


def test_a_request_that_is_rejected_in_both_forms_fails_with_advice(
    open_service: Callable[..., Reranker], server: FakeModel
) -> None:
    server.behaviour = Behaviour(kind="echo_error", status=400)
    with pytest.raises(FailedPreconditionError, match=r"answered 400; check the model's name$"):
        open_service().rerank(QUERY, TEXTS)
    assert server.calls == 2


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"results": [{"index": 4, "relevance_score": 1}]}', "the index 4, but 4 texts were sent"),
        ('{"results": [{"index": -1, "relevance_score": 1}]}', "the index -1"),
        ('{"results": [{"index": 0, "relevance_score": NaN}]}', "not valid JSON"),
        ('{"results": [{"index": 0, "relevance_score": null}]}', "no index or no finite score"),
        ('{"results": [{"index": 0, "relevance_score": 1e999}]}', "no index or no finite score"),
        (f'{{"results": [{{"index": 0, "relevance_score": 1{"0" * 400}}}]}}', "no index or no finite score"),
        (f'{{"results": [{{"index": 1{"0" * 4_200}, "score": 1}}]}}', "no index or no finite score"),
        ('{"results": [{"index": true, "relevance_score": 1}]}', "no index or no finite score"),
        ('{"results": [{"index": "0", "relevance_score": "1"}]}', "no index or no finite score"),
        ('[{"index": 1, "score": 1}, {"index": 1, "score": 0}]', "the index 1 twice"),
        ('["best"]', "no index or no finite score"),
        ('{"results": "none"}', "without a list of results"),
        ("5", "without a list of results"),
        ('{"results": [{"index": 0', "truncated"),
    ],
)
def test_a_wrong_answer_is_described(
    open_service: Callable[..., Reranker], server: FakeModel, content: str, problem: str
) -> None:
    server.behaviour = Behaviour(text=content)
    with pytest.raises(UnavailableError, match=problem) as raised:
        open_service().rerank(QUERY, TEXTS)
    assert raised.value.details["service"] == "model"


def test_a_service_that_is_down_is_unavailable_until_it_is_up_again(
    open_service: Callable[..., Reranker], server: FakeModel
) -> None:
    reranker = open_service()
    reranker.rerank(QUERY, TEXTS)
    server.stop()
    with pytest.raises(UnavailableError) as raised:
        reranker.rerank(QUERY, TEXTS)
    assert raised.value.details["service"] == "model"
    server.start()
    assert len(reranker.rerank(QUERY, TEXTS)) == 4
    server.behaviour = Behaviour(kind="rate_limited", retry_after=3)
    with pytest.raises(UnavailableError) as raised:
        reranker.rerank(QUERY, TEXTS)
    assert raised.value.details["retry_after"] == 3


def test_long_texts_are_truncated_and_too_many_are_refused(
    open_service: Callable[..., Reranker], server: FakeModel
) -> None:
    reranker = open_service()
    reranker.rerank("q" * 100_000, ["t" * 100_000])
    assert len(msgspec.json.encode(server.requests[0].body)) < 11_000
    with pytest.raises(InvalidArgumentError, match="at most 1000"):
        reranker.rerank(QUERY, ["text"] * 1_001)


def test_the_settings_open_a_reranker_or_none(server: FakeModel) -> None:
    assert open_reranker(Settings()) is None
    settings = Settings(rerank_base_url=server.url, rerank_model="small", rerank_api_key="secret")
    reranker = open_reranker(settings)
    assert reranker
    with closing(reranker):
        assert reranker.rerank(QUERY, TEXTS)[0].position == 2
    assert (server.requests[0].body["model"], server.requests[0].key) == ("small", "secret")
    with pytest.raises(InvalidArgumentError, match=r"rerank_base_url: .* is not an http or https URL"):
        open_reranker(Settings(rerank_base_url="localhost:8080"))


def test_a_service_in_another_process_is_used() -> None:
    command = [sys.executable, "-m", "holdfast.testing.model", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            with closing(Reranker(f"{process.stdout.readline().strip()}/v1")) as reranker:
                assert reranker.rerank(QUERY, TEXTS)[0].position == 2
        finally:
            process.kill()
