"""Authentication and tenant isolation over HTTP, with real keys."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

import holdfast
from holdfast.errors import (
    AlreadyExistsError,
    HoldfastError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from holdfast.ops.table import OPERATIONS, Operation
from holdfast.testing.examples import example_operation, without_varying_fields
from holdfast.testing.server import ServerProcess, running_server

ROOT_KEY = "the-operators-key"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("served"), root_api_key=ROOT_KEY) as server:
        yield server


@pytest.fixture(scope="module")
def operator(server: ServerProcess) -> Iterator[holdfast.Client]:
    with holdfast.connect(server.url, api_key=ROOT_KEY) as client:
        yield client


@pytest.fixture
def keys(operator: holdfast.Client) -> Iterator[dict[str, str]]:
    """The keys of four users: "admin", "alice" and "bob" of the account acme, and "rival", an alice of another account.

    The accounts are deleted after the test.
    """
    keys = {"admin": operator.admin.create_account("acme", "admin").user_key}
    keys |= {user: operator.admin.create_user("acme", user).user_key for user in ("alice", "bob")}
    operator.admin.create_account("rival")
    keys["rival"] = operator.admin.create_user("rival", "alice").user_key
    yield keys
    for account in ("acme", "rival"):
        operator.admin.delete_account(account)


@pytest.fixture
def connect(server: ServerProcess, keys: dict[str, str]) -> Iterator[Callable[[str], holdfast.Client]]:
    """Opens a client for a user of `keys`, or for a key itself."""
    opened: list[holdfast.Client] = []

    def connect(user_or_key: str) -> holdfast.Client:
        opened.append(holdfast.connect(server.url, api_key=keys.get(user_or_key, user_or_key)))
        return opened[-1]

    yield connect
    for client in opened:
        client.close()


def test_identity_comes_from_the_key_alone(server: ServerProcess, keys: dict[str, str]) -> None:
    with holdfast.connect(server.url, api_key=keys["alice"], account="rival", user="admin", role="root") as client:
        assert client.whoami().to_dict() == {
            "account_id": "acme",
            "user_id": "alice",
            "role": "user",
            "agent_id": "default",
        }
        assert client.session("s").uri == "viking://user/alice/sessions/s"


@pytest.mark.parametrize("header", ["X-API-Key", "Authorization"])
def test_a_key_is_accepted_in_either_header(server: ServerProcess, keys: dict[str, str], header: str) -> None:
    value = keys["alice"] if header == "X-API-Key" else f"Bearer {keys['alice']}"
    response = httpx2.get(f"{server.url}/api/v1/system/status", headers={header: value})
    assert (response.status_code, response.json()["result"]) == (200, {"initialized": True, "user": "alice"})


UNKNOWN_KEY_OF_ACME = "hf.YWNtZQ.0000000000000000.x"
"""In the format of a key: its second part is the name of the account in base64."""
KEY_OF_EVERY_ACCOUNT = "hf.Kg.x.y"
"""Its account is `*`, which is no account."""


@pytest.mark.parametrize("key", [None, "", "wrong", UNKNOWN_KEY_OF_ACME, KEY_OF_EVERY_ACCOUNT, "hf.....", "é"])
def test_a_request_without_a_valid_key_is_rejected(server: ServerProcess, key: str | None) -> None:
    headers = {} if key is None else {"X-API-Key": key.encode()}
    for path in ("/api/v1/sessions", "/api/v1/admin/accounts", "/metrics"):
        response = httpx2.get(f"{server.url}{path}", headers=headers)  # type: ignore[arg-type]
        assert (response.status_code, response.json()["error"]["code"]) == (401, "UNAUTHENTICATED")
    assert httpx2.get(f"{server.url}/health", headers=headers).status_code == 200  # type: ignore[arg-type]


def test_a_key_with_one_changed_character_is_rejected(
    connect: Callable[[str], holdfast.Client], keys: dict[str, str]
) -> None:
    changed = keys["alice"][:-1] + ("A" if keys["alice"][-1] != "A" else "B")
    with pytest.raises(UnauthenticatedError, match="is not valid"):
        connect(changed).list_sessions()


def test_the_root_key_gives_access_to_administration_but_not_to_tenant_data(
    operator: holdfast.Client, keys: dict[str, str]
) -> None:
    assert {"acme", "rival"} <= {account.account_id for account in operator.admin.list_accounts()}
    assert operator.system_health().is_healthy
    assert operator.wait_until_idle()["writes"].pending == 0
    for attempt in (operator.list_sessions, operator.memory_stats, lambda: operator.add_message("s", "user", "hi")):
        with pytest.raises(PermissionDeniedError, match="root key"):
            attempt()


def test_an_administrator_manages_only_the_own_account(connect: Callable[[str], holdfast.Client]) -> None:
    admin = connect("admin")
    created = admin.admin.create_user("acme", "carol")
    assert connect(created.user_key).whoami().user_id == "carol"
    assert [user.user_id for user in admin.admin.list_users("acme")] == ["admin", "alice", "bob", "carol"]
    for attempt in (
        lambda: admin.admin.create_user("rival", "carol"),
        lambda: admin.admin.list_users("rival"),
        lambda: admin.admin.list_users("nowhere"),
        lambda: admin.admin.rotate_key("rival", "alice"),
        admin.admin.list_accounts,
        lambda: admin.admin.create_account("mine"),
        lambda: connect("alice").admin.list_users("acme"),
    ):
        with pytest.raises(PermissionDeniedError):
            attempt()
    with pytest.raises(AlreadyExistsError, match="User carol already exists"):
        admin.admin.create_user("acme", "carol")


def test_a_changed_role_takes_effect_at_once(connect: Callable[[str], holdfast.Client]) -> None:
    alice = connect("alice")
    with pytest.raises(PermissionDeniedError):
        alice.admin.list_audit()
    assert connect("admin").admin.set_role("acme", "alice", "admin").role == "admin"
    assert alice.admin.list_audit().records
    connect("admin").admin.set_role("acme", "alice", "user")
    with pytest.raises(PermissionDeniedError):
        alice.admin.list_audit()


def test_rotating_a_key_revokes_all_earlier_keys(connect: Callable[[str], holdfast.Client]) -> None:
    admin, old = connect("admin"), connect("alice")
    more = connect(admin.admin.create_key("acme", "alice").user_key)
    assert old.whoami() == more.whoami()
    new = connect(admin.admin.rotate_key("acme", "alice").user_key)
    assert new.whoami().user_id == "alice"
    for revoked in (old, more):
        with pytest.raises(UnauthenticatedError):
            revoked.whoami()
    assert [key.user_id for key in admin.admin.list_keys("acme", "alice")] == ["alice"]


def test_revoking_a_key_takes_effect_at_once_and_leaves_other_keys_valid(
    connect: Callable[[str], holdfast.Client],
) -> None:
    admin = connect("admin")
    created_key = admin.admin.create_key("acme", "alice")
    second = connect(created_key.user_key)
    assert second.whoami().user_id == "alice"
    assert admin.admin.revoke_key("acme", "alice", created_key.key_id).key_id == created_key.key_id
    with pytest.raises(UnauthenticatedError):
        second.whoami()
    assert connect("alice").whoami().user_id == "alice"
    with pytest.raises(NotFoundError, match=f"Key {created_key.key_id} not found"):
        admin.admin.revoke_key("acme", "alice", created_key.key_id)


def test_a_key_expires_and_records_its_last_use(connect: Callable[[str], holdfast.Client]) -> None:
    admin = connect("admin")
    created_key = admin.admin.create_key("acme", "alice", expires_in_seconds=2)
    client = connect(created_key.user_key)
    assert client.whoami().user_id == "alice"
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        used = {key.key_id: key.last_used_at for key in admin.admin.list_keys("acme", "alice")}
        if used[created_key.key_id] is not None:
            break
    else:
        pytest.fail("the last use of the key was not recorded")
    while time.monotonic() < deadline:
        try:
            client.whoami()
        except UnauthenticatedError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("the key did not expire")
    assert next(user for user in admin.admin.list_users("acme") if user.user_id == "alice").key_count == 1


def test_a_deleted_users_sessions_are_kept_for_a_user_with_the_internal_id(
    connect: Callable[[str], holdfast.Client],
) -> None:
    admin, bob = connect("admin"), connect("bob")
    bob.add_message("s", "user", "keep this")
    removed = admin.admin.delete_user("acme", "bob")
    with pytest.raises(UnauthenticatedError):
        bob.list_sessions()
    recreated_bob = connect(admin.admin.create_user("acme", "bob").user_key)
    assert (list(recreated_bob.list_sessions()), recreated_bob.session("s").messages) == ([], [])
    restored = admin.admin.create_user("acme", "robert", internal_id=removed.internal_id)
    assert restored.internal_id == removed.internal_id
    assert [message.text for message in connect(restored.user_key).session("s").messages] == ["keep this"]
    with pytest.raises(NotFoundError, match="Removed user bob not found"):
        admin.admin.create_user("acme", "bobby", internal_id=removed.internal_id)


def test_deleting_an_account_deletes_its_keys(operator: holdfast.Client, server: ServerProcess) -> None:
    key = operator.admin.create_account("brief").user_key
    with holdfast.connect(server.url, api_key=key) as admin:
        admin.add_message("s", "user", "hi")
        operator.admin.delete_account("brief")
        with pytest.raises(UnauthenticatedError):
            admin.list_sessions()
    with pytest.raises(NotFoundError, match="Account brief not found"):
        operator.admin.delete_account("brief")
    with holdfast.connect(server.url, api_key=operator.admin.create_account("brief").user_key) as admin:
        assert list(admin.list_sessions()) == []
    operator.admin.delete_account("brief")


def test_keys_are_stored_only_as_hashes(tmp_path: Path) -> None:
    with (
        running_server(tmp_path, root_api_key=ROOT_KEY) as server,
        holdfast.connect(server.url, api_key=ROOT_KEY) as operator,
    ):
        key = operator.admin.create_account("acme").user_key
        with holdfast.connect(server.url, api_key=key) as admin:
            admin.add_message("s", "user", "hi")
        server.stop()
        log = server.log()
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    secret = key.rsplit(".", 1)[1]
    assert secret.encode() not in stored
    assert secret not in log
    assert ROOT_KEY not in log


@pytest.mark.parametrize("other_user", ["bob", "rival", "admin"])
@pytest.mark.parametrize(
    "cls",
    [op for op in OPERATIONS if "session_id" in op.__struct_fields__ and op.__name__ != "CreateSession"],
    ids=lambda cls: cls.__name__,
)
def test_over_http_a_session_of_another_user_looks_like_a_missing_one(
    connect: Callable[[str], holdfast.Client], cls: type[Operation[Any]], other_user: str
) -> None:
    owner, other = connect("alice"), connect(other_user)
    owner.add_message("theirs", "tool", parts=[holdfast.ToolPart(output="x" * 9_000)], id="m1")
    (result,) = owner.list_tool_results("theirs").tool_results
    before = owner.get_session("theirs"), owner.get_messages("theirs")

    def call(session_id: str) -> Any:
        op = example_operation(cls, session_id=session_id, tool_result_id=result.tool_result_id)
        try:
            seen = msgspec.to_builtins(other._transport.call(op))
        except HoldfastError as error:
            seen = error.to_dict()
        return without_varying_fields(seen, session_id)

    assert call("theirs") == call("missing")
    assert (owner.get_session("theirs"), owner.get_messages("theirs")) == before


def test_in_dev_mode_local_callers_are_identified_by_headers(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        with holdfast.connect(server.url) as client:
            assert client.whoami().to_dict() == {
                "account_id": "default",
                "user_id": "default",
                "role": "root",
                "agent_id": "default",
            }
        with holdfast.connect(server.url, account="acme", user="alice") as client:
            assert client.whoami().to_dict() == {
                "account_id": "acme",
                "user_id": "alice",
                "role": "root",
                "agent_id": "default",
            }
        health = httpx2.get(f"{server.url}/health").json()
        assert (health["auth_mode"], health["healthy"], health["user_id"]) == ("dev", True, "default")
        for headers in (
            {"Origin": "https://evil.example"},
            {"Origin": "http://["},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Host": "evil.example"},
        ):
            response = httpx2.get(f"{server.url}/api/v1/sessions", headers=headers)
            assert (response.status_code, response.json()["error"]["code"]) == (403, "PERMISSION_DENIED")
        for headers in ({"Origin": "http://localhost:3000"}, {"Host": f"localhost:{server.port}"}):
            assert httpx2.get(f"{server.url}/api/v1/sessions", headers=headers).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_dev_mode_refuses_to_listen_on_other_addresses_than_loopback(tmp_path: Path, host: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "serve", "--path", str(tmp_path), "--host", host, "--port", "0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "set root_api_key to serve others" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_in_trusted_mode_the_root_key_can_act_for_any_user(tmp_path: Path) -> None:
    with running_server(tmp_path, root_api_key=ROOT_KEY, auth_mode="trusted") as server:

        def connect_as(**identity: Any) -> holdfast.Client:
            return holdfast.connect(server.url, api_key=ROOT_KEY, **identity)

        with connect_as() as operator:
            operator.admin.create_account("acme")
        with connect_as(account="acme", user="alice") as client:
            assert client.whoami().to_dict() == {
                "account_id": "acme",
                "user_id": "alice",
                "role": "user",
                "agent_id": "default",
            }
            client.add_message("s", "user", "hi")
        with connect_as(account="acme", user="boss", role="admin") as client:
            assert client.admin.list_audit().records
        with (
            connect_as(account="nowhere", user="x") as client,
            pytest.raises(PermissionDeniedError, match="no account"),
        ):
            client.create_session()
        with connect_as(account="acme") as client, pytest.raises(HoldfastError, match="X-OpenViking-User"):
            client.list_sessions()
        wrong = holdfast.connect(server.url, api_key="wrong", account="acme", user="alice")
        with wrong as client, pytest.raises(UnauthenticatedError):
            client.list_sessions()


def test_the_operator_can_delete_the_default_account(operator: holdfast.Client) -> None:
    with pytest.raises(NotFoundError):
        operator.admin.delete_account("default")
    operator.admin.create_account("default")
    assert operator.admin.delete_account("default").account_id == "default"


def test_a_repeated_single_value_header_is_rejected(server: ServerProcess, keys: dict[str, str]) -> None:
    for name in ("X-API-Key", "X-OpenViking-User", "Idempotency-Key"):
        headers = [("X-API-Key", keys["alice"]), (name, keys["alice"]), (name, keys["bob"])]
        response = httpx2.get(f"{server.url}/api/v1/sessions", headers=headers)
        assert (response.status_code, response.json()["error"]["details"]["field"]) == (400, name.lower())


def test_an_empty_key_does_not_hide_one_in_the_other_header(server: ServerProcess, keys: dict[str, str]) -> None:
    headers = {"X-API-Key": "", "Authorization": f"Bearer {keys['alice']}"}
    assert httpx2.get(f"{server.url}/api/v1/sessions", headers=headers).status_code == 200


def test_the_operator_sees_the_tasks_of_all_accounts_but_no_session_data(tmp_path: Path) -> None:
    with (
        running_server(tmp_path, root_api_key=ROOT_KEY) as server,
        holdfast.connect(server.url, api_key=ROOT_KEY) as operator,
    ):
        keys = [operator.admin.create_account(name).user_key for name in ("acme", "rival")]
        for key in keys:
            with holdfast.connect(server.url, api_key=key) as client:
                client.add_message("s", "user", "a secret")
                client.wait_for_task(str(client.commit_session("s").task_id))
                (own,) = client.list_tasks()
                assert own.resource_id == "s"
        with holdfast.connect(server.url, api_key=keys[0]) as client:
            client.add_message("s", "user", "another one")
            client.wait_until_idle()
        metrics = httpx2.get(f"{server.url}/metrics", headers={"X-API-Key": ROOT_KEY}).text
        assert 'holdfast_tasks{status="failed"} 0.0' in metrics
        seen = operator.list_tasks(status="completed")
        assert {task.account_id for task in seen} == {"acme", "rival"}
        assert operator.get_task(seen[0].task_id) == seen[0]
        with pytest.raises(PermissionDeniedError):
            operator.get_session_context("s")
        with holdfast.connect(server.url, api_key=keys[0]) as client, pytest.raises(NotFoundError):
            client.get_task(next(task.task_id for task in seen if task.account_id == "rival"))


def test_the_operator_can_retry_and_cancel_failed_tasks_of_any_account(tmp_path: Path) -> None:
    unreachable_model = {"model_provider": "openai", "model_name": "x", "model_base_url": "http://127.0.0.1:9/v1"}
    with (
        running_server(tmp_path, root_api_key=ROOT_KEY, task_attempts=1, **unreachable_model) as server,
        holdfast.connect(server.url, api_key=ROOT_KEY) as operator,
        holdfast.connect(server.url, api_key=operator.admin.create_account("acme").user_key) as client,
    ):
        client.add_message("s", "user", "a secret")
        client.wait_for_task(str(client.commit_session("s").task_id))
        (own,) = client.list_tasks(status="failed")
        assert "127.0.0.1:9" in str(own.error)
        (seen,) = operator.list_tasks(status="failed")
        assert (seen.account_id, seen.error) == ("acme", own.error_code)
        assert operator.retry_task(own.task_id).status == "pending"
        assert client.wait_for_task(own.task_id).status == "failed"
        assert operator.cancel_task(own.task_id).status == "cancelled"
        assert client.list_archives("s")[0].state == "cancelled"
        assert {"RetryTask", "CancelTask"} <= {record.action for record in client.admin.list_audit().records}
        with pytest.raises(NotFoundError):
            operator.retry_task("missing_task")
