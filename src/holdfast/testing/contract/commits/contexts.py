"""What a client must be given back: the context, its budget and receipt, archives, and any message again."""

from typing import Any

import msgspec
import pytest

from holdfast.errors import InvalidArgumentError, NotFoundError
from holdfast.testing.contract.commits.commits import Work, states, talk, texts

RULE = "You must never touch the production database."
DEAD = {"model_provider": "openai", "model_name": "none", "model_base_url": "http://127.0.0.1:9/v1"}
"""A model that nobody can reach."""


def converse(client: Any, session_id: str, topic: str) -> None:
    """Enough to be summarised."""
    client.batch_add_messages(
        session_id,
        [
            {"role": "user", "content": f"Please look into the {topic}. It failed at 12:40 with code {len(topic)}."},
            {"role": "assistant", "content": f"The {topic} is fixed; I changed /srv/{topic}/main.py and all is well."},
        ],
    )


def check_receipt(context: Any, budget: int) -> None:
    """It adds up, and says of all that there is whether it is in."""
    receipt, stats = context.receipt, context.stats
    assert receipt.token_budget == budget
    assert context.estimated_tokens == receipt.spent == sum(line.tokens for line in receipt.included)
    assert context.estimated_tokens == stats.active_tokens + stats.archive_tokens
    shown = [line for line in receipt.included if line.what in {"live", "archive"}]
    system = context.system_message
    seqs = [seq for line in shown for seq in range(line.first_seq, line.last_seq + 1)]
    assert [message.seq for message in context.messages] == [seq for seq in seqs if system is None or seq != system.seq]
    active = [*context.messages, *([] if system is None else [system])]
    assert stats.active_tokens == sum(message.tokens for message in active)
    assert receipt.spent + receipt.reserved <= budget or all(line.reserved == 0 for line in receipt.included)
    assert all(line.why for line in [*receipt.included, *receipt.left_out])


