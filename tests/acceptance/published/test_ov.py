"""Every command of the published program `ov` works with Holdfast, but for the exceptions below.

A case is a command, and steps as `take_steps` of the conftest describes. A step begins with `@ann` if the admin takes
it, or `@root` for the operator; else alice takes it, who is a user.
"""

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Steps = list[tuple[str, Any]]

EXCEPTIONS = {
    "acl": "Resources belong to the account or to one user. Sessions are shared with grants.",
    "admin add-group-member": "There are no groups of users.",
    "admin create-group": "There are no groups of users.",
    "admin delete-group": "There are no groups of users.",
    "admin list-group-members": "There are no groups of users.",
    "admin list-groups": "There are no groups of users.",
    "admin remove-group-member": "There are no groups of users.",
    "admin migrate": "It converts data of older OpenViking servers.",
    "admin set-account-settings": "Its one setting is for acl.",
    "chat": "It talks to another server, an agent.",
    "compile": "It talks to another server, an agent.",
    "config": "It changes files of the program only.",
    "language": "It changes files of the program only.",
    "privacy": "Holdfast keeps no settings of this kind.",
    "snapshot": "Every file has versions of its own.",
    "system crypto": "It writes a local file only.",
    "tui": "It needs a terminal.",
}
"""The commands that are not tested, and why. A name stands for its subcommands, too."""

NOTES = "viking://resources/notes"
GUIDE = "viking://resources/guide"
SKILLS = "viking://user/alice/skills"
CHAT = "viking://user/alice/sessions/chat"
COMMITTED: Steps = [
    ("session add-message chat --role user --content 'Deploy billing, never on Fridays.'", {"message_count": 1}),
    ("session commit chat", {"status": "accepted", "archived": True, "task_id": "$task"}),
]
ARCHIVED: Steps = [*COMMITTED, ("wait", dict)]
WRITTEN: Steps = [
    (f"mkdir {NOTES}", {"uri": NOTES}),
    (f"write {NOTES}/tea.md --content 'Green tea\nneeds water' --mode create --wait", {"written_bytes": 21}),
]
ADDED: Steps = [(f"add-resource guide.md --to {GUIDE} --wait", {"root_uri": GUIDE, "status": "success"})]
REVIEW: Steps = [("add-skill skills/review --wait -y", {"name": "review", "uri": f"{SKILLS}/review"})]
WATCHED: Steps = [
    (f"add-resource $page --to {GUIDE} --watch-interval 60 --wait", {"root_uri": GUIDE}),
    ("task watch ls", {"tasks": [{"to_uri": GUIDE, "task_id": "$watch"}], "total": 1}),
]

