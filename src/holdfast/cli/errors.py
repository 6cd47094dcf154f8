"""What went wrong, in one sentence and one number."""

from typing import Any

import typer

from holdfast.errors import HoldfastError

EXIT_CODES = {
    0: "done",
    1: "refused or failed",
    2: "not understood",
    3: "not found",
    4: "not allowed",
    5: "not available",
    130: "interrupted",
}

CODES = {
    "NOT_FOUND": 3,
    "PERMISSION_DENIED": 4,
    "UNAUTHENTICATED": 4,
    "UNAVAILABLE": 5,
    "DEADLINE_EXCEEDED": 5,
}

Misuse: Any = typer.BadParameter.__mro__[2]
"""The base of all that typer raises over a command line; by which name it has it differs from version to version."""


def told(error: BaseException) -> tuple[str, int]:
    """An error as the sentence to print and the code to exit with."""
    if isinstance(error, HoldfastError):
        remedy = "; --api-key or HOLDFAST_API_KEY says it" if error.code == "UNAUTHENTICATED" else ""
        return f"{error.message}{remedy}", CODES.get(error.code, 1)
    if isinstance(error, Misuse):
        return _misuse(error), error.exit_code
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror, 1
    return f"this is a fault of holdfast itself, {type(error).__name__}: {error}; --traceback shows where", 1


def _misuse(error: Any) -> str:
    said: str = error.format_message().replace(": Value error, ", ": ")  # pydantic's, who reads values for typer
    context = getattr(error, "ctx", None)
    if context is None:
        return said
    end = " See" if said.endswith("?") else "; see"
    return f"{said.rstrip('.')}{end} {context.command_path} --help"
