"""What the shell offers for a session's id when the tab key is pressed."""

from pathlib import Path

import msgspec
import typer

from holdfast.cli import options
from holdfast.cli.errors import Misuse
from holdfast.errors import HoldfastError

OFFERED = 100


def session_ids(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """The newest sessions that fit, with their titles. A tab key makes no database, waits briefly, tells no error."""
    chosen = options.of(ctx)
    for name, value in ctx.find_root().params.items():  # the shell does not run the program, it only reads the line
        if value is not None:
            setattr(chosen, name, value)
    try:
        settings = msgspec.structs.replace(
            chosen.load()[0],
            http_attempts=1,
            http_timeout_seconds=1.0,
            postgres_wait_seconds=1.0,
            sqlite_busy_timeout_ms=500,
        )
        where = chosen.where(settings)
        if "://" not in where and not Path(where).is_file():
            return []
        with chosen.open(settings) as client:
            found = client.list_sessions(limit=OFFERED, q=incomplete or None)
    except (HoldfastError, OSError, Misuse):
        return []
    return [(row.session_id, row.title) for row in found if row.session_id.startswith(incomplete)]
