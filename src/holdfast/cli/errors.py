"""Error messages and exit codes."""

from typing import Any

import typer

from holdfast.errors import HoldfastError

EXIT_CODES = {
    0: "success",
    1: "the operation failed or was rejected",
    2: "invalid command line",
    3: "not found",
    4: "not authenticated, or not permitted",
    5: "unavailable, or timed out",
    130: "interrupted",
}

EXIT_CODE_BY_ERROR = {
    "NOT_FOUND": 3,
    "PERMISSION_DENIED": 4,
    "UNAUTHENTICATED": 4,
    "UNAVAILABLE": 5,
    "DEADLINE_EXCEEDED": 5,
}

PHRASES = (
    ("set recursive to", "use --recursive to"),
    ("exists already; use the mode replace", "exists already; leave out --create to replace it"),
    ("; use the mode replace", "; leave out --append"),
    ("with on_conflict ", "with --on-conflict "),
    ("use add_resource for", "use `holdfast add-resource` for"),
    ("data: is missing; give data, or the temp_file_id of an upload", "SOURCE: is empty; name a file or a folder"),
    ("needs `to`", "needs --to"),
    ("with `to`", "with --to"),
)
"""Words of the client's methods in errors, and the words of the command line for them."""
FIELDS = {
    "data": "SOURCE",
    "expected_version": "--if-version",
    "level_limit": "--level-limit",
    "mode": "",
    "node_limit": "--limit",
    "on_conflict": "--on-conflict",
    "resource_id": "--resource",
    "temp_file_id": "",
    "watch_interval": "--watch-interval",
}
"""Fields of operations, and the argument or option for them. An empty text: the error is clear without a name."""

UsageError: Any = typer.BadParameter.__mro__[2]
"""The base of all errors that typer raises for a command line. Its public name varies with the version of typer."""


def describe_error(error: BaseException) -> tuple[str, int]:
    """Return the message to print and the exit code."""
    if isinstance(error, HoldfastError):
        hint = "; pass a valid key with --api-key or HOLDFAST_API_KEY" if error.code == "UNAUTHENTICATED" else ""
        return f"{_in_words_of_commands(error.message)}{hint}", EXIT_CODE_BY_ERROR.get(error.code, 1)
    if isinstance(error, UsageError):
        return _usage_message(error), error.exit_code
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror, 1
    return f"a bug in holdfast, {type(error).__name__}: {error}; run with --traceback for details", 1


def _in_words_of_commands(message: str) -> str:
    for phrase, words in PHRASES:
        message = message.replace(phrase, words)
    field, colon, problem = message.partition(": ")
    if not colon or field not in FIELDS:
        return message
    return f"{FIELDS[field]}: {problem}" if FIELDS[field] else problem


def _usage_message(error: Any) -> str:
    message: str = error.format_message().replace(": Value error, ", ": ")  # a prefix of pydantic, which typer uses
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    end = " See" if message.endswith("?") else "; see"
    return f"{message.rstrip('.')}{end} {context.command_path} --help"
