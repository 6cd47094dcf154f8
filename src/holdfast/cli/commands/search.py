"""`holdfast find` and `holdfast search`: what was said and stored."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any, get_args

import typer

from holdfast.cli import help_texts, options, output
from holdfast.cli.completion import complete_session_id
from holdfast.cli.output import Column
from holdfast.model.search import FindResult, Hit, MessageHit, Reason, SearchResult
from holdfast.ops.search import FoundKind, SearchedKind

app = typer.Typer()

AnyHit = Hit | MessageHit
BAR_WIDTH = 30
NARROW_WIDTH = 100
"""A narrower terminal shows the day of a hit instead of its time."""

Query = Annotated[str, typer.Argument(metavar="QUERY", help="What to search for, in words.", show_default=False)]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", help="The maximum number of hits of each kind.")]
Target = Annotated[
    list[str] | None,
    typer.Option("--target", metavar="URI", help="Search only at and below this address. Repeatable."),
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="An age such as 7d, a date, or a time.", show_default=False),
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="An age such as 7d, a date, or a time.", show_default=False),
]
CompletingSession = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="SESSION_ID",
        help="Complete the query from the recent messages of this session.",
        show_default=False,
        autocompletion=complete_session_id,
    ),
]
Why = Annotated[bool, typer.Option("--why", help="Show the reasons of each hit as bars. They add up to its score.")]
AsJson = Annotated[bool, typer.Option("--json", help="The same as `-o json`.")]


@app.command(epilog=help_texts.example('find "how to deploy"', 'find "how to deploy" --type skill --since 30d'))
def find(
    ctx: typer.Context,
    query: Query,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="memory|resource|skill", help="Find only this kind. Repeatable."),
    ] = None,
    limit: Limit = 10,
    target: Target = None,
    since: Since = None,
    until: Until = None,
    why: Why = False,
    as_json: AsJson = False,
) -> None:
    """Find memories, resources and skills, best first.

    `holdfast search` also finds messages.
    """
    wanted = _parse_kinds(kinds, FoundKind)
    with options.get(ctx).open_client() as client:
        result = client.find(query, target_uri=target or "", limit=limit, context_type=wanted, since=since, until=until)
    _print_hits(ctx, result, [*result.memories, *result.resources, *result.skills], why=why, as_json=as_json)
    for note in result.notes:
        output.print_notice(f"Note: {note}.")
    if not result.total:
        output.print_notice(f"Nothing was found for {query!r}. `holdfast search` also searches messages.")


@app.command(
    epilog=help_texts.example(
        'search "which hotel did we book?"',
        'search "which hotel did we book?" --why --since 30d --type message',
        'search "and on Friday?" --session chat_001 --context',
    )
)
def search(
    ctx: typer.Context,
    query: Query,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--type", metavar="memory|resource|skill|message|overview", help="Search only this kind. Repeatable."
        ),
    ] = None,
    limit: Limit = 10,
    target: Target = None,
    session: CompletingSession = None,
    owner: help_texts.Owner = None,
    since: Since = None,
    until: Until = None,
    why: Why = False,
    context: Annotated[bool, typer.Option("--context", help="Print the hits as one text for a prompt.")] = False,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", metavar="N", help="The maximum size of the text of `--context`.")
    ] = 2_000,
    as_json: AsJson = False,
) -> None:
    """Search messages, overviews, memories, resources and skills, best first.

    Each hit has a score from 0 to 1. A message is named by its session and its number: `chat_001#12`. A part of a file
    is named by its file and its number: `resources/manual.pdf#12`.
    """
    wanted = _parse_kinds(kinds, SearchedKind)
    with options.get(ctx).open_client() as client:
        result = client.search(
            query,
            target_uri=target or "",
            session_id=session,
            owner=owner,
            limit=limit,
            context_type=wanted,
            since=since,
            until=until,
            mode="context" if context else "list",
            max_tokens=max_tokens,
        )
    plan = result.query_plan
    if context and not as_json and options.get(ctx).is_table:
        output.print_text(ctx, result.rendered or "")
    else:
        documents = [*result.overviews, *result.memories, *result.resources, *result.skills]
        _print_hits(ctx, result, [*result.messages, *documents], why=why, as_json=as_json)
    if plan.searched != plan.query:
        output.print_notice(f"Searched for: {plan.searched}")
    for note in plan.notes:
        output.print_notice(f"Note: {note}.")
    if not result.total:
        output.print_notice(f"Nothing was found for {query!r}.")


def _parse_kinds(values: list[str] | None, allowed: Any) -> list[Any] | None:
    for value in values or ():
        if value not in get_args(allowed):
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(get_args(allowed))}", param_hint="--type")
    return values or None


def _print_hits(
    ctx: typer.Context, result: FindResult | SearchResult, hits: Sequence[AnyHit], *, why: bool, as_json: bool
) -> None:
    """Print hits, the best one first. In a table, each reason is a row after its hit."""
    shared = options.get(ctx)
    if as_json:
        shared.output = "json"
    ranked: list[Any] = sorted(hits, key=lambda hit: -hit.score)
    if why and shared.is_table:
        ranked = [row for hit in ranked for row in (hit, *hit.reasons)]
    width = output.terminal_width() if shared.is_table else None
    is_narrow = width is not None and width < NARROW_WIDTH
    output.print_rows(ctx, ranked, NARROW_COLUMNS if is_narrow else COLUMNS, result)


def _score(row: AnyHit | Reason) -> str:
    return "" if isinstance(row, Reason) else f"{row.score:.2f}"


def _place(row: AnyHit | Reason) -> str:
    """Name a message by its session and number, and other hits by their address."""
    if isinstance(row, Reason):
        return f"  {row.signal}"
    return f"{row.session_id}#{row.seq}" if isinstance(row, MessageHit) else row.uri.removeprefix("viking://")


def _time(row: AnyHit | Reason) -> Any:
    if isinstance(row, Reason):
        return f"{row.share:.2f}"
    return (row.message if isinstance(row, MessageHit) else row).created_at


def _day(row: AnyHit | Reason) -> str:
    """Return the time for a narrow terminal: the day is enough to choose a hit."""
    return output.format_value(_time(row)).partition(" ")[0]


def _text(row: AnyHit | Reason) -> str:
    if isinstance(row, Reason):
        return _bar(row.share)
    if isinstance(row, MessageHit):
        return f"{row.message.peer_id or row.message.role}: {row.text}"
    place = ", ".join(each for each in (f"page {row.page}" if row.page else "", row.title or "") if each)
    return f"{place}: {row.abstract}" if place else row.abstract


def _bar(share: float) -> str:
    """Draw a share of 1 as a bar, in ASCII where the terminal has no other characters."""
    block = "█" if (sys.stdout.encoding or "").lower().startswith("utf") else "#"
    return block * round(BAR_WIDTH * min(1.0, max(0.0, share)))


COLUMNS = (
    Column("score", _score, align_right=True),
    Column("where", _place, max_share=0.35),
    Column("time", _time, hides_if_empty=True),
    Column("text", _text, shrinks=True),
)
NARROW_COLUMNS = (*COLUMNS[:2], Column("day", _day, hides_if_empty=True), COLUMNS[3])
