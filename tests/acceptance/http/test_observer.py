"""The observers: what each role sees, and the tables as published command lines read them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.errors import NotFoundError, PermissionDeniedError
from holdfast.model.system import ComponentName
from holdfast.testing.server import ServerProcess, running_server

ROOT_KEY = "the-operators-key"
COMPONENTS: tuple[ComponentName, ...] = ("vikingdb", "models", "retrieval", "filesystem", "lock")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("observer"), root_api_key=ROOT_KEY, auth_mode="api_key") as server:
        yield server


@pytest.fixture(scope="module")
def clients(server: ServerProcess) -> Iterator[dict[str, holdfast.Client]]:
    """An operator, the administrators of two accounts, and two users of the first with a committed session each."""
    operator = holdfast.connect(server.url, api_key=ROOT_KEY)
    acme = operator.admin.create_account("acme", "ann").user_key
    rival = operator.admin.create_account("rival", "rob").user_key
    admin = holdfast.connect(server.url, api_key=acme)
    users = {name: admin.admin.create_user("acme", name).user_key for name in ("alice", "bob")}
    opened = {name: holdfast.connect(server.url, api_key=key) for name, key in {**users, "rival": rival}.items()}
    opened |= {"operator": operator, "admin": admin}
    for number, name in enumerate(("alice", "bob", "rival")):
        client = opened[name]
        client.add_message("trip", "user", "We hike in Norway.")
        client.wait_for_task(client.commit_session("trip").task_id or "")
        client.wait_until_idle(30)
        for _ in range(number + 1):
            client.search("Norway")
        client.find("Norway")
    yield opened
    for client in opened.values():
        client.close()


def rows_of(text: str) -> list[list[str]]:
    """The cells of the rows that begin and end with a bar."""
    lines = [line.strip() for line in text.splitlines()]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line[:1] == line[-1:] == "|"]


def table_of(client: holdfast.Client, component: Any) -> list[list[str]]:
    return rows_of(str(client.observe(component).status))


@pytest.mark.parametrize("name", ["alice", "admin", "operator"])
def test_every_user_reads_the_tables_of_all_components(clients: dict[str, holdfast.Client], name: str) -> None:
    client = clients[name]
    header, *_, total = table_of(client, "queue")
    assert {"Pending", "In Progress", "Errors"} <= set(header)
    assert (total[0], total[header.index("Pending")]) == ("TOTAL", "0")
    header, *_, total = table_of(client, "vikingdb")
    assert {"Index Count", "Vector Count"} <= set(header)
    assert total[0] == "TOTAL"
    models = str(client.observe("models").status)
    for heading in ("VLM Models:", "Embedding Models:"):
        names, values, *_ = rows_of(models.partition(heading)[2])
        assert (names, len(values)) == (["Model", "Provider", "Status"], 3)
    assert client.observe("lock").status == "No active locks"
    assert {"Total Queries", "Zero-Result Rate"} <= {row[0] for row in table_of(client, "retrieval")}
    assert str(client.observe("filesystem").status).startswith("Mount: viking://")
    health = client.system_health()
    assert health.is_healthy
    for component in COMPONENTS:
        assert health.components[component].status == client.observe(component).status


def test_a_user_sees_their_own_counts_and_an_administrator_those_of_the_account(
    clients: dict[str, holdfast.Client],
) -> None:
    def counts(name: str) -> tuple[int, int, int]:
        status: dict[str, Any] = {
            part: clients[name].observe(part, format="json").status for part in ("queue", "vikingdb", "retrieval")
        }
        commits = next(queue for queue in status["queue"]["queues"] if queue["queue"] == "SessionCommit")
        return commits["processed"], status["vikingdb"]["documents"], status["retrieval"]["total_queries"]

    alice, bob, rival = counts("alice"), counts("bob"), counts("rival")
    assert alice[::2] == (1, 2)
    assert bob[::2] == (1, 3)
    assert alice[1] == bob[1] == rival[1] > 0
    assert counts("admin") == (2, 2 * alice[1], 5)
    assert counts("operator") == (3, 3 * alice[1], 9)


def test_the_objects_have_the_documented_fields(clients: dict[str, holdfast.Client]) -> None:
    status: dict[str, Any] = {
        name: part.status for name, part in clients["alice"].system_health(format="json").components.items()
    }
    assert status["queue"]["summary"].keys() == {
        "pending",
        "in_progress",
        "processed",
        "requeued",
        "errors",
        "total",
    }
    assert status["vikingdb"].keys() >= {"backend", "collection", "index", "vector_count"}
    assert status["models"].keys() == {"vlm", "embedding", "rerank"}
    assert status["models"]["embedding"][0].keys() == {"Model", "Provider", "Status"}
    assert status["lock"] == {"active_locks": 0, "waiting_locks": 0}
    assert status["retrieval"].keys() >= {"total_queries", "zero_result_rate", "avg_score", "avg_latency_ms"}
    assert 0 < status["retrieval"]["avg_score"] <= 1
    assert "viking://user" in status["filesystem"]["mounts"]


def test_waiting_returns_the_counts_of_each_queue(clients: dict[str, holdfast.Client]) -> None:
    counts = clients["alice"].wait_until_idle(10)
    assert (counts["writes"].pending, counts["tasks"].pending) == (0, 0)
    for queue in ("Embedding", "Semantic", "AddResource", "Reindex", "ContentWrite", "SessionCommit"):
        assert counts[queue].to_dict().keys() >= {"processed", "requeue_count", "error_count", "errors"}
    assert (counts["SessionCommit"].processed, counts["SessionCommit"].errors) == (1, [])


def test_an_administrator_reads_accounts_and_users(clients: dict[str, holdfast.Client]) -> None:
    operator, admin = clients["operator"].admin, clients["admin"].admin
    assert (admin.get_account("acme").user_count, operator.get_account("rival").user_count) == (3, 1)
    assert (admin.get_user("acme", "bob").role, admin.get_user("acme", "ann").role) == ("user", "admin")
    assert [account.account_id for account in operator.list_accounts(name="CM")] == ["acme"]
    assert [account.account_id for account in operator.list_accounts(limit=1, page=2)] == ["rival"]
    assert [user.user_id for user in admin.list_users("acme", role="user")] == ["alice", "bob"]
    assert [user.user_id for user in admin.list_users("acme", name="b", limit=5)] == ["bob"]
    assert [user.user_id for user in admin.list_users("acme", limit=2, page=2)] == ["bob"]
    assert admin.list_users("acme", name="%") == []
    assert (len(admin.list_users("acme", page=1)), len(admin.list_users("acme", page=2))) == (3, 0)
    with pytest.raises(NotFoundError):
        operator.get_account("nowhere")
    with pytest.raises(NotFoundError):
        admin.get_user("acme", "carol")
    with pytest.raises(PermissionDeniedError):
        admin.get_account("rival")


def test_consistency_reports_what_is_not_indexed(tmp_path: Path) -> None:
    with holdfast.connect(str(tmp_path), settings=holdfast.Settings(worker_threads=0)) as client:
        client.batch_add_messages("trip", [{"role": "user", "content": "hike"}] * 3)
        client.add_message("talk", "user", "hello")
        found = client.check_consistency()
        assert (found.ok, found.expected_count, found.missing_record_count) == (False, 4, 4)
        assert found.missing_records == [
            "viking://user/default/sessions/talk",
            "viking://user/default/sessions/trip",
        ]
        assert client.check_consistency("viking://session/trip").missing_record_count == 3
        assert client.check_consistency("viking://resources").ok
    with holdfast.connect(str(tmp_path)) as client:
        client.wait_until_idle(30)
        assert client.check_consistency("viking://~/sessions").ok