SESSION: dict[str, Steps] = {
    "session new": [
        ("session new", {"session_id": str}),
        ("session new --session-id chat --event-tags env=prod", {"session_id": "chat", "uri": CHAT}),
        ("! session new --session-id chat", {"code": "ALREADY_EXISTS"}),
    ],
    "session list": [
        ("session list", []),
        ("session new --session-id chat", ...),
        ("session list", [{"session_id": "chat", "uri": CHAT, "is_dir": True}]),
    ],
    "session get": [
        ("! session get chat", {"code": "NOT_FOUND"}),
        ("session new --session-id chat", ...),
        ("session get chat", {"session_id": "chat", "message_count": 0, "last_commit_at": ""}),
    ],
    "session add-message": [
        ("session add-message chat --role user --content Hello --peer-id bob", {"message_count": 1}),
        ("! session add-message chat --role user --content Hello --peer-id ../bob", {"code": "INVALID_ARGUMENT"}),
    ],
    "session add-messages": [
        ("""session add-messages chat '[{"role":"user","content":"A"},{"role":"user","content":"B"}]'""", {"added": 2}),
    ],
    "session commit": [
        *COMMITTED,
        ("session commit chat --event-tags env=prod", {"status": "skipped", "reason": "no_messages"}),
        ("session commit chat --no-event-tags", {"archived": False}),
    ],
    "session get-session-context": [
        *ARCHIVED,
        ("session get-session-context chat --token-budget 900", {"latest_archive_overview": "/never on Fridays/"}),
    ],
    "session get-session-archive": [
        *ARCHIVED,
        ("session get-session-archive chat archive_001", {"archive_id": "archive_001", "messages": [{"role": "user"}]}),
    ],
    "session config set": [
        ("session new --session-id chat", ...),
        (
            """session config set chat --auto-commit-policy-json '{"message_count_threshold": 9}'""",
            {"auto_commit_policy": {"message_count_threshold": 9}},
        ),
        ("session config set chat --no-auto-commit --event-tags env=prod", {"session_id": "chat"}),
        ("session config set chat --no-event-tags", {"session_id": "chat"}),
    ],
    "session delete": [
        ("session new --session-id chat", ...),
        ("session delete chat", {"session_id": "chat"}),
        ("session list", []),
    ],
    "add-memory": [
        ("add-memory 'I like tea'", "OK"),
        ("""add-memory '[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"}]'""", "OK"),
    ],
}
TASK: dict[str, Steps] = {
    "task status": [*ARCHIVED, ("task status $task", {"status": "completed", "task_type": "session_commit"})],
    "task list": [
        *COMMITTED,
        ("task list", [{"task_id": "$task"}]),
        ("task list --task-type session_commit --status failed", []),
        ("@ann --sudo task list", list),
    ],
    "task cancel": [*ARCHIVED, ("! task cancel $task", {"code": "FAILED_PRECONDITION"})],
    "task watch ls": [
        ("task watch ls", {"tasks": [], "total": 0}),
        *WATCHED,
        ("task watch ls --active-only", {"total": 1}),
    ],
    "task watch show": [
        *WATCHED,
        ("task watch show $watch", {"task_id": "$watch", "to_uri": GUIDE, "watch_interval": ..., "is_active": True}),
        (f"task watch show {GUIDE}", "/$watch/"),
    ],
    "task watch pause": [*WATCHED, ("task watch pause $watch", {"is_active": False})],
    "task watch resume": [
        *WATCHED,
        (f"task watch pause {GUIDE}", {"is_active": False}),
        ("task watch ls --active-only", {"total": 0}),
        (f"task watch resume {GUIDE}", {"is_active": True}),
    ],
    "task watch update": [
        *WATCHED,
        (f"task watch update {GUIDE} --interval 30 --reason daily", {"watch_interval": 30.0, "reason": "daily"}),
    ],
    "task watch trigger": [*WATCHED, ("task watch trigger $watch", dict), (f"task watch trigger {GUIDE}", dict)],
    "task watch rm": [*WATCHED, (f"task watch rm {GUIDE}", dict), ("task watch ls", {"total": 0})],
}
FILE: dict[str, Steps] = {
    "mkdir": [
        (f"mkdir {NOTES}/deep/er --description 'What I drink'", {"uri": f"{NOTES}/deep/er"}),
        (f"stat {NOTES}/deep/er", {"isDir": True, "name": "er"}),
    ],
    "ls": [
        *WRITTEN,
        ("ls", [{"uri": "viking://resources", "isDir": True}, {"uri": "viking://user"}]),
        ("ls viking://~/", [{"uri": "viking://user/alice/sessions"}]),
        (f"ls {NOTES}", [{"uri": f"{NOTES}/tea.md", "isDir": False, "size": 21}]),
        (f"ls {NOTES} -s -r", [f"{NOTES}/tea.md"]),
        (f"ls {NOTES} --tags env=prod", []),
        (f"ls {NOTES} --sort-by mtime --sort-order desc --offset 1 --limit 5 --include-overview=true", []),
        (f"-o table ls {NOTES} -f name,uri,type,size,mode,mtime,locked,count,tags", ["/tea.md/", "/21 B/", "/-rw/"]),
    ],
    "tree": [
        *WRITTEN,
        ("tree viking://resources -L 2 -n 50", [{"rel_path": "notes"}, {"rel_path": "notes/tea.md"}]),
        ("-o table tree viking://resources -s --directories-only", ["/notes/", "no /tea.md/"]),
        ("tree viking://resources --include-overview=true", [{"rel_path": "notes", "overview": str}]),
        ("-o table tree viking://resources -f name,size,tags", ["/tea.md/"]),
    ],
    "stat": [*WRITTEN, (f"stat {NOTES}/tea.md", {"name": "tea.md", "size": 21, "isDir": False, "modTime": str})],
    "rm": [
        *WRITTEN,
        (f"rm {NOTES}/tea.md --wait", {"uri": f"{NOTES}/tea.md", "estimated_deleted_count": 1}),
        (f"! stat {NOTES}/tea.md", {"code": "NOT_FOUND"}),
        (f"rm -r {NOTES}", {"uri": NOTES}),
        ("ls viking://resources", []),
        ("! rm viking://temp/x", {"code": "INVALID_URI"}),
    ],
    "cp": [
        *WRITTEN,
        (f"cp {NOTES}/tea.md {NOTES}/copy.md", {"from": f"{NOTES}/tea.md", "to": f"{NOTES}/copy.md"}),
        (f"cp -r {NOTES} viking://resources/other", {"to": "viking://resources/other"}),
        ("read viking://resources/other/copy.md", "/Green tea/"),
    ],
    "mv": [
        *WRITTEN,
        (f"mv {NOTES} viking://resources/drinks", {"from": NOTES, "to": "viking://resources/drinks"}),
        ("read viking://resources/drinks/tea.md", "/Green tea/"),
        (f"! stat {NOTES}", {"code": "NOT_FOUND"}),
    ],
    "attrs get": [
        *WRITTEN,
        (f"attrs get {NOTES}/tea.md", {"uri": f"{NOTES}/tea.md", "attrs": {"tags": []}}),
        (f"attrs get {NOTES}/tea.md tags", []),
    ],
    "attrs set-tags": [
        *WRITTEN,
        (f"attrs set-tags {NOTES}/tea.md --tags env=prod,team=search", {"tags_updated": True, "success_count": 1}),
        (f"attrs get {NOTES}/tea.md tags", ["env=prod", "team=search"]),
        (f"ls {NOTES} --tags env=prod", [{"uri": f"{NOTES}/tea.md", "tags": ["env=prod"]}]),
    ],
    "set-tags": [
        *WRITTEN,
        (f"set-tags {NOTES} --tags env=prod --recursive", {"mode": "replace", "failed_count": 0}),
        (f"set-tags {NOTES}/tea.md --tags env=test,team=search --mode append", {"mode": "append"}),
        (f"attrs get {NOTES}/tea.md tags", ["env=test", "team=search"]),
        (f"set-tags {NOTES}/tea.md --mode clear", {"mode": "clear"}),
        (f"attrs get {NOTES}/tea.md tags", []),
    ],
    "get": [*WRITTEN, (f"get {NOTES}/tea.md tea.md", "/Downloaded 21 bytes/"), ("add-resource tea.md --wait", dict)],
}
CONTENT: dict[str, Steps] = {
    "write": [
        *WRITTEN,
        (f"! write {NOTES}/tea.md --content again --mode create", {"code": "ALREADY_EXISTS"}),
        (f"write {NOTES}/tea.md --content ' and time' --append", {"mode": "append", "content_updated": True}),
        (f"read {NOTES}/tea.md", "Green tea\nneeds water and time"),
        (f"write {NOTES}/tea.md --from-file guide.md --tags env=prod --tag-mode replace --wait", {"mode": "replace"}),
        (
            f"write {NOTES}/tea.md --content new --processing-mode vectors_only --edit-source manual",
            {"written_bytes": 3},
        ),
        ("session new --session-id chat", dict),
        (f"! write {CHAT}/messages.jsonl --content new", {"code": "/INVALID/"}),
    ],
    "read": [
        *WRITTEN,
        (f"read {NOTES}/tea.md", "Green tea\nneeds water"),
        (f"read {NOTES}/tea.md --offset 1 --limit 1", "needs water"),
        (f"! read {NOTES}/coffee.md", {"code": "NOT_FOUND"}),
    ],
    "abstract": [
        *ADDED,
        (f"abstract {GUIDE}", "/uide/"),
        *[(f"abstract {uri}", str) for uri in ("viking://", "viking://resources", "viking://user", "viking://~/")],
    ],
    "overview": [
        *ADDED,
        (f"overview {GUIDE}", "/uide/"),
        *[(f"overview {uri}", str) for uri in ("viking://", "viking://resources", "viking://user", "viking://~/")],
    ],
    "reindex": [
        *ADDED,
        (f"reindex {GUIDE}", {"status": "completed", "uri": GUIDE}),
        (
            f"reindex {GUIDE} --mode semantic_and_vectors --wait false --force",
            {"status": "accepted", "task_id": "$task"},
        ),
        ("task status $task", {"task_id": "$task"}),
    ],
}
RESOURCE: dict[str, Steps] = {
    "add-resource": [
        ("add-resource guide.md --wait --reason 'For the office' --tags env=prod", {"root_uri": GUIDE, "errors": []}),
        (f"read {GUIDE}/guide.md", "/4711/"),
        ("find 'blue safe'", {"resources": [{"context_type": "resource", "uri": f"/{GUIDE}/"}]}),
        ("add-resource docs", {"task_id": "$task", "root_uri": "viking://resources/docs"}),
        ("wait", dict),
        ("task status $task", {"status": "completed", "task_type": "add_resource"}),
        ("read viking://resources/docs/more/notes.txt", "/oil every spring/"),
        (
            "add-resource docs -p viking://resources/team/x --include '*.md' --exclude '*.tmp' --wait",
            {"root_uri": "viking://resources/team/x/docs"},
        ),
        ("! stat viking://resources/team/x/docs/more/notes.txt", {"code": "NOT_FOUND"}),
        ("! add-resource guide.md --parent viking://resources/nowhere", {"code": "NOT_FOUND"}),
        ("! add-resource guide.md --to viking://session/x", {"code": "/INVALID/"}),
    ],
}
SKILL: dict[str, Steps] = {
    "add-skill": [
        ("add-skill skills/review -l", "/review/"),
        ("skills list", {"skills": []}),
        *REVIEW,
        (f"read {SKILLS}/review/checklist.txt", "/names/"),
        ("find 'reviews of pull requests'", {"skills": [{"context_type": "skill", "uri": f"/{SKILLS}/review/"}]}),
    ],
    "skills add": [
        ("skills add skills -s review -y --wait", "/review/"),
        ("skills list", {"skills": [{"name": "review"}]}),
    ],
    "skills list": [
        *REVIEW,
        ("skills list", {"skills": [{"name": "review", "uri": f"{SKILLS}/review", "description": "/pull requests/"}]}),
        ("skills list -n 5 -p viking://agent/skills", {"skills": [{"name": "review"}]}),
    ],
    "skills find": [
        *REVIEW,
        ("skills find 'pull requests' -n 3 -L 0,1,2", {"skills": [{"name": "review", "score": float}]}),
    ],
    "skills show": [
        *REVIEW,
        ("skills show review", {"name": "review", "content": "/Read it./", "description": "Reviews pull requests"}),
        ("skills show review -L 1 -f --source", {"source": {"type": "local"}, "files": ["/checklist.txt/"]}),
        ("! skills show missing", {"code": "NOT_FOUND"}),
    ],
    "skills update": [*REVIEW, ("skills update -y", {"updated": [], "skipped": [{"name": "review"}]})],
    "skills remove": [
        *REVIEW,
        ("skills remove review -y", {"removed_names": ["review"]}),
        ("skills list", {"skills": []}),
        *REVIEW,
        ("skills remove --all -y", {"total": 1}),
    ],
    "skills validate": [("skills validate skills/review --strict", {"valid": True, "name": "review"})],
}
PACK: dict[str, Steps] = {
    "export": [*ADDED, (f"export {GUIDE} guide.ovpack", {"file": "guide.ovpack"})],
    "import": [
        *ADDED,
        (f"export {GUIDE} guide.ovpack --include-vectors", {"file": "guide.ovpack"}),
        ("mkdir viking://resources/copies", dict),
        ("import guide.ovpack viking://resources/copies", {"uri": "viking://resources/copies/guide"}),
        ("read viking://resources/copies/guide/guide.md", "/4711/"),
        ("! import guide.ovpack viking://resources/copies", {"code": str}),
        ("import guide.ovpack viking://resources/copies --on-conflict overwrite --vector-mode recompute", {"uri": str}),
    ],
    "backup": [*ADDED, ("backup all.ovpack", {"file": "all.ovpack"})],
    "restore": [
        *ADDED,
        ("backup all.ovpack", {"file": "all.ovpack"}),
        (f"rm -r {GUIDE}", dict),
        ("restore all.ovpack --on-conflict skip", {"uri": "viking://"}),
        (f"read {GUIDE}/guide.md", "/4711/"),
    ],
}
SEARCH: dict[str, Steps] = {
    "find": [
        *ADDED,
        (f"find safe -u {GUIDE} -n 3 -L 0,1,2 --context-type resource --after 7d --read-content", {"skills": []}),
        ("find 'blue safe'", {"resources": [{"score": float, "level": int, "abstract": str}], "memories": []}),
        ("find 'blue safe' --tags env=prod", {"resources": [], "total": 0}),
        ("-o table find 'blue safe'", [f"/{GUIDE}/", "/resource/"]),
    ],
    "search": [
        *ADDED,
        ("session add-message chat --role user --content 'What opens the blue safe?'", dict),
        ("search 'opens with' --session-id chat", {"resources": [{"uri": f"/{GUIDE}/"}], "query_plan": dict}),
        ("search 'blue safe' --search-type keywords -u viking://resources", {"resources": [{"level": int}]}),
        ("-o table search 'blue safe' --mode context", ["/4711/"]),
    ],
    "grep": [
        *WRITTEN,
        (f"grep GREEN -u {NOTES} -i", {"match_count": 1, "matches": [{"line": 1, "uri": f"{NOTES}/tea.md"}]}),
        (
            f"grep '^needs' -u {NOTES} -b 1 -a 1 -n 5 -L 3 -x {NOTES}/deep",
            {"matches": [{"line": 2, "content": "/water/"}]},
        ),
        (f"grep tea -u {NOTES} --tags env=prod -f tags", {"matches": []}),
        (f"! grep '(' -u {NOTES}", {"code": "INVALID_ARGUMENT"}),
    ],
    "glob": [
        *WRITTEN,
        ("glob '**/*.md'", {"matches": [f"{NOTES}/tea.md"], "count": 1}),
        (f"glob '*.md' -u {NOTES} -f name,uri,size,tags", {"matches": [{"name": "tea.md", "size": 21, "tags": []}]}),
        ("! glob '*.md' -u viking://resources/nowhere", {"code": "NOT_FOUND"}),
    ],
}
ADMIN: dict[str, Steps] = {
    "admin create-account": [("@root admin create-account $account-b --admin bob", {"user_key": str})],
    "admin list-accounts": [
        ("@root admin list-accounts", [{"account_id": "$account", "user_count": 2}]),
        ("@root admin list-accounts --name '$account' --limit 1 --page 1", [{"account_id": "$account"}]),
        ("@root admin list-accounts --name 'nobody*'", []),
        ("@ann --sudo admin list-accounts", [{"account_id": "$account"}]),
        ("! admin list-accounts", {"code": "PERMISSION_DENIED"}),
    ],
    "admin delete-account": [
        ("@root admin delete-account $account", dict),
        ("! session list", {"code": "UNAUTHENTICATED"}),
    ],
    "admin register-user": [("@ann admin register-user $account bob --role user", {"user_id": "bob", "user_key": str})],
    "admin list-users": [
        ("@ann admin list-users $account", [{"user_id": "ann", "role": "admin"}, {"user_id": "alice"}]),
        ("@ann admin list-users $account --name 'al*' --role admin", []),
        ("@ann admin list-users $account --role admin --limit 1", ["/ann/"]),
        ("@ann admin list-users $account --limit 1 --page 3", []),
    ],
    "admin set-role": [
        ("@ann admin set-role $account alice admin", {"role": "admin"}),
        ("admin list-users $account", [{"user_id": "alice"}]),
    ],
    "admin regenerate-key": [
        ("@ann admin regenerate-key $account alice", {"user_key": str}),
        ("! session list", {"code": "UNAUTHENTICATED"}),
    ],
    "admin remove-user": [
        ("@ann admin remove-user $account alice", dict),
        ("! session list", {"code": "UNAUTHENTICATED"}),
    ],
}
COMPONENT = {"is_healthy": True, "has_errors": False, "status": str}
OBSERVER: dict[str, Steps] = {
    "status": [
        ("status", {"is_healthy": True, "components": {"queue": COMPONENT, "vikingdb": COMPONENT}}),
        ("-o table status", ["/Connected (Healthy)/", "/0 active locks/", "no /unknown/"]),
        ("-o table status --verbose", ["/[queue] (healthy)/"]),
        ("@ann -o table status", ["no /unknown/"]),
        ("@root -o table status", ["no /unknown/"]),
    ],
    **{
        f"observer {name}": [
            (f"observer {name}", {"name": name, **COMPONENT}),
            (f"-o table observer {name}", "/healthy/"),
        ]
        for name in ("queue", "vikingdb", "models", "retrieval", "filesystem")
    },
    "observer system": [("observer system", {"is_healthy": True, "errors": []})],
    "health": [("health", {"healthy": True, "user_id": "alice", "role": "user"})],
    "version": [("version", "/Server:/")],
    "wait": [("wait", {"tasks": {"pending": 0}, "Embedding": {"error_count": 0}})],
    "system wait": [("system wait", {"Semantic": {"processed": int, "requeue_count": 0, "errors": []}})],
    "system status": [("system status", {"initialized": True, "user": "alice"})],
    "system health": [("system health", {"status": "ok"})],
    "system consistency": [
        *ADDED,
        (f"system consistency {GUIDE}", {"ok": True, "missing_record_count": 0, "missing_records": []}),
        ("system consistency viking://", {"ok": True}),
    ],
}
NOT_YET = {
    *("attrs get", "attrs set-tags", "set-tags", "get"),
    *("abstract", "overview", "reindex"),
    *("add-skill", "skills add", "skills list", "skills find", "skills show", "skills update", "skills remove"),
    *("find", "search", "grep", "glob", "system consistency", "wait", "system wait"),
    *("status", "observer queue", "observer vikingdb", "observer models", "observer retrieval"),
    *("observer filesystem", "observer system", "admin list-accounts", "admin list-users"),
    *("session get", "session add-message"),
}
"""The cases that fail today. A case that works has to leave this list: its test fails if it succeeds."""
CASES = SESSION | TASK | FILE | CONTENT | RESOURCE | SKILL | PACK | SEARCH | ADMIN | OBSERVER


