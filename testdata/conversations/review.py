"""A pull request reviewed file by file."""

from conversations.filler import log
from conversations.script import Conversation, Turn, assistant, failed, tool, user

_FILES = [
    "session.py",
    "tokens.py",
    "cookies.py",
    "forms.py",
    "audit.py",
    "routes.py",
    "errors.py",
    "mail.py",
    "limits.py",
]


def _files() -> list[Turn]:
    turns: list[Turn] = []
    for at, name in enumerate(_FILES):
        turns += [
            assistant(
                "",
                tool(
                    "read_file",
                    {"path": f"src/auth/{name}", "lines": f"{at * 20 + 1}-{at * 20 + 80}"},
                    f"import logging\n\n\ndef check_{at}(value: str) -> bool:\n    return len(value) > {at + 3}\n",
                ),
                tool("run_linter", {"path": f"src/auth/{name}"}, log(14, at)),
            ),
            assistant(f"src/auth/{name} looks fine, only small naming remarks around line {at * 20 + 17}."),
        ]
    return turns


CONVERSATION = Conversation(
    name="code review",
    language="en",
    messages=[
        user(
            "Please review PR #1842 (branch feature/token-rotation) in our "
            "auth service. Focus on security, not on style."
        ),
        assistant("", tool("get_diff", {"pr": 1842}, {"files": 11, "additions": 640, "deletions": 212})),
        assistant("The pull request changes 11 files. I will go through them one by one."),
        user("Don't push anything to the branch yourself, only comment."),
        *_files(),
        assistant(
            "",
            tool(
                "read_file",
                {"path": "src/auth/rotate.py"},
                "def rotate(token):\n    if token.hash == stored.hash:\n        ...",
            ),
        ),
        assistant(
            "Found a serious issue in src/auth/rotate.py:88: the token hash is "
            "compared with ==, which leaks timing. It must use "
            "hmac.compare_digest."
        ),
        assistant(
            "",
            failed(
                "run_tests",
                {"path": "tests/auth"},
                "FAILED tests/auth/test_rotate.py::test_reuse - KeyError: 'family_id'",
            ),
        ),
        assistant(
            "A second problem: test_reuse fails with KeyError: 'family_id', "
            "because migrations/0031_families.sql is not applied "
            "in the test setup."
        ),
        user("Is the migration safe to run on production? The tokens table has 12 million rows there."),
        assistant(
            "Not as it is: it adds a NOT NULL column with a default computed per "
            "row, which would rewrite all 12 million rows "
            "under a lock. I suggest three steps: add the column as nullable, backfill in batches, then set NOT NULL."
        ),
        user("Agreed, we go with the three steps. Every step has to be its own migration."),
        assistant(
            "", tool("comment", {"pr": 1842, "path": "src/auth/rotate.py", "line": 88}, {"comment_id": "rc_90417"})
        ),
        assistant("I left comment rc_90417 on the timing issue and rc_90418 on the migration."),
        user("Also check that refresh tokens expire after 14 days, that is what the contract with Kestrel Bank says."),
        assistant(
            "",
            tool("search_code", {"query": "REFRESH_TTL"}, "src/auth/settings.py:12: REFRESH_TTL = timedelta(days=30)"),
        ),
        assistant("They do not: REFRESH_TTL in src/auth/settings.py:12 is 30 days. The contract requires 14 days."),
        user("That is a blocker. Request changes."),
        assistant("", tool("submit_review", {"pr": 1842, "verdict": "changes_requested"}, {"ok": True})),
        assistant(
            "I requested changes on PR #1842. Remaining for the author: "
            "compare_digest in rotate.py, the three migrations, and "
            "REFRESH_TTL at 14 days."
        ),
    ],
    essentials=[
        "#1842",
        "feature/token-rotation",
        "Don't push anything to the branch yourself",
        "src/auth/rotate.py:88",
        "hmac.compare_digest",
        "KeyError: 'family_id'",
        "migrations/0031_families.sql",
        "12 million rows",
        "Every step has to be its own migration",
        "14 days",
        "src/auth/settings.py:12",
        "rc_90417",
    ],
)
