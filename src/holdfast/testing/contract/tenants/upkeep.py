"""The contract of session settings, statistics and the status of the system."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import InvalidArgumentError, NotFoundError
from holdfast.model.parts import ToolPart

POLICY = {"self": {"enabled": True}, "peer": {"enabled": False}, "memory_types": ["profile", "events"]}
AUTO = {"pending_token_threshold": 8000, "keep_recent_count": 4, "idle_timeout_seconds": 1.5}
EXTRACTION = {"events": {"tags": ["a=b"]}, "depth": [1, None, {"x": 1.0}]}


class UpkeepContract:
    def test_a_session_is_created_with_its_settings(self, client: Any) -> None:
        created = client.create_session(
            "s", memory_policy=POLICY, auto_commit_policy=AUTO, memory_extraction_config=EXTRACTION
        )
        assert created["memory_policy"] == POLICY
        assert created["auto_commit_policy"] == AUTO
        assert created.memory_extraction_config == EXTRACTION
        assert client.get_session("s") == created

    def test_a_session_has_no_settings_by_default(self, client: Any) -> None:
        created = client.create_session("s")
        assert (created.memory_policy, created.auto_commit_policy, created.memory_extraction_config) == (
            None,
            None,
            None,
        )

    def test_given_settings_are_changed_and_none_resets_them(self, client: Any) -> None:
        client.create_session("s", memory_policy=POLICY, memory_extraction_config=EXTRACTION)
        changed = client.update_session_config("s", auto_commit_policy=AUTO)
        assert (changed["memory_policy"], changed["auto_commit_policy"]) == (POLICY, AUTO)
        assert changed.memory_extraction_config == EXTRACTION
        changed = client.update_session_config("s", auto_commit_policy=None, memory_extraction_config=None)
        assert (changed["memory_policy"], changed.auto_commit_policy) == (POLICY, None)
        assert changed.memory_extraction_config is None
        assert client.update_session_config("s") == client.get_session("s")

    def test_a_fork_has_the_settings_of_its_parent(self, client: Any) -> None:
        client.create_session("s", auto_commit_policy=AUTO)
        assert client.fork_session("s", new_session_id="child")["auto_commit_policy"] == AUTO

    @pytest.mark.parametrize(
        ("field", "given"),
        [
            ("memory_policy", {"selves": {}}),
            ("memory_policy.self", {"self": True}),
            ("memory_policy.self", {"self": {"enabled": True, "more": 1}}),
            ("memory_policy.memory_types[1]", {"memory_types": ["profile", "songs"]}),
            ("auto_commit_policy.keep_recent_count", {"keep_recent_count": -1}),
            ("auto_commit_policy.pending_token_threshold", {"pending_token_threshold": "many"}),
            ("memory_extraction_config.x", {"x": float("nan")}),
            ("memory_extraction_config", {"x": "y" * 70_000}),
            ("memory_extraction_config", ["x"]),
        ],
    )
    def test_invalid_settings_are_rejected_with_the_field_and_change_nothing(
        self, client: Any, field: str, given: Any
    ) -> None:
        client.create_session("s")
        name = field.split(".", maxsplit=1)[0]
        attempts: list[Callable[[], Any]] = [
            lambda: client.update_session_config("s", **{name: given}),
            lambda: client.create_session("t", **{name: given}),
        ]
        for attempt in attempts:
            with pytest.raises(InvalidArgumentError) as raised:
                attempt()
            assert raised.value.details["field"].startswith(field)
        assert client.get_session("s")[name] is None
        with pytest.raises(NotFoundError):
            client.get_session("t")

    def test_changing_the_settings_of_a_missing_session_is_rejected(self, client: Any) -> None:
        with pytest.raises(NotFoundError, match="Session nope not found"):
            client.update_session_config("nope", auto_commit_policy=AUTO)

    def test_a_session_can_be_created_with_an_earlier_time(self, client: Any) -> None:
        created = client.create_session("s", created_at="2020-02-03T04:05:06.789Z")
        assert created["created_at"] == "2020-02-03T04:05:06.789000Z"

    @pytest.mark.parametrize("time", ["0001-01-01T00:00:00+10:00", "9999-12-31T23:59:59-10:00"])
    def test_a_time_out_of_range_is_rejected(self, client: Any, time: str) -> None:
        client.create_session("s")
        attempts: list[Callable[[], Any]] = [
            lambda: client.create_session("t", created_at=time),
            lambda: client.fork_session("s", created_at=time),
            lambda: client.session_used("s", ["viking://a"], created_at=time),
        ]
        for attempt in attempts:
            with pytest.raises(InvalidArgumentError, match="created_at"):
                attempt()
        assert (client.list_usage("s"), len(client.list_sessions())) == ([], 1)

    def test_a_use_can_be_recorded_with_an_earlier_time(self, client: Any) -> None:
        client.session_used("s", ["viking://a"], created_at="2020-02-03T04:05:06Z")
        (use,) = client.list_usage("s")
        assert use["created_at"] == "2020-02-03T04:05:06Z"

    def test_statistics_count_messages_tokens_tool_results_and_uses(self, client: Any) -> None:
        client.add_message("s", "user", "hello", created_at="2026-01-01T00:00:00Z")
        client.add_message("s", "tool", parts=[ToolPart(tool_name="t", output="x" * 9_000)])
        client.session_used("s", ["viking://a", "viking://b"], {"uri": "viking://skill"})
        child = client.fork_session("s", 1, new_session_id="child")
        client.add_message("child", "user", "more")
        stats = client.session_stats("s")
        assert (stats.messages, stats.live_messages, stats.tool_results) == (2, 2, 1)
        assert stats.messages_by_role == {"user": 1, "tool": 1}
        assert (stats.contexts_used, stats.skills_used) == (2, 1)
        assert stats.tokens == stats.pending_tokens == client.get_session("s").pending_tokens
        assert stats["first_message_at"] == "2026-01-01T00:00:00Z"
        assert client.session_stats("child").messages_by_role == {"user": 2}
        assert child.total_message_count == 1
        totals = client.memory_stats()
        assert (totals.sessions, totals.messages, totals.total_memories) == (2, 4, 0)
        assert totals.tokens == stats.tokens + client.get_session("child").pending_tokens

    def test_statistics_of_an_empty_session_are_zero(self, client: Any) -> None:
        client.create_session("s")
        stats = client.session_stats("s")
        assert (stats.messages, stats.messages_by_role, stats.first_message_at) == (0, {}, None)
        with pytest.raises(NotFoundError):
            client.session_stats("nope")

    def test_the_system_reports_its_status_and_health(self, client: Any) -> None:
        assert client.system_status().to_dict() == {"initialized": True, "user": "alice"}
        assert client.check_health().healthy
        health = client.system_health()
        assert health.is_healthy
        assert {"storage", "queue", "vikingdb", "models", "lock", "retrieval"} <= health.components.keys()
        assert client.observe("queue").to_dict() == health.components["queue"].to_dict()
        assert client.wait_until_idle()["writes"].pending == 0
        identity = {"account_id": "acme", "user_id": "alice", "role": "root", "agent_id": "default"}
        assert client.whoami().to_dict() == identity
        with pytest.raises(InvalidArgumentError, match="component"):
            client.observe("engine room")