@pytest.fixture
def run_ov(
    api_key_server: str,
    keys: dict[str, str],
    ov_program: Path,
    local_files: Path,
    client_environment: Callable[[Path], dict[str, str]],
) -> Callable[[str], tuple[bool, Any]]:
    """Runs a command line, in a folder with files to add. Its result is JSON if it prints that, or else a text."""
    settings = local_files / ".openviking"
    settings.mkdir()
    (settings / "ovcli.settings.conf").write_text('{"language": "en"}')

    def run(line: str) -> tuple[bool, Any]:
        user, command = line[1:].split(" ", 1) if line.startswith("@") else ("alice", line)
        config = json.dumps({"url": api_key_server, "api_key": keys[user], "root_api_key": keys["root"]})
        for name in ("ovcli.conf", f"ovcli.conf.{user}"):  # the second one gives the configuration a name
            (settings / name).write_text(config)
        output = [] if command.startswith("-o") else ["-o", "json"]
        finished = subprocess.run(
            [ov_program, *output, *shlex.split(command)],
            cwd=local_files,
            env=client_environment(local_files),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        return finished.returncode == 0, result_of(finished.stderr if finished.returncode else finished.stdout)

    return run


def result_of(printed: str) -> Any:
    try:
        answer = json.loads(printed[printed.index("{") :])  # some commands print themselves first
    except ValueError:
        return printed
    return answer.get("result", answer.get("error"))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.xfail] if name in NOT_YET else []) for name in CASES],
)
def test_a_command_works(
    name: str,
    run_ov: Callable[[str], tuple[bool, Any]],
    take_steps: Callable[..., None],
    account: str,
    page_url: str,
) -> None:
    take_steps(run_ov, CASES[name], {"account": account, "page": page_url})


