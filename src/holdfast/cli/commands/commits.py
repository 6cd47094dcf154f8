"""`holdfast session`: commits, archives and contexts."""

from typing import Annotated

import typer

from holdfast.cli import help_texts, options, output
from holdfast.cli.commands import tasks
from holdfast.cli.commands.messages import columns_of
from holdfast.cli.output import Column
from holdfast.model.archives import ReceiptLine

app = typer.Typer()

MAX_OMISSIONS_LISTED = 5

ARCHIVES = (
    Column("archive", lambda row: row.archive_id),
    Column("state", lambda row: row.state),
    Column("messages", lambda row: row.message_count, align_right=True),
    Column("tokens", lambda row: row.tokens, align_right=True),
    Column("abstract", lambda row: row.abstract or (row.failure or {}).get("error", ""), shrinks=True),
)


@app.command(
    epilog=help_texts.example("session commit chat_001", "session commit chat_001 --keep-recent-count 4 --wait")
)
def commit(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    keep_recent_count: Annotated[
        int, typer.Option("--keep-recent-count", metavar="N", help="The number of recent messages to keep live.")
    ] = 0,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the archive is summarised, and show the progress.")
    ] = False,
    owner: help_texts.Owner = None,
) -> None:
    """Move the live messages to a new archive.

    A background task summarises the archive. With `--wait`, the exit code is 1 if the task fails.
    """
    with options.get(ctx).open_client(run_tasks=True) as client:
        committed = client.commit_session(session_id, keep_recent_count, owner=owner)
        if wait and committed.task_id is not None:
            tasks.print_finished_task(ctx, tasks.wait_for_task(client, committed.task_id))
            return
    if committed.task_id is None:
        reason = (committed.reason or "").replace("_", " ")
        output.print_result(ctx, committed, f"nothing to commit in {session_id}: {reason}")
    else:
        output.print_result(ctx, committed, f"created {committed.archive_uri}; {committed.task_id} summarises it")


@app.command(
    epilog=help_texts.example("session get-session-context chat_001", "session get-session-context chat_001 -o json")
)
def get_session_context(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    token_budget: Annotated[
        int,
        typer.Option(
            "--token-budget",
            metavar="N",
            help="The maximum number of tokens. Messages not yet summarised may exceed it.",
        ),
    ] = 128_000,
    owner: help_texts.Owner = None,
) -> None:
    """Show the model's context.

    It has the latest system message, all messages not yet summarised, the latest overview if it fits, and large tool
    outputs as far as the budget allows.
    """
    with options.get(ctx).open_client() as client:
        context = client.get_session_context(session_id, token_budget, owner=owner)
    is_table = options.get(ctx).is_table
    if context.system_message is not None and is_table:
        output.print_text(ctx, context.system_message.text)
        output.print_blank_line()
    if context.latest_archive_overview and is_table:
        output.print_text(ctx, context.latest_archive_overview)
        output.print_blank_line()
    output.print_rows(ctx, context.messages, columns_of(context.messages), context)
    if is_table:
        stats = context.stats
        output.print_notice(
            f"{context.estimated_tokens:,} tokens: {stats.active_tokens:,} of messages, {stats.archive_tokens:,} of the"
            f" overview; {output.count(stats.total_archives, 'archive')}, {stats.failed_archives:,} failed."
        )
        _print_omissions(context.receipt.left_out)


@app.command(epilog=help_texts.example("session get-session-archive chat_001 archive_001"))
def get_session_archive(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    archive_id: Annotated[
        str,
        typer.Argument(metavar="ARCHIVE_ID", help="The id of the archive, such as archive_001.", show_default=False),
    ],
    owner: help_texts.Owner = None,
) -> None:
    """Show the overview and the messages of a finished archive."""
    with options.get(ctx).open_client() as client:
        archive = client.get_session_archive(session_id, archive_id, owner=owner)
    if options.get(ctx).is_table:
        output.print_text(ctx, archive.overview)
        output.print_blank_line()
    output.print_rows(ctx, archive.messages, columns_of(archive.messages), archive)


@app.command(epilog=help_texts.example("session archives chat_001", "session archives chat_001 -o jsonl"))
def archives(ctx: typer.Context, session_id: help_texts.SessionId, owner: help_texts.Owner = None) -> None:
    """List the archives of a session with their states."""
    with options.get(ctx).open_client() as client:
        output.print_rows(ctx, client.session(session_id, owner=owner).archives, ARCHIVES)


@app.command(epilog=help_texts.example("session expand chat_001 archive_001", "session expand chat_001 12-40"))
def expand(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    ref: Annotated[
        str,
        typer.Argument(
            metavar="REF",
            help="An archive id, a message's id or seq, a range such as 12-40, or a citation such as '[#3, #12-40]'.",
            show_default=False,
        ),
    ],
    token_budget: Annotated[
        int, typer.Option("--token-budget", metavar="N", help="The maximum number of tokens.")
    ] = 32_000,
    owner: help_texts.Owner = None,
) -> None:
    """Show the original messages that a summary refers to."""
    with options.get(ctx).open_client() as client:
        expanded = client.expand(session_id, ref, token_budget, owner=owner)
    output.print_rows(ctx, expanded.messages, columns_of(expanded.messages), expanded)
    if options.get(ctx).is_table:
        _print_omissions(expanded.left_out)
    if expanded.next_ref is not None:
        output.print_notice(f"There are more messages; continue with {expanded.next_ref}.")


def _print_omissions(lines: list[ReceiptLine]) -> None:
    """Print what was left out of the context: the first few items, and the number of the others."""
    for line in lines[:MAX_OMISSIONS_LISTED]:
        item = f"tool output of message {line.first_seq}" if line.what == "tool_output" else line.what.replace("_", " ")
        output.print_notice(f"Left out, {item}: {line.why}.")
    if len(lines) > MAX_OMISSIONS_LISTED:
        output.print_notice(f"Left out: {len(lines) - MAX_OMISSIONS_LISTED:,} more; -o json lists them.")
