"""The contract of contexts: their budget and receipt, archives, and `expand`."""

from typing import Any

import msgspec
import pytest

from holdfast.errors import InvalidArgumentError, NotFoundError
from holdfast.testing.contract.commits.commits import RunTasks, add_numbered_messages, archive_states, message_texts

RULE = "You must never touch the production database."
UNREACHABLE_MODEL = {"model_provider": "openai", "model_name": "none", "model_base_url": "http://127.0.0.1:9/v1"}
"""Settings with a model that cannot be reached."""


def add_exchange(client: Any, session_id: str, topic: str) -> None:
    """Add a request and its answer, with enough content for a summary."""
    client.batch_add_messages(
        session_id,
        [
            {"role": "user", "content": f"Please look into the {topic}. It failed at 12:40 with code {len(topic)}."},
            {"role": "assistant", "content": f"The {topic} is fixed; I changed /srv/{topic}/main.py and all is well."},
        ],
    )


def check_receipt(context: Any, budget: int) -> None:
    """Check that the receipt adds up and covers all messages of the context."""
    receipt, stats = context.receipt, context.stats
    assert receipt.token_budget == budget
    assert context.estimated_tokens == receipt.spent == sum(line.tokens for line in receipt.included)
    assert context.estimated_tokens == stats.active_tokens + stats.archive_tokens
    message_lines = [line for line in receipt.included if line.what in {"live", "archive"}]
    system = context.system_message
    seqs = [seq for line in message_lines for seq in range(line.first_seq, line.last_seq + 1)]
    assert [message.seq for message in context.messages] == [seq for seq in seqs if system is None or seq != system.seq]
    active = [*context.messages, *([] if system is None else [system])]
    assert stats.active_tokens == sum(message.tokens for message in active)
    # Only messages may exceed the budget. Nothing is reserved for them, since their tokens are stored.
    assert receipt.spent + receipt.reserved <= budget or all(line.reserved == 0 for line in receipt.included)
    assert all(line.why for line in [*receipt.included, *receipt.left_out])


