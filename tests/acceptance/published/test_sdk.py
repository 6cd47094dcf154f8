"""Every method of the published Python SDK works with Holdfast, but for the exceptions below.

A case is a method, and steps as `take_steps` of the conftest describes. A step is an expression: `alice` is the client
of a user, `ann` that of an admin, and `root` that of the operator.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

Steps = list[tuple[str, Any]]

VERSION = "0.1.17"
SDK_PROCESS = Path(__file__).parent / "sdk_process.py"
TIMEOUT_SECONDS = 30.0

EXCEPTIONS = {
    "acl_": "Resources belong to the account or to one user. Sessions are shared with grants.",
    "admin_add_group_member": "There are no groups of users.",
    "admin_create_group": "There are no groups of users.",
    "admin_delete_group": "There are no groups of users.",
    "admin_list_group": "There are no groups of users.",
    "admin_remove_group_member": "There are no groups of users.",
    "admin_get_account_settings": "Its one setting is for acl.",
    "admin_get_agent_evolution": "Holdfast does not change agents.",
    "admin_set_account_agent_evolution": "Holdfast does not change agents.",
    "admin_set_agent_evolution": "Holdfast does not change agents.",
    "admin_migrate": "It converts data of older OpenViking servers.",
    "close": "It sends nothing.",
    "compile": "It talks to another server, an agent.",
    "get_experience_outcomes": "Holdfast does not change agents.",
    "list_experience_trajectories": "Holdfast does not change agents.",
    "preflight_openviking_asset": "There is no catalogue of assets.",
    "resolve_openviking_assets": "There is no catalogue of assets.",
    "snapshot": "Every file has versions of its own.",
    "supports_request_actor_peer": "It is a constant.",
}
"""The beginnings of the names of methods that are not tested, and why."""

NOTES = "viking://resources/notes"
TEA = f"{NOTES}/tea.md"
GUIDE = "viking://resources/guide"
SKILLS = "viking://user/alice/skills"
CHAT = "viking://user/alice/sessions/chat"
COMMITTED: Steps = [
    ("alice.add_message('chat', 'user', 'Deploy billing, never on Fridays.')", {"message_count": 1}),
    ("alice.commit_session('chat')", {"status": "accepted", "task_id": "$task"}),
]
ARCHIVED: Steps = [*COMMITTED, ("alice.wait_processed()", dict)]
WRITTEN: Steps = [
    (f"alice.mkdir('{NOTES}', 'What I drink')", ...),
    (f"alice.write('{TEA}', 'Green tea\\nneeds water', mode='create', wait=True)", {"written_bytes": 21}),
]
ADDED: Steps = [(f"alice.add_resource('guide.md', to='{GUIDE}', wait=True)", {"root_uri": GUIDE, "status": "success"})]
REVIEW: Steps = [("alice.add_skill('skills/review', wait=True)", {"name": "review", "uri": f"{SKILLS}/review"})]
WATCHED: Steps = [
    (
        f"alice.add_resource('$page', to='{GUIDE}', wait=True, options=AddResourceOptions(watch_interval=60))",
        {"root_uri": GUIDE},
    ),
    ("alice.list_watches()", {"tasks": [{"to_uri": GUIDE, "task_id": "$watch"}], "total": 1}),
]

SESSION: dict[str, Steps] = {
    "create_session": [("alice.create_session('chat')", {"session_id": "chat", "uri": CHAT})],
    "list_sessions": [
        ("alice.create_session('chat')", ...),
        ("alice.list_sessions()", [{"uri": CHAT, "is_dir": True}]),
    ],
    "get_session": [
        ("! alice.get_session('chat')", {"code": "NOT_FOUND"}),
        ("alice.get_session('chat', auto_create=True)", {"session_id": "chat", "last_commit_at": ""}),
    ],
    "session_exists": [("alice.session_exists('chat')", False)],
    "delete_session": [("alice.create_session('chat')", ...), ("alice.delete_session('chat')", None)],
    "add_message": [
        (
            "alice.add_message('chat', 'user', 'Hi', options=AddMessageOptions(telemetry=True, turn_id='t1'))",
            {"message_count": 1},
        ),
        ("alice.add_message('chat', 'user', parts=[TextPart('Hello')], peer_id='bob')", {"message_count": 2}),
    ],
    "batch_add_messages": [
        (
            "alice.batch_add_messages('chat', [{'role': 'user', 'content': 'A'}], {'telemetry': True})",
            {"added": 1},
        )
    ],
    "commit_session": [
        *COMMITTED,
        ("alice.commit_session('chat', options=CommitSessionOptions(event_tags=['a=b']))", {"status": "skipped"}),
    ],
    "update_session_config": [
        ("alice.create_session('chat')", ...),
        (
            "alice.update_session_config('chat', {'auto_commit_policy': {'keep_recent_count': 4}})",
            {"auto_commit_policy": {"keep_recent_count": 4}},
        ),
    ],
    "get_session_context": [
        *ARCHIVED,
        ("alice.get_session_context('chat', 900)", {"latest_archive_overview": "/never on Fridays/"}),
    ],
    "get_session_archive": [
        *ARCHIVED,
        ("alice.get_session_archive('chat', 'archive_001')", {"archive_id": "archive_001"}),
    ],
    "session": [("alice.session('chat').session_id", "chat")],
    "session.add_message": [("alice.session('chat').add_message('user', 'Hi')", {"message_count": 1})],
    "session.batch_add_messages": [
        ("alice.session('chat').batch_add_messages([{'role': 'user', 'content': 'A'}])", {"added": 1})
    ],
    "session.load": [("alice.create_session('chat')", ...), ("alice.session('chat').load()", {"message_count": 0})],
    "session.commit": [*COMMITTED, ("alice.session('chat').commit()", {"reason": "no_messages"})],
    "session.commit_async": [*COMMITTED, ("alice.session('chat').commit_async()", {"reason": "no_messages"})],
    "session.get_archive": [*ARCHIVED, ("alice.session('chat').get_archive('archive_001')", {"overview": str})],
    "session.get_session_context": [*ARCHIVED, ("alice.session('chat').get_session_context()", {"messages": []})],
    "session.delete": [("alice.create_session('chat')", ...), ("alice.session('chat').delete()", None)],
}
TASK: dict[str, Steps] = {
    "get_task": [
        *ARCHIVED,
        ("alice.get_task('$task')", {"status": "completed"}),
        ("alice.get_task('task_none')", None),
    ],
    "list_tasks": [*COMMITTED, ("alice.list_tasks(task_type='session_commit', limit=5)", [{"task_id": "$task"}])],
    "cancel_task": [*ARCHIVED, ("! alice.cancel_task('$task')", {"code": "FAILED_PRECONDITION"})],
    "list_watches": [("alice.list_watches(active_only=True)", {"total": 0}), *WATCHED],
    "get_watch": [*WATCHED, ("alice.get_watch('$watch')", {"task_id": "$watch", "to_uri": GUIDE, "is_active": True})],
    "update_watch": [
        *WATCHED,
        ("alice.update_watch('$watch', watch_interval=30, is_active=False, reason='r')", {"is_active": False}),
        (f"alice.update_watch(to_uri='{GUIDE}', is_active=True)", {"is_active": True}),
    ],
    "trigger_watch": [
        *WATCHED,
        ("alice.trigger_watch('$watch')", dict),
        (f"alice.trigger_watch(to_uri='{GUIDE}')", dict),
    ],
    "delete_watch": [*WATCHED, (f"alice.delete_watch(to_uri='{GUIDE}')", dict), ("alice.list_watches()", {"total": 0})],
}
TREE: dict[str, Steps] = {
    "mkdir": [*WRITTEN, (f"alice.stat('{NOTES}')", {"isDir": True})],
    "ls": [
        *WRITTEN,
        (f"alice.ls('{NOTES}')", [{"name": "tea.md", "uri": TEA, "size": 21, "isDir": False, "mode": int}]),
        (f"alice.ls('{NOTES}', simple=True, recursive=True)", [TEA]),
        (f"alice.ls('{NOTES}', output='agent', sort_by='mtime', offset=1, limit=2, include_abstract=True)", []),
        (f"alice.ls('{NOTES}', extra_fields=['count', 'id'], tags=['a=b'], include_tags=True)", []),
    ],
    "ls_page": [*WRITTEN, (f"alice.ls_page('{NOTES}', limit=1)", {"result": [{"uri": TEA}], "has_more": False})],
    "tree": [*WRITTEN, ("alice.tree('viking://resources', level_limit=2)", [{"rel_path": "notes/tea.md"}])],
    "tree_page": [*WRITTEN, ("alice.tree_page('viking://resources', limit=1)", {"has_more": True})],
    "stat": [*WRITTEN, (f"alice.stat('{TEA}')", {"name": "tea.md", "size": 21, "uri": TEA})],
    "mv": [
        *WRITTEN,
        (f"alice.mv('{TEA}', '{NOTES}/green.md')", None),
        (f"alice.read('{NOTES}/green.md')", "/Green/"),
        (f"! alice.stat('{TEA}')", {"code": "NOT_FOUND"}),
    ],
    "rm": [
        *WRITTEN,
        (f"alice.rm('{TEA}', wait=True)", None),
        (f"alice.rm('{NOTES}', recursive=True)", None),
        ("alice.ls('viking://resources')", []),
    ],
    "attrs": [*WRITTEN, (f"alice.attrs('{TEA}')", {"uri": TEA, "attrs": {"tags": []}})],
    "set_tags": [
        *WRITTEN,
        (f"alice.set_tags('{NOTES}', ['env=prod'], mode='append', recursive=True)", {"mode": "append"}),
        (f"alice.attrs('{TEA}')", {"attrs": {"tags": ["env=prod"]}}),
        (f"alice.set_tags('{TEA}', mode='clear')", {"mode": "clear"}),
    ],
    "read": [*WRITTEN, (f"alice.read('{TEA}', 1, 1)", "needs water")],
    "read_raw": [*WRITTEN, (f"alice.read_raw('{TEA}')", "Green tea\nneeds water")],
    "download_bytes": [*WRITTEN, (f"alice.download_bytes('{TEA}')", "Green tea\nneeds water")],
    "abstract": [*ADDED, (f"alice.abstract('{GUIDE}')", "/uide/"), ("alice.abstract('viking://')", str)],
    "overview": [*ADDED, (f"alice.overview('{GUIDE}')", "/uide/"), ("alice.overview('viking://user')", str)],
    "write": [
        *WRITTEN,
        (
            f"alice.write('{TEA}', 'x', options=WriteOptions(tags=['env=prod'], tag_mode='replace'))",
            {"mode": "replace"},
        ),
        (f"alice.write('{TEA}', 'y', mode='append', wait=True)", {"content_updated": True}),
        (f"alice.read('{TEA}')", "xy"),
    ],
    "batch_write": [
        *WRITTEN,
        (
            (
                f"alice.batch_write('{NOTES}', [{{'uri': '{NOTES}/a.md', 'content': 'A', 'mode': 'create'}},"
                f" {{'uri': '{TEA}', 'content': 'B', 'mode': 'replace'}}])"
            ),
            dict,
        ),
        (f"alice.read('{NOTES}/a.md') + alice.read('{TEA}')", "AB"),
        (
            (
                f"! alice.batch_write('{NOTES}', [{{'uri': '{TEA}', 'content': 'C', 'mode': 'replace',"
                f" 'expected_sha256': '{'0' * 64}'}}])"
            ),
            {"code": str},
        ),
        (f"alice.read('{TEA}')", "B"),
    ],
    "reindex": [
        *ADDED,
        (f"alice.reindex('{GUIDE}')", {"status": "completed"}),
        (f"alice.reindex('{GUIDE}', mode='semantic_and_vectors', wait=False, force=True)", {"status": "accepted"}),
    ],
    "check_consistency": [*ADDED, (f"alice.check_consistency('{GUIDE}')", {"ok": True, "missing_record_count": 0})],
}
RESOURCE: dict[str, Steps] = {
    "add_resource": [
        (
            (
                "alice.add_resource('guide.md', wait=True, options=AddResourceOptions(reason='For the office',"
                " instruction='Keep the codes', tags=['env=prod']))"
            ),
            {"root_uri": GUIDE, "errors": []},
        ),
        ("alice.find('blue safe', target_uri='viking://resources')", {"resources": [{"uri": f"/{GUIDE}/"}]}),
        ("alice.add_resource('docs', parent='viking://resources', wait=True)", {"root_uri": "viking://resources/docs"}),
        ("alice.read('viking://resources/docs/more/notes.txt')", "/oil every spring/"),
        ("alice.add_resource('guide.md', to='viking://resources/other')", {"task_id": str}),
        ("! alice.add_resource('neither a file nor an address')", {"code": "/INVALID/"}),
    ],
}
SKILL: dict[str, Steps] = {
    "add_skill": [
        *REVIEW,
        ("alice.add_skill({'name': 'cook', 'description': 'Cooks', 'content': '# Cook'}, wait=True)", {"name": "cook"}),
        (
            (
                "alice.add_skill({'name': 'add', 'description': 'Adds', 'inputSchema': {'type': 'object',"
                " 'properties': {'a': {'type': 'number'}}}}, wait=True)"
            ),
            {"name": "add", "status": "success"},
        ),
        ("alice.add_skill('---\\nname: sew\\ndescription: Sews\\n---\\nSew it.\\n', wait=True)", {"name": "sew"}),
        ("! alice.add_skill({})", {"code": "INVALID_ARGUMENT"}),
    ],
    "list_skills": [*REVIEW, ("alice.list_skills()", {"skills": [{"name": "review", "uri": f"{SKILLS}/review"}]})],
    "find_skills": [*REVIEW, ("alice.find_skills('pull requests', limit=3)", {"skills": [{"name": "review"}]})],
    "get_skill": [
        *REVIEW,
        (
            "alice.get_skill('review', include_content=True, include_integrity=True)",
            {"content": "/Read it./", "content_sha256": str, "files": ["/checklist.txt/"]},
        ),
        ("alice.get_skill('review', level=1)", {"overview": str}),
        ("! alice.get_skill('missing')", {"code": "NOT_FOUND"}),
    ],
    "update_skill": [
        *REVIEW,
        (
            "alice.update_skill('review', {'name': 'review', 'description': 'Better', 'content': '# B'}, wait=True)",
            {"action": "update"},
        ),
        ("alice.get_skill('review')", {"description": "Better"}),
    ],
    "validate_skill": [
        ("alice.validate_skill({'name': 'review', 'description': 'd', 'content': 'x'})", {"valid": True}),
        ("alice.validate_skill('no front matter', strict=True)", {"valid": False, "errors": [{"message": str}]}),
    ],
    "delete_skill": [
        *REVIEW,
        ("alice.delete_skill('review')", {"name": "review"}),
        ("alice.list_skills()", {"skills": []}),
    ],
}
PACK: dict[str, Steps] = {
    "export_ovpack": [*ADDED, (f"alice.export_ovpack('{GUIDE}', 'guide.ovpack')", "/guide.ovpack/")],
    "import_ovpack": [
        *ADDED,
        (f"alice.export_ovpack('{GUIDE}', 'guide.ovpack', include_vectors=True)", str),
        ("alice.mkdir('viking://resources/copies')", None),
        ("alice.import_ovpack('guide.ovpack', 'viking://resources/copies')", "viking://resources/copies/guide"),
        ("alice.import_ovpack('guide.ovpack', 'viking://resources/copies', on_conflict='skip')", str),
    ],
    "backup_ovpack": [*ADDED, ("alice.backup_ovpack('all.ovpack')", "/all.ovpack/")],
    "restore_ovpack": [
        *ADDED,
        ("alice.backup_ovpack('all.ovpack')", str),
        ("alice.restore_ovpack('all.ovpack', on_conflict='overwrite')", "viking://"),
    ],
}
SEARCH: dict[str, Steps] = {
    "find": [
        *ADDED,
        (
            (
                "alice.find('blue safe', options=FindOptions(context_type='resource', level=[0, 1, 2], since='7d',"
                " read_content=True, include_provenance=True, filter={}))"
            ),
            {"resources": [{"content": str, "score": float}], "memories": [], "skills": []},
        ),
    ],
    "search": [
        *ADDED,
        ("alice.search('blue safe', options=SearchOptions(search_type='keywords'))", {"resources": [{"level": int}]}),
    ],
    "search_context": [
        *ADDED,
        (
            "alice.search_context('blue safe', options=SearchContextOptions(max_tokens=500, dedup_turns=2))",
            {"rendered": "/4711/", "entries": [{"uri": f"/{GUIDE}/"}], "stats": dict},
        ),
    ],
    "grep": [
        *WRITTEN,
        (f"alice.grep('{NOTES}', 'GREEN', case_insensitive=True)", {"matches": [{"line": 1, "uri": TEA}]}),
    ],
    "glob": [
        *WRITTEN,
        ("alice.glob('**/*.md')", {"matches": [TEA]}),
        (
            f"alice.glob('*.md', '{NOTES}', extra_fields=['size'], include_tags=True)",
            {"matches": [{"uri": TEA, "size": 21}]},
        ),
    ],
}
ADMIN: dict[str, Steps] = {
    "admin_create_account": [("root.admin_create_account('$account-b', 'bob')", {"user_key": str})],
    "admin_delete_account": [("root.admin_delete_account('$account')", dict)],
    "admin_get_account": [("ann.admin_get_account('$account')", {"account_id": "$account"})],
    "admin_list_accounts": [
        ("root.admin_list_accounts()", [{"account_id": "$account"}]),
        ("root.admin_list_accounts(name='$account', limit=1)", [{"account_id": "$account"}]),
        ("root.admin_list_accounts(query='nobody')", []),
    ],
    "admin_register_user": [("ann.admin_register_user('$account', 'bob')", {"user_key": str})],
    "admin_remove_user": [("ann.admin_remove_user('$account', 'alice')", dict)],
    "admin_get_user": [("ann.admin_get_user('$account', 'alice')", {"user_id": "alice", "role": "user"})],
    "admin_list_users": [
        ("ann.admin_list_users('$account')", [{"user_id": "alice"}, {"user_id": "ann"}]),
        ("ann.admin_list_users('$account', name='a*', role='admin', limit=5)", [{"user_id": "ann"}]),
        ("ann.admin_list_users('$account', query='nobody')", []),
    ],
    "admin_set_role": [("ann.admin_set_role('$account', 'alice', 'admin')", {"role": "admin"})],
    "admin_regenerate_key": [("ann.admin_regenerate_key('$account', 'alice')", {"user_key": str})],
}
COMPONENT = {"is_healthy": True, "has_errors": False}
OBSERVER: dict[str, Steps] = {
    "initialize": [("alice.initialize()", None)],
    "health": [("alice.health()", True)],
    "is_healthy": [("alice.is_healthy()", True)],
    "wait_processed": [("alice.wait_processed()", {"Semantic": {"processed": int, "error_count": 0}})],
    "get_status": [
        ("alice.get_status()", {"is_healthy": True, "components": {"queue": {"status": str}}}),
        ("alice.get_status(format='json')", {"components": {"queue": {"status": {"queues": list}}}}),
    ],
    "queue_status": [
        ("alice.queue_status()", {**COMPONENT, "status": "/TOTAL/"}),
        ("alice.queue_status(format='json')", {**COMPONENT, "status": {"queues": list, "summary": dict}}),
    ],
    "vikingdb_status": [("alice.vikingdb_status(format='table')", {**COMPONENT, "status": "/Vector Count/"})],
    "models_status": [("alice.models_status(format='json')", {"status": {"vlm": list, "embedding": list}})],
    "observer": [("alice.observer.is_healthy()", True)],
    "observer.is_healthy": [("ann.observer.is_healthy()", True)],
    "observer.queue": [("alice.observer.queue", COMPONENT)],
    "observer.vikingdb": [("alice.observer.vikingdb", COMPONENT)],
    "observer.models": [("alice.observer.models", COMPONENT)],
    "observer.system": [("alice.observer.system", {"is_healthy": True})],
}
CASES = SESSION | TASK | TREE | RESOURCE | SKILL | PACK | SEARCH | ADMIN | OBSERVER
NOT_YET = {
    "get_session",
    *("attrs", "set_tags"),
    *("download_bytes", "abstract", "overview", "batch_write", "reindex"),
    "check_consistency",
    *("add_skill", "list_skills", "find_skills", "get_skill", "update_skill", "validate_skill"),
    "delete_skill",
    *("find", "search", "search_context", "grep", "glob"),
    *("admin_get_account", "admin_list_accounts", "admin_get_user", "admin_list_users"),
    *("is_healthy", "wait_processed", "get_status", "queue_status", "vikingdb_status", "models_status"),
    *("observer", "observer.queue", "observer.vikingdb", "observer.models", "observer.system"),
}
"""The cases that fail today. A case that works has to leave this list: its test fails if it succeeds."""


class SdkProcess:
    """The SDK in a process of its own environment."""

    def __init__(self, python: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [python, SDK_PROCESS], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        watchdog = Timer(TIMEOUT_SECONDS, self._process.kill)
        watchdog.start()
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
            return answer
        finally:
            watchdog.cancel()

    def close(self) -> None:
        self._process.communicate(timeout=TIMEOUT_SECONDS)


@pytest.fixture(scope="module")
def sdk_process(
    sdk_python: Callable[[str], Path],
    client_environment: Callable[[Path], dict[str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SdkProcess]:
    process = SdkProcess(sdk_python(VERSION), client_environment(tmp_path_factory.mktemp("home")))
    yield process
    process.close()


@pytest.fixture
def call_sdk(
    sdk_process: SdkProcess, api_key_server: str, keys: dict[str, str], local_files: Path
) -> Callable[[str], tuple[bool, Any]]:
    """Evaluates an expression with the clients of the users, in a folder with files to add."""
    connected = sdk_process.ask(connect={"url": api_key_server, "keys": keys, "folder": str(local_files)})
    assert connected == {"result": None}

    def call(expression: str) -> tuple[bool, Any]:
        answer = sdk_process.ask(call=expression)
        return "result" in answer, answer.get("result", answer.get("error"))

    return call


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.xfail] if name in NOT_YET else []) for name in CASES],
)
def test_a_method_works(
    name: str,
    call_sdk: Callable[[str], tuple[bool, Any]],
    take_steps: Callable[..., None],
    account: str,
    page_url: str,
) -> None:
    take_steps(call_sdk, CASES[name], {"account": account, "page": page_url})


def test_every_method_is_tested_or_an_exception(sdk_process: SdkProcess) -> None:
    found = set(sdk_process.ask(methods=True)["result"])
    excepted = {name for name in found if name.startswith(tuple(EXCEPTIONS))}
    assert len(found) > 100
    assert found - excepted == set(CASES) - excepted
    assert not [name for name in CASES if name in excepted]
    assert set(CASES) >= NOT_YET