def test_every_command_is_tested_or_an_exception(
    ov_program: Path, tmp_path: Path, client_environment: Callable[[Path], dict[str, str]]
) -> None:
    def read_help(*command: str) -> str:
        line = [str(ov_program), *command, "--help"]
        environment = client_environment(tmp_path)
        return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=30, check=True).stdout

    def commands(*parent: str) -> Iterator[str]:
        text = read_help(*parent)
        listed = re.search(r"^(?:Subcommands|Commands:)\n((?:  .*\n)+)", text, re.MULTILINE)
        names = re.findall(r"^  ([a-z][\w-]*) ", listed[1], re.MULTILINE) if listed else []
        if not names or (len(parent) > 1 and text == read_help(*parent[:-1])):  # some print the help of their parent
            yield " ".join(parent)
            return
        for name in names:
            if name != "help":
                yield from commands(*parent, name)

    found = {name for top in re.findall(r"^│ ([a-z][\w-]*) ", read_help(), re.MULTILINE) for name in commands(top)}
    excepted = {name for name in found for exception in EXCEPTIONS if f"{name} ".startswith(f"{exception} ")}
    assert len(found) > 100
    assert found - excepted == set(CASES) - excepted
    assert not [name for name in CASES if name in excepted]
    assert set(CASES) >= NOT_YET
