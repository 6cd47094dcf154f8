"""Shell completion of session ids."""

from pathlib import Path

import msgspec
import typer

from holdfast.cli import options
from holdfast.cli.errors import UsageError
from holdfast.errors import HoldfastError

MAX_SUGGESTIONS = 100


def complete_session_id(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the newest matching sessions with their titles.

    Completion never creates a database, uses short timeouts and reports no errors.
    """
    shared = options.get(ctx)
    for name, value in ctx.find_root().params.items():  # completion parses the command line but runs no callback
        if value is not None:
            setattr(shared, name, value)
    owner = ctx.params.get("owner")
    try:
        settings = msgspec.structs.replace(
            shared.load_settings()[0],
            http_attempts=1,
            http_timeout_seconds=1.0,
            postgres_wait_seconds=1.0,
            sqlite_busy_timeout_ms=500,
        )
        location = shared.location(settings)
        if "://" not in location and not Path(location).is_file():
            return []
        with shared.open_client(settings) as client:
            sessions = client.list_sessions(limit=MAX_SUGGESTIONS, q=incomplete or None, shared=owner is not None)
    except (HoldfastError, OSError, UsageError):
        return []
    return [
        (row.session_id, row.title)
        for row in sessions
        if row.session_id.startswith(incomplete) and owner in {None, row.owner}
    ]
