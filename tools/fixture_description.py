"""What a client reads from a fixture database, as JSON: the version that made it and later versions must agree."""

from typing import Any

import msgspec

from fixture_contents import FixtureTarget
from holdfast import Client
from holdfast.model.sessions import SessionRow
from holdfast.model.tree.files import FileEntry

SEARCHES = ("copper", "limpets", "plan deadline", "\u4f60\u597d")


def describe(target: FixtureTarget) -> dict[str, Any]:
    """Read everything that clients could read when the target's schema was the latest."""
    description: dict[str, Any] = {"users": {}}
    for account, user in target.owners:
        with target.connect(account, user) as client:
            description["users"][f"{account}/{user}"] = _describe_user(client, target.schema)
    if target.schema >= 2:
        with target.connect() as client:
            description["accounts"] = _plain(sorted(client.admin.list_accounts(), key=lambda it: it.account_id))
            description["members"] = _plain(client.admin.list_users("globex"))
            description["keys"] = _plain(client.admin.list_keys("globex", "gus"))
    return description


def _describe_user(client: Client, schema: int) -> dict[str, Any]:
    rows = client.list_sessions(limit=1_000)
    described: dict[str, Any] = {"list": _plain(list(rows))}
    own = client.list_sessions(limit=1_000, shared=False)
    described["sessions"] = {row.session_id: _describe_session(client, row.session_id, schema) for row in own}
    if schema >= 7:
        described["shared"] = [_describe_shared(client, row) for row in client.list_sessions(limit=1_000, shared=True)]
    if schema >= 3:
        tasks = [_plain(task) for task in client.list_tasks(limit=1_000)]
        described["tasks"] = [{name: task[name] for name in TASK_FIELDS} for task in tasks]
    if schema >= 9:
        described["files"] = [_describe_file(client, entry) for entry in _stored_entries(client)]
        described["skills"] = _plain(client.list_skills().skills)
    return described


def _stored_entries(client: Client) -> list[FileEntry]:
    roots = ("viking://resources", "viking://~/resources", "viking://~/skills")
    return [entry for root in roots for entry in client.ls(root, recursive=True)]


def _describe_file(client: Client, entry: FileEntry) -> dict[str, Any]:
    if entry.is_dir:
        return {"entry": _plain(entry)}
    versions = client.history(entry.uri).versions
    return {
        "entry": _plain(entry),
        "versions": _plain(versions),
        "texts": [client.read(entry.uri, version=each.version) for each in versions],
        "relations": _plain(client.relations(entry.uri)),
    }


TASK_FIELDS = (
    "task_id",
    "task_type",
    "user_id",
    "status",
    "stage",
    "resource_id",
    "created_at",
    "attempts",
    "error_code",
)


def _describe_session(client: Client, session_id: str, schema: int) -> dict[str, Any]:
    messages = client.get_messages(session_id).messages
    described = {
        "info": _plain(client.get_session(session_id)),
        "messages": _plain(messages),
        "live": [message.seq for message in client.get_messages(session_id, live=True).messages],
        "found": {q: [message.seq for message in client.get_messages(session_id, q=q).messages] for q in SEARCHES},
        "usage": _plain(client.list_usage(session_id)),
        "tool_results": [
            {**_plain(row), "content": client.read_tool_result(session_id, row.tool_result_id).content}
            for row in client.list_tool_results(session_id).tool_results
        ],
    }
    if schema >= 2:
        described["events"] = _plain(client.read_events(session_id, limit=1_000).events)
    if schema >= 3:
        described |= _describe_archives(client, session_id)
    if schema >= 7:
        described["collaborators"] = _plain(client.list_collaborators(session_id).collaborators)
        described["links"] = _plain(client.list_share_links(session_id).links)
    return described


def _describe_shared(client: Client, row: SessionRow) -> dict[str, Any]:
    messages = client.get_messages(row.session_id, owner=row.owner).messages
    return {"row": _plain(row), "messages": _plain(messages), "files": list(client.ls(row.uri, simple=True))}


def _describe_archives(client: Client, session_id: str) -> dict[str, Any]:
    archives = client.list_archives(session_id)
    done = [archive.archive_id for archive in archives if archive.state == "done"]
    context = client.get_session_context(session_id)
    return {
        "archives": _plain(archives),
        "done": [_plain(client.get_session_archive(session_id, archive_id)) for archive_id in done],
        "context": {
            "seqs": [message.seq for message in context.messages if message.role != "system"],
            "overview": context.latest_archive_overview,
        },
    }


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value)
