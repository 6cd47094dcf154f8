"""`holdfast session`: commits, the archives they make, and the context that comes back."""

from typing import Annotated

import typer

from holdfast.cli import help_texts, options, output
from holdfast.cli.commands import tasks
from holdfast.cli.commands.messages import COLUMNS as MESSAGES
from holdfast.cli.output import Column
from holdfast.model.archives import ReceiptLine

app = typer.Typer()

SHOWN_LEFT_OUT = 5

ARCHIVES = (
    Column("archive", lambda row: row.archive_id),
    Column("state", lambda row: row.state),
    Column("messages", lambda row: row.message_count, right=True),
    Column("tokens", lambda row: row.tokens, right=True),
    Column("abstract", lambda row: row.abstract or (row.failure or {}).get("error", ""), gives_way=True),
)


@app.command(
    epilog=help_texts.example("session commit chat_001", "session commit chat_001 --keep-recent-count 4 --wait")
)
def commit(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    keep_recent_count: Annotated[
        int, typer.Option("--keep-recent-count", metavar="N", help="How many of the last messages stay live.")
    ] = 0,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is summarised, and show how far it is.")] = False,
) -> None:
    """Seal the live messages in an archive; a task summarises it.

    The exit code is 1 if `--wait` sees the task fail.
    """
    with options.of(ctx).open(works=True) as client:
        done = client.commit_session(session_id, keep_recent_count)
        if wait and done.task_id is not None:
            tasks.show_end(ctx, tasks.watched(client, done.task_id))
            return
    if done.task_id is None:
        output.said(ctx, done, f"nothing to commit in {session_id}: {(done.reason or '').replace('_', ' ')}")
    else:
        output.said(ctx, done, f"sealed {done.archive_uri}; {done.task_id} summarises it")


@app.command(
    epilog=help_texts.example("session get-session-context chat_001", "session get-session-context chat_001 -o json")
)
def get_session_context(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    token_budget: Annotated[
        int, typer.Option("--token-budget", metavar="N", help="How many tokens there is room for.")
    ] = 128_000,
) -> None:
    """Show what a model is to be shown.

    The latest system message, every message that no finished archive stands for, the latest overview if it fits, and
    large tool outputs as far as there is room.
    """
    with options.of(ctx).open() as client:
        found = client.get_session_context(session_id, token_budget)
    people = options.of(ctx).for_people
    if found.system_message is not None and people:
        output.text(ctx, found.system_message.text)
        output.gap()
    if found.latest_archive_overview and people:
        output.text(ctx, found.latest_archive_overview)
        output.gap()
    output.rows(ctx, found.messages, MESSAGES, found)
    if people:
        stats = found.stats
        output.note(
            f"{found.estimated_tokens:,} tokens: {stats.active_tokens:,} of messages, {stats.archive_tokens:,} of the"
            f" overview; {stats.total_archives:,} archives, {stats.failed_archives:,} of them failed."
        )
        _note_left_out(found.receipt.left_out)


@app.command(epilog=help_texts.example("session get-session-archive chat_001 archive_001"))
def get_session_archive(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    archive_id: Annotated[
        str, typer.Argument(metavar="ARCHIVE_ID", help="The archive, such as archive_001.", show_default=False)
    ],
) -> None:
    """Show an archive that is done: its overview and its messages."""
    with options.of(ctx).open() as client:
        found = client.get_session_archive(session_id, archive_id)
    if options.of(ctx).for_people:
        output.text(ctx, found.overview)
        output.gap()
    output.rows(ctx, found.messages, MESSAGES, found)


@app.command(epilog=help_texts.example("session archives chat_001", "session archives chat_001 -o jsonl"))
def archives(ctx: typer.Context, session_id: help_texts.SessionId) -> None:
    """List the archives of a session, each with its state."""
    with options.of(ctx).open() as client:
        output.rows(ctx, client.session(session_id).archives, ARCHIVES)


@app.command(epilog=help_texts.example("session expand chat_001 archive_001", "session expand chat_001 12-40"))
def expand(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    ref: Annotated[
        str,
        typer.Argument(
            metavar="REF",
            help="An archive, a message's id or number, a range such as 12-40, or a citation such as '[#3, #12-40]'.",
            show_default=False,
        ),
    ],
    token_budget: Annotated[
        int, typer.Option("--token-budget", metavar="N", help="How many tokens there is room for.")
    ] = 32_000,
) -> None:
    """Bring back messages that an overview stands for."""
    with options.of(ctx).open() as client:
        found = client.expand(session_id, ref, token_budget)
    output.rows(ctx, found.messages, MESSAGES, found)
    if options.of(ctx).for_people:
        _note_left_out(found.left_out)
    if found.next_ref is not None:
        output.note(f"There are more: {found.next_ref} is the rest.")


def _note_left_out(lines: list[ReceiptLine]) -> None:
    """Say what did not fit, a few of them by name."""
    for line in lines[:SHOWN_LEFT_OUT]:
        which = f"message {line.first_seq}" if line.what == "tool_output" else line.what.replace("_", " ")
        output.note(f"Left out, {which}: {line.why}.")
    if len(lines) > SHOWN_LEFT_OUT:
        output.note(f"Left out: {len(lines) - SHOWN_LEFT_OUT:,} more; -o json lists them.")
