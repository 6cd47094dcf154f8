"""Overviews of committed conversations: shorter than the conversations, and with all essential facts."""

from pathlib import Path

import pytest

import holdfast
from conversations import CONVERSATIONS, Conversation
from holdfast.testing.model import running_model

SMALL_ARCHIVE_TOKENS = 500
"""The overview of a smaller archive may be larger than the archive: it has a minimum size."""
EARLY_COMMIT = 14
"""A number of messages after which the archive is small."""
EVERY_CONVERSATION = pytest.mark.parametrize(
    "conversation", CONVERSATIONS, ids=lambda conversation: conversation.name.replace(" ", "-")
)


def commit(client: holdfast.Client, conversation: Conversation, count: int | None = None) -> holdfast.Session:
    session = client.session()
    for start in range(0, len(conversation.messages[:count]), 100):
        session.add_messages(conversation.messages[:count][start : start + 100])
    task = client.wait_for_task(str(session.commit().task_id))
    assert task.status == "completed", task.error
    return session


@EVERY_CONVERSATION
def test_the_overview_of_a_commit_has_all_essential_facts(conversation: Conversation, tmp_path: Path) -> None:
    with holdfast.connect(tmp_path) as client:
        session = commit(client, conversation)
        (archive,) = session.archives
        overview = session.archive(archive.archive_id).overview
        assert [fact for fact in conversation.essentials if fact not in overview] == []
        assert archive.overview_tokens < archive.tokens
        assert session.context().latest_archive_overview == overview


@pytest.mark.rounds
@EVERY_CONVERSATION
def test_an_overview_is_smaller_than_its_archive_for_any_length(
    conversation: Conversation, tmp_path: Path, *, is_soak: bool
) -> None:
    with holdfast.connect(tmp_path) as client:
        for count in range(4, len(conversation.messages), 1 if is_soak else 20):
            (archive,) = commit(client, conversation, count).archives
            assert archive.tokens <= SMALL_ARCHIVE_TOKENS or archive.overview_tokens < archive.tokens


@pytest.mark.parametrize("counter", ["o200k_base", "cl100k_base"])
def test_an_overview_is_smaller_than_its_archive_if_tokens_are_counted_exactly(counter: str, tmp_path: Path) -> None:
    settings = holdfast.Settings(token_counter=counter)  # type: ignore[arg-type]
    with holdfast.connect(tmp_path, settings=settings) as client:
        for conversation in CONVERSATIONS:
            for count in (EARLY_COMMIT, len(conversation.messages)):
                session = commit(client, conversation, count)
                (archive,) = session.archives
                assert archive.tokens <= SMALL_ARCHIVE_TOKENS or archive.overview_tokens < archive.tokens
                assert session.context().receipt.counted_by == counter


def test_rules_are_kept_even_if_a_model_leaves_them_out(tmp_path: Path) -> None:
    with running_model() as model:
        settings = holdfast.Settings(
            model_provider="openai", model_name="fake", model_base_url=model.url, model_api_key="none"
        )
        with holdfast.connect(tmp_path, settings=settings) as client:
            session = client.session("s")
            session.add_message("user", "Please tidy up the logs. Never delete anything under /var/lib/ledger.")
            for number in range(20):
                session.add_message("assistant", f"I looked at file {number}; it is as it should be and I left it.")
            task = client.wait_for_task(str(session.commit().task_id))
            assert task.result
            assert task.result["summarised_by"].endswith("fake")
            assert "Never delete anything under /var/lib/ledger" in session.context().latest_archive_overview
            usage = client.get_session("s").llm_token_usage
            assert usage.total_tokens == task.result["token_usage"]["llm"]["total_tokens"] > 0