class ContextContract:
    """Needs what `CommitContract` needs."""

    def test_messages_stay_in_the_context_until_an_overview_stands_for_them(self, client: Any, work: Work) -> None:
        for topic in ("parser", "cache"):
            converse(client, "s", topic)
            client.commit_session("s")
        converse(client, "s", "queue")
        before = client.get_session_context("s")
        assert [message.seq for message in before.messages] == [1, 2, 3, 4, 5, 6]
        assert (before.latest_archive_overview, before.stats.total_archives) == ("", 2)
        assert [(line.what, line.archive_id) for line in before.receipt.included] == [
            ("archive", "archive_001"),
            ("archive", "archive_002"),
            ("live", None),
        ]
        check_receipt(before, 128_000)
        work()
        after = client.get_session_context("s")
        assert [message.seq for message in after.messages] == [5, 6]
        assert "/srv/cache/main.py" in after.latest_archive_overview
        assert (after.stats.total_archives, after.stats.included_archives) == (2, 1)
        assert after["estimatedTokens"] == after.estimated_tokens
        check_receipt(after, 128_000)

    @pytest.mark.parametrize("fate", ["failed", "cancelled"])
    def test_an_archive_that_will_not_be_done_keeps_its_messages_in_the_context(
        self, client: Any, work: Work, fate: str
    ) -> None:
        converse(client, "s", "parser")
        task_id = client.commit_session("s").task_id
        work(**DEAD, task_attempts=1) if fate == "failed" else client.cancel_task(task_id)
        converse(client, "s", "queue")
        context = client.get_session_context("s")
        assert [message.seq for message in context.messages] == [1, 2, 3, 4]
        assert context.stats["failedArchives"] == int(fate == "failed")
        (line, _) = context.receipt.included
        assert (line.archive_id, fate in line.why) == ("archive_001", True)
        check_receipt(context, 128_000)

    def test_the_budget_is_spent_on_messages_first_and_then_on_a_whole_overview_or_none(
        self, client: Any, work: Work
    ) -> None:
        for topic in ("parser", "cache"):
            converse(client, "s", topic)
            client.commit_session("s")
        work()
        converse(client, "s", "queue")
        whole = client.get_session_context("s")
        own = client.get_session_archive("s", "archive_002").overview
        assert own != whole.latest_archive_overview  # which also tells of the archive before
        active, most = whole.stats.active_tokens, whole.estimated_tokens + whole.receipt.reserved + 20
        seen = []
        for budget in (0, active - 1, active, *range(active + 1, most + 2, 7), most - 1, most, most + 1):
            context = client.get_session_context("s", budget)
            check_receipt(context, budget)
            assert texts(context) == texts(whole)
            assert context.estimated_tokens <= max(budget, active)
            assert context.latest_archive_overview in {"", own, whole.latest_archive_overview}
            assert bool(context.latest_archive_overview) == any(
                "overview" in line.what for line in context.receipt.included
            )
            assert context.stats.dropped_archives == int(not context.latest_archive_overview)
            seen.append(context.latest_archive_overview)
        assert seen[0] == seen[2] == ""
        assert seen[-1] == seen[-2] == whole.latest_archive_overview
        assert {own, whole.latest_archive_overview, ""} == set(seen)

    def test_a_receipt_says_what_was_left_out_and_what_it_would_have_cost(self, client: Any, work: Work) -> None:
        converse(client, "s", "parser")
        client.commit_session("s")
        work()
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

    def test_archives_are_listed_with_their_state(self, client: Any, work: Work) -> None:
        tasks = []
        for topic in ("parser", "cache", "queue"):
            converse(client, "s", topic)
            tasks.append(client.commit_session("s").task_id)
        client.cancel_task(tasks[2])
        assert states(client, "s") == ["pending", "pending", "cancelled"]
        work()
        assert states(client, "s") == ["done", "done", "cancelled"]
        archives = client.session("s").archives
        assert [(it.first_seq, it.last_seq, it.message_count) for it in archives] == [(1, 2, 2), (3, 4, 2), (5, 6, 2)]
        assert [it.uri[-11:] for it in archives] == ["archive_001", "archive_002", "archive_003"]
        assert [bool(it.abstract) for it in archives] == [True, True, False]
        assert [it.archive_id for it in client.list_archives("s", after=1, limit=1)] == ["archive_002"]

    def test_only_an_archive_that_is_done_can_be_read(self, client: Any, work: Work) -> None:
        converse(client, "s", "parser")
        client.commit_session("s")
        for name in ("archive_001", "archive_002", "archive_1", "archive_0001", "parser", "archive_-01"):
            with pytest.raises(NotFoundError, match=f"Archive {name} not found"):
                client.get_session_archive("s", name)
        work()
        archive = client.get_session_archive("s", "archive_001")
        assert [message.seq for message in archive.messages] == [1, 2]
        assert archive.abstract.count("\n") == 0
        assert "/srv/parser/main.py" in archive.overview

    def test_what_was_archived_can_be_brought_back_by_any_name(self, client: Any, work: Work) -> None:
        talk(client, "s", 6)
        client.commit_session("s", keep_recent_count=2)
        work()
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
            found = client.expand("s", ref)
            assert [message.id for message in found.messages] == ids[first - 1 : last]
            assert (found.ref, found.first_seq, found.last_seq, found.next_ref) == (ref, first, last, None)
            assert found.archive_ids == ["archive_001"]
        assert client.expand("s", "5-6").archive_ids == []

    def test_walking_on_with_a_small_budget_brings_back_everything_once(self, client: Any, work: Work) -> None:
        talk(client, "s", 9)
        client.commit_session("s")
        work()
        for budget in (0, 1, 2, 5):
            found, seen = client.session("s").expand("archive_001", budget), []
            while True:
                assert found.estimated_tokens <= max(budget, found.messages[0].tokens)
                assert found.estimated_tokens == sum(message.tokens for message in found.messages)
                seen += [message.seq for message in found.messages]
                if found.next_ref is None:
                    break
                found = client.session("s").expand(found.next_ref, budget)
            assert seen == list(range(1, 10))

    def test_what_is_not_there_cannot_be_brought_back(self, client: Any) -> None:
        talk(client, "s", 6)
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

    def test_a_range_that_ends_before_it_begins_is_refused(self, client: Any) -> None:
        talk(client, "s", 6)
        with pytest.raises(InvalidArgumentError, match="ends before it begins"):
            client.expand("s", "4-2")
        with pytest.raises(InvalidArgumentError, match="'#4-2' ends before it begins"):
            client.expand("s", "[#1, #4-2]")

    def test_citations_bring_back_several_ranges_and_walk_on(self, client: Any, work: Work) -> None:
        for _ in range(2):
            talk(client, "s", 6)
            client.commit_session("s")
        work()
        found = client.expand("s", "[#2, #5-8, #11]")
        assert [message.seq for message in found.messages] == [2, 5, 6, 7, 8, 11]
        assert (found.archive_ids, found.next_ref) == (["archive_001", "archive_002"], None)
        assert client.expand("s", "[#2, #5-6]").archive_ids == ["archive_001"]
        found, seen = client.expand("s", "[#2, #5-8, #11]", 0), []
        while True:
            seen += [message.seq for message in found.messages]
            if found.next_ref is None:
                break
            found = client.expand("s", found.next_ref, 0)
        assert seen == [2, 5, 6, 7, 8, 11]

    def test_a_fork_finds_what_its_parents_overview_cites(self, client: Any, work: Work) -> None:
        talk(client, "s", 6)
        client.commit_session("s")
        work()
        client.fork_session("s", 5, new_session_id="child")
        client.add_message("child", "user", "another way")
        texts_ = [message.text for message in client.expand("child", "[#4-6]").messages]
        parents = [message.text for message in client.expand("s", "[#4-5]").messages]
        assert texts_ == [*parents, "another way"]

    def test_a_rule_that_was_given_once_is_in_every_later_overview(self, client: Any, work: Work) -> None:
        client.add_message("s", "user", RULE)
        for topic in ("parser", "cache", "queue", "index"):
            converse(client, "s", topic)
            client.commit_session("s")
            work()
            assert "never touch the production database" in client.get_session_context("s").latest_archive_overview
        assert RULE not in client.get_session_archive("s", "archive_004").overview

    def test_the_latest_system_message_is_in_every_context_apart_and_once(self, client: Any, work: Work) -> None:
        client.add_message("s", "system", "You are a pirate. Answer in one sentence.")
        converse(client, "s", "parser")
        live = client.get_session_context("s", 0)
        assert live.system_message.text == "You are a pirate. Answer in one sentence."
        assert [message.seq for message in live.messages] == [2, 3]
        assert [(line.what, line.first_seq) for line in live.receipt.included] == [("system", 1), ("live", 1)]
        check_receipt(live, 0)
        client.commit_session("s")
        pending = client.get_session_context("s", 0)
        assert (pending.system_message, pending.messages) == (live.system_message, live.messages)
        check_receipt(pending, 0)
        work()
        done = client.get_session_context("s", 0)
        assert (done.system_message, done.messages) == (live.system_message, [])
        assert done.estimated_tokens == done.stats.active_tokens == live.system_message.tokens
        check_receipt(done, 0)

    def test_only_the_latest_system_message_is_apart(self, client: Any, work: Work) -> None:
        for text in ("Be brief.", "Be polite."):
            client.add_message("s", "system", text)
        context = client.get_session_context("s")
        assert (context.system_message.text, texts(context)) == ("Be polite.", ["Be brief."])
        check_receipt(context, 128_000)
        client.commit_session("s")
        work()
        client.add_message("s", "system", "Be quick.")
        context = client.get_session_context("s")
        assert (context.system_message.text, context.messages) == ("Be quick.", [])
        check_receipt(context, 128_000)

    def test_a_fork_has_the_system_message_as_of_where_it_began(self, client: Any, work: Work) -> None:
        client.add_message("s", "system", "Be brief.")
        converse(client, "s", "parser")
        client.commit_session("s")
        work()
        client.add_message("s", "system", "Be polite.")
        client.fork_session("s", 3, new_session_id="child")
        client.fork_session("child", 3, new_session_id="grandchild")
        client.add_message("grandchild", "user", "hello")
        assert client.get_session_context("s").system_message.text == "Be polite."
        for session_id in ("child", "grandchild"):
            context = client.get_session_context(session_id)
            assert context.system_message.text == "Be brief."
            check_receipt(context, 128_000)

    def test_without_a_system_message_there_is_none(self, client: Any) -> None:
        client.add_message("s", "user", "hello")
        assert client.get_session_context("s").system_message is None
        assert client.get_session_context("s")["system_message"] is None
