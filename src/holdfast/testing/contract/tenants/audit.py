"""The contract of the audit log: what is in it, who may read it, and that it can be verified."""

import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.client.audit_files import verify_file
from holdfast.errors import InvalidArgumentError, NotFoundError, PermissionDeniedError


def actions(client: Any, **filters: Any) -> list[str]:
    return [record.action for record in reversed(client.list_audit(**filters).records)]


def wait_for_lines(client: Any, **filters: Any) -> list[Any]:
    """List lines that another client may have written, which does not wait for them."""
    deadline = time.monotonic() + 10
    while not (records := client.list_audit(**filters).records) and time.monotonic() < deadline:
        time.sleep(0.01)
    return list(records)


class AuditContract:
    def test_the_first_read_of_a_session_is_audited_with_its_version(self, client: Any) -> None:
        client.add_message("chat_001", "user", "hi")
        for _ in range(3):
            client.get_messages("chat_001")
            client.get_session("chat_001")
        (opened,) = client.list_audit(action="OpenSession").records
        assert (opened.resource, opened.user_id, opened.outcome) == ("chat_001", "alice", "done")
        log_id, _, seq = opened.version.partition("-")
        assert int(log_id, 16) > 0
        assert seq == "1"

    def test_a_change_of_a_session_is_audited_with_the_version_before_it(self, client: Any) -> None:
        client.add_message("chat_001", "user", "hi")
        client.add_message("chat_001", "user", "there")
        client.update_session("chat_001", title="x")
        (updated,) = client.list_audit(action="UpdateSession").records
        assert updated.version.endswith("-2")
        assert updated.agent_id == "default"

    def test_a_denied_attempt_is_audited_once(self, client: Any, connect_as: Callable[..., Any]) -> None:
        client.create_session("chat_001")
        name = f"eve_{uuid.uuid4().hex}"  # the server may have denied it to an eve of another test
        eve = connect_as("acme", name, "user")
        for _ in range(3):
            with pytest.raises(PermissionDeniedError):
                eve.admin.create_user("acme", "mallory")
        (denied,) = wait_for_lines(client, outcome="denied")
        assert (denied.user_id, denied.action, denied.resource, denied.role) == (name, "CreateUser", "mallory", "user")

    def test_the_audit_is_searched(self, client: Any) -> None:
        client.create_session("a")
        client.fork_session("a", new_session_id="ab")
        client.update_session("a", title="x")
        client.create_session("other")
        assert actions(client, resource="a") == ["CreateSession", "UpdateSession"]
        assert actions(client, resource="ab") == ["ForkSession"]
        assert actions(client, user_id="alice", action="CreateSession") == ["CreateSession"] * 2
        assert actions(client, user_id="bob") == []
        now = datetime.now(UTC)
        assert actions(client, since=now - timedelta(hours=1), resource="other") == ["CreateSession"]
        assert actions(client, until=now - timedelta(hours=1)) == []
        assert actions(client, since=now + timedelta(hours=1)) == []

    def test_a_filtered_list_is_read_in_pages(self, client: Any) -> None:
        for number in range(7):
            client.create_session(f"s{number}")
            client.update_session(f"s{number}", title="x")
        seen: list[str] = []
        cursor = None
        while True:
            page = client.list_audit(action="UpdateSession", limit=3, cursor=cursor)
            seen += [record.resource for record in page.records]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == [f"s{number}" for number in reversed(range(7))]

    def test_an_auditor_reads_the_audit_and_nothing_else(self, client: Any, connect_as: Callable[..., Any]) -> None:
        client.create_session("chat_001")
        auditor = connect_as("acme", "carol", "auditor")
        assert "CreateSession" in actions(auditor)
        assert auditor.verify_audit().is_intact
        for attempt in (
            lambda: auditor.create_session("mine"),
            auditor.list_sessions,
            lambda: auditor.admin.list_users("acme"),
            lambda: auditor.admin.erase_audit(["aud_1"]),
        ):
            with pytest.raises(PermissionDeniedError):
                attempt()
        assert connect_as("rival", "dave", "auditor").list_audit().records == []

    def test_every_line_is_sealed_when_it_is_read(self, client: Any) -> None:
        for number in range(20):
            client.create_session(f"s{number}")
        records = client.list_audit().records
        assert sum(record.action == "CreateSession" for record in records) == 20
        numbers = sorted(record.number for record in records)
        assert numbers == list(range(1, len(records) + 1))
        result = client.verify_audit()
        assert (result.problem, result.lines, result.unsealed) == (None, len(records), 0)

    def test_an_export_is_verified_without_the_database(self, client: Any, tmp_path: Path) -> None:
        for number in range(5):
            client.create_session(f"s{number}")
        head = client.export_audit(tmp_path / "audit.jsonl")
        result = verify_file(tmp_path / "audit.jsonl")
        assert (result.problem, result.last_number, result.link) == (None, head.number, head.link)
        assert list(tmp_path.iterdir()) == [tmp_path / "audit.jsonl"]

    def test_the_content_of_a_line_can_be_erased(self, client: Any, tmp_path: Path) -> None:
        client.create_session("secret_name")
        client.create_session("other")
        (line,) = client.list_audit(resource="secret_name").records
        assert client.admin.erase_audit([line.id]).numbers == [line.number]
        result = client.verify_audit()
        assert (result.problem, result.erased) == (None, 1)
        assert client.list_audit(resource="secret_name").records == []
        client.export_audit(tmp_path / "audit.jsonl")
        assert "secret_name" not in (tmp_path / "audit.jsonl").read_text()
        assert verify_file(tmp_path / "audit.jsonl").erased == 1
        erased = [record for record in client.list_audit().records if record.erased]
        assert [(record.number, record.user_id, record.action) for record in erased] == [(line.number, "", "")]

    def test_what_cannot_be_erased_is_named(self, client: Any) -> None:
        client.create_session("a")
        with pytest.raises(NotFoundError, match="aud_none"):
            client.admin.erase_audit(["aud_none"])
        (line,) = client.list_audit(resource="a").records
        client.admin.erase_audit([line.id])
        (erasure,) = client.list_audit(action="EraseAudit").records
        with pytest.raises(InvalidArgumentError, match="proves that others were erased"):
            client.admin.erase_audit([erasure.id])

    def test_an_export_of_sessions_is_audited(self, client: Any) -> None:
        client.create_session("a")
        client.record_export()
        client.record_export([f"s{number}" for number in range(12)])
        resources = [record.resource for record in client.list_audit(action="RecordExport").records]
        assert resources == ["s0 s1 s2 s3 s4 s5 s6 s7 s8 s9 and 2 more", "all sessions"]

    def test_the_operators_audit_is_verified(self, client: Any, connect_as: Callable[..., Any]) -> None:
        operator = connect_as("elsewhere", "alice", "root")
        operator.admin.create_account("newcomer")
        result = operator.verify_audit(operator=True)
        assert (result.problem, result.account_id) == (None, "*")
        assert result.lines >= 1
        with pytest.raises(PermissionDeniedError):
            connect_as("acme", "boss", "admin").verify_audit(operator=True)
        assert client.verify_audit().is_intact

    def test_no_text_of_a_message_is_in_the_audit(self, client: Any) -> None:
        client.add_message("chat_001", "user", "the secret word is xylophone")
        client.get_messages("chat_001", q="xylophone")
        client.update_session("chat_001", title="about a xylophone", metadata={"xylophone": 1})
        client.delete_session("chat_001")
        assert "xylophone" not in msgspec.json.encode(client.list_audit().to_dict()).decode()