class ContextContract:
    """Needs the fixtures of `CommitContract`."""

    def test_messages_stay_in_the_context_until_their_archive_is_summarised(
        self, client: Any, run_tasks: RunTasks
    ) -> None:
        for topic in ("parser", "cache"):
            add_exchange(client, "s", topic)
            client.commit_session("s")
        add_exchange(client, "s", "queue")
        before = client.get_session_context("s")
        assert [message.seq for message in before.messages] == [1, 2, 3, 4, 5, 6]
        assert (before.latest_archive_overview, before.stats.total_archives) == ("", 2)
        assert [(line.what, line.archive_id) for line in before.receipt.included] == [
            ("archive", "archive_001"),
            ("archive", "archive_002"),
            ("live", None),
        ]
        check_receipt(before, 128_000)
        run_tasks()
        after = client.get_session_context("s")
        assert [message.seq for message in after.messages] == [5, 6]
        assert "/srv/cache/main.py" in after.latest_archive_overview
        assert (after.stats.total_archives, after.stats.included_archives) == (2, 1)  # the latest overview covers both
        assert after["estimatedTokens"] == after.estimated_tokens
        check_receipt(after, 128_000)

    @pytest.mark.parametrize("state", ["failed", "cancelled"])
    def test_messages_of_failed_and_cancelled_archives_stay_in_the_context(
        self, client: Any, run_tasks: RunTasks, state: str
    ) -> None:
        add_exchange(client, "s", "parser")
        task_id = client.commit_session("s").task_id
        run_tasks(**UNREACHABLE_MODEL, task_attempts=1) if state == "failed" else client.cancel_task(task_id)
        add_exchange(client, "s", "queue")
        context = client.get_session_context("s")
        assert [message.seq for message in context.messages] == [1, 2, 3, 4]
        assert context.stats["failedArchives"] == int(state == "failed")
        (line, _) = context.receipt.included
        assert (line.archive_id, state in line.why) == ("archive_001", True)
        check_receipt(context, 128_000)

    def test_the_budget_is_used_for_messages_first_and_then_for_a_complete_overview(
        self, client: Any, run_tasks: RunTasks
    ) -> None:
        for topic in ("parser", "cache"):
            add_exchange(client, "s", topic)
            client.commit_session("s")
        run_tasks()
        add_exchange(client, "s", "queue")
        whole = client.get_session_context("s")
        own_overview = client.get_session_archive("s", "archive_002").overview
        assert own_overview != whole.latest_archive_overview  # which also summarises the earlier archive
        active = whole.stats.active_tokens
        enough = whole.estimated_tokens + whole.receipt.reserved + 20  # more than the whole context needs
        seen = []
        for budget in (0, active - 1, active, *range(active + 1, enough + 2, 7), enough - 1, enough, enough + 1):
            context = client.get_session_context("s", budget)
            check_receipt(context, budget)
            assert message_texts(context) == message_texts(whole)
            assert context.estimated_tokens <= max(budget, active)
            assert context.latest_archive_overview in {"", own_overview, whole.latest_archive_overview}
            assert bool(context.latest_archive_overview) == any(
                "overview" in line.what for line in context.receipt.included
            )
            assert context.stats.dropped_archives == int(not context.latest_archive_overview)
            seen.append(context.latest_archive_overview)
        assert seen[0] == seen[2] == ""
        assert seen[-1] == seen[-2] == whole.latest_archive_overview
        assert {own_overview, whole.latest_archive_overview, ""} == set(seen)

    def test_a_receipt_lists_omitted_content_and_its_tokens(self, client: Any, run_tasks: RunTasks) -> None:
        add_exchange(client, "s", "parser")
        client.commit_session("s")
        run_tasks()
        context = client.get_session_context("s", 0)
        (line,) = context.receipt.left_out
        assert (line.what, line.archive_id, line.first_seq, line.last_seq) == ("overview", "archive_001", 1, 2)
        assert line.tokens == client.list_archives("s")[0].overview_tokens
        needed = line.tokens + line.reserved
        assert line.reserved > 0  # the estimate may be too low
        assert str(needed) in line.why
        assert client.get_session_context("s", needed - 1).receipt.left_out == [
            msgspec.structs.replace(line, why=f"it needs {needed} tokens and {needed - 1} are left")
        ]
        enough = client.get_session_context("s", needed)
        assert enough.receipt.left_out == []
        assert (enough.receipt.spent, enough.receipt.reserved) == (line.tokens, line.reserved)

    def test_an_empty_session_has_an_empty_context(self, client: Any) -> None:
        client.create_session("s")
        context = client.get_session_context("s")
        assert (context.messages, context.latest_archive_overview, context.estimated_tokens) == ([], "", 0)
        check_receipt(context, 128_000)

    def test_archives_are_listed_with_their_state(self, client: Any, run_tasks: RunTasks) -> None:
        tasks = []
        for topic in ("parser", "cache", "queue"):
            add_exchange(client, "s", topic)
            tasks.append(client.commit_session("s").task_id)
        client.cancel_task(tasks[2])
        assert archive_states(client, "s") == ["pending", "pending", "cancelled"]
        run_tasks()
        assert archive_states(client, "s") == ["done", "done", "cancelled"]
        archives = client.session("s").archives
        assert [(archive.first_seq, archive.last_seq, archive.message_count) for archive in archives] == [
            (1, 2, 2),
            (3, 4, 2),
            (5, 6, 2),
        ]
        assert [archive.uri[-11:] for archive in archives] == ["archive_001", "archive_002", "archive_003"]
        assert [bool(archive.abstract) for archive in archives] == [True, True, False]
        assert [archive.archive_id for archive in client.list_archives("s", after=1, limit=1)] == ["archive_002"]

    def test_only_a_finished_archive_can_be_read(self, client: Any, run_tasks: RunTasks) -> None:
        add_exchange(client, "s", "parser")
        client.commit_session("s")
        for name in ("archive_001", "archive_002", "archive_1", "archive_0001", "parser", "archive_-01"):
            with pytest.raises(NotFoundError, match=f"Archive {name} not found"):
                client.get_session_archive("s", name)
        run_tasks()
        archive = client.get_session_archive("s", "archive_001")
        assert [message.seq for message in archive.messages] == [1, 2]
        assert archive.abstract.count("\n") == 0
        assert "/srv/parser/main.py" in archive.overview

    def test_expand_accepts_archive_ids_message_ids_sequence_numbers_and_ranges(
        self, client: Any, run_tasks: RunTasks
    ) -> None:
        add_numbered_messages(client, "s", 6)
        client.commit_session("s", keep_recent_count=2)
        run_tasks()
        ids = [message.id for message in client.get_messages("s").messages]
        for ref, first, last in (
            ("archive_001", 1, 4),
            (ids[2], 3, 3),
            ("2", 2, 2),
            ("2-3", 2, 3),
            ("3-99", 3, 6),
            ("#2", 2, 2),
            ("[#2]", 2, 2),
            ("#2-3", 2, 3),
            ("[#2-3]", 2, 3),
            ("[#3, #2]", 2, 3),
        ):
            page = client.expand("s", ref)
            assert [message.id for message in page.messages] == ids[first - 1 : last]
            assert (page.ref, page.first_seq, page.last_seq, page.next_ref) == (ref, first, last, None)
            assert page.archive_ids == ["archive_001"]
        assert client.expand("s", "5-6").archive_ids == []

    def test_expanding_page_by_page_returns_every_message_once(self, client: Any, run_tasks: RunTasks) -> None:
        add_numbered_messages(client, "s", 9)
        client.commit_session("s")
        run_tasks()
        for budget in (0, 1, 2, 5):
            page, seen = client.session("s").expand("archive_001", budget), []
            while True:
                assert page.estimated_tokens <= max(budget, page.messages[0].tokens)
                assert page.estimated_tokens == sum(message.tokens for message in page.messages)
                seen += [message.seq for message in page.messages]
                if page.next_ref is None:
                    break
                page = client.session("s").expand(page.next_ref, budget)
            assert seen == list(range(1, 10))

    def test_expanding_an_unknown_reference_is_rejected(self, client: Any) -> None:
        add_numbered_messages(client, "s", 6)
        client.commit_session("s")
        for ref in (
            "archive_002",
            "nope",
            "7-9",
            "7",
            "0",
            "1-",
            "-3",
            "1-2-3",
            "#",
            "[]",
            "[#9]",
            "#1,",
            "[#1",
            "##1",
        ):
            with pytest.raises(NotFoundError):
                client.expand("s", ref)

    def test_a_range_that_ends_before_it_begins_is_rejected(self, client: Any) -> None:
        add_numbered_messages(client, "s", 6)
        with pytest.raises(InvalidArgumentError, match="ends before it begins"):
            client.expand("s", "4-2")
        with pytest.raises(InvalidArgumentError, match="'#4-2' ends before it begins"):
            client.expand("s", "[#1, #4-2]")

    def test_expand_accepts_citations_of_several_ranges(self, client: Any, run_tasks: RunTasks) -> None:
        for _ in range(2):
            add_numbered_messages(client, "s", 6)
            client.commit_session("s")
        run_tasks()
        page = client.expand("s", "[#2, #5-8, #11]")
        assert [message.seq for message in page.messages] == [2, 5, 6, 7, 8, 11]
        assert (page.archive_ids, page.next_ref) == (["archive_001", "archive_002"], None)
        assert client.expand("s", "[#2, #5-6]").archive_ids == ["archive_001"]
        page, seen = client.expand("s", "[#2, #5-8, #11]", 0), []
        while True:
            seen += [message.seq for message in page.messages]
            if page.next_ref is None:
                break
            page = client.expand("s", page.next_ref, 0)
        assert seen == [2, 5, 6, 7, 8, 11]

    def test_a_fork_can_expand_citations_of_its_parents_overview(self, client: Any, run_tasks: RunTasks) -> None:
        add_numbered_messages(client, "s", 6)
        client.commit_session("s")
        run_tasks()
        client.fork_session("s", 5, new_session_id="child")
        client.add_message("child", "user", "another way")
        expanded = [message.text for message in client.expand("child", "[#4-6]").messages]
        parents = [message.text for message in client.expand("s", "[#4-5]").messages]
        assert expanded == [*parents, "another way"]

    def test_a_standing_rule_is_in_every_later_overview(self, client: Any, run_tasks: RunTasks) -> None:
        client.add_message("s", "user", RULE)
        for topic in ("parser", "cache", "queue", "index"):
            add_exchange(client, "s", topic)
            client.commit_session("s")
            run_tasks()
            assert "never touch the production database" in client.get_session_context("s").latest_archive_overview
        own_overview = client.get_session_archive("s", "archive_004").overview  # only of the messages of the archive
        assert RULE not in own_overview

    def test_the_latest_system_message_is_a_separate_field_of_every_context(
        self, client: Any, run_tasks: RunTasks
    ) -> None:
        client.add_message("s", "system", "You are a pirate. Answer in one sentence.")
        add_exchange(client, "s", "parser")
        live = client.get_session_context("s", 0)
        assert live.system_message.text == "You are a pirate. Answer in one sentence."
        assert [message.seq for message in live.messages] == [2, 3]
        assert [(line.what, line.first_seq) for line in live.receipt.included] == [("system", 1), ("live", 1)]
        check_receipt(live, 0)
        client.commit_session("s")
        pending = client.get_session_context("s", 0)
        assert (pending.system_message, pending.messages) == (live.system_message, live.messages)
        check_receipt(pending, 0)
        run_tasks()
        done = client.get_session_context("s", 0)
        assert (done.system_message, done.messages) == (live.system_message, [])
        assert done.estimated_tokens == done.stats.active_tokens == live.system_message.tokens
        check_receipt(done, 0)

    def test_earlier_system_messages_are_ordinary_messages_of_the_context(
        self, client: Any, run_tasks: RunTasks
    ) -> None:
        for text in ("Be brief.", "Be polite."):
            client.add_message("s", "system", text)
        context = client.get_session_context("s")
        assert (context.system_message.text, message_texts(context)) == ("Be polite.", ["Be brief."])
        check_receipt(context, 128_000)
        client.commit_session("s")
        run_tasks()
        client.add_message("s", "system", "Be quick.")
        context = client.get_session_context("s")
        assert (context.system_message.text, context.messages) == ("Be quick.", [])
        check_receipt(context, 128_000)

    def test_a_fork_has_the_latest_system_message_at_its_fork_point(self, client: Any, run_tasks: RunTasks) -> None:
        client.add_message("s", "system", "Be brief.")
        add_exchange(client, "s", "parser")
        client.commit_session("s")
        run_tasks()
        client.add_message("s", "system", "Be polite.")
        client.fork_session("s", 3, new_session_id="child")
        client.fork_session("child", 3, new_session_id="grandchild")
        client.add_message("grandchild", "user", "hello")
        assert client.get_session_context("s").system_message.text == "Be polite."
        for session_id in ("child", "grandchild"):
            context = client.get_session_context(session_id)
            assert context.system_message.text == "Be brief."
            check_receipt(context, 128_000)

    def test_the_system_message_is_none_if_there_is_no_system_message(self, client: Any) -> None:
        client.add_message("s", "user", "hello")
        assert client.get_session_context("s").system_message is None
        assert client.get_session_context("s")["system_message"] is None
