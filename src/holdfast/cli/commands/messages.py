"""`holdfast session`: read and add messages."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from holdfast.cli import arguments, help_texts, options, output
from holdfast.cli.output import Column
from holdfast.cli.progress import progress_bar
from holdfast.model.messages import Appended, Message, MessagePage
from holdfast.model.parts import ContextPart, ImagePart, Part, ProviderPart, TextPart

if TYPE_CHECKING:
    from holdfast import Client, Session
    from holdfast.exchange import ProgressCallback

app = typer.Typer()

BATCH_SIZE = 100
PAGE_SIZE = 1_000

IdempotencyKey = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key",
        metavar="KEY",
        help="A key that makes the command safe to repeat: messages with the same key are added only once.",
        show_default=False,
    ),
]
ExpectedSeq = Annotated[
    int | None,
    typer.Option(
        "--expected-seq",
        metavar="SEQ",
        help="Add the messages only if this is the seq of the last message.",
        show_default=False,
    ),
]


@app.command(
    epilog=help_texts.example("session messages chat_001 --q login", "session messages chat_001 --all -o jsonl")
)
def messages(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    first: Annotated[int, typer.Option("--first", metavar="SEQ", help="The seq of the first message.")] = 1,
    last: Annotated[
        int | None, typer.Option("--last", metavar="SEQ", help="The seq of the last message.", show_default=False)
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Skip messages that are in an archive.")] = False,
    q: Annotated[
        str | None,
        typer.Option("--q", metavar="WORDS", help="Only messages that contain all these words.", show_default=False),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", metavar="N", help="The maximum number of messages. Default: 1,000.", show_default=False
        ),
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Show all messages.")] = False,
    owner: help_texts.Owner = None,
) -> None:
    """Show messages, oldest first.

    A table truncates long messages to the width of the terminal; JSON has the full messages.
    """
    if show_all and limit is not None:
        raise typer.BadParameter("use only one of them", param_hint="--limit and --all")
    with options.get(ctx).open_client() as client:
        page_size = PAGE_SIZE if limit is None else limit
        page = client.get_messages(session_id, first, last, live=live, q=q, limit=page_size, owner=owner)
        pages = _next_pages(client, page, last, live=live, q=q, owner=owner)
        if show_all and options.get(ctx).output == "jsonl":  # the messages may not fit in memory
            output.print_json_lines(page.messages)
            for next_page in pages:
                output.print_json_lines(next_page.messages)
            return
        if show_all:
            rest = [message for next_page in pages for message in next_page.messages]
            page = MessagePage(page.session_id, page.messages + rest, None)
    output.print_rows(ctx, page.messages, columns_of(page.messages), page)
    if page.next_seq is not None:
        output.print_notice(f"There are more messages; continue with --first {page.next_seq}, or show all with --all.")


def _next_pages(
    client: "Client", page: MessagePage, last: int | None, *, live: bool, q: str | None, owner: str | None
) -> Iterator[MessagePage]:
    while page.next_seq is not None:
        page = client.get_messages(page.session_id, page.next_seq, last, live=live, q=q, limit=PAGE_SIZE, owner=owner)
        yield page


def _describe_message(message: Message) -> str:
    """The text of a message, with a short description of its other parts."""
    return " ".join(_describe_part(part) for part in message.parts)


def _describe_part(part: Part) -> str:
    match part:
        case TextPart():
            return part.text
        case ContextPart():
            return f"[{part.context_type} {part.uri}]"
        case ImagePart():
            return f"[image {part.description or part.url}]"
        case ProviderPart():
            return part.text or f"[{part.provider} {part.block.get('type') or ' '.join(part.block)}]"
        case _:
            return f"[{part.tool_name or 'tool'}: {part.tool_status}]"


COLUMNS = (
    Column("seq", lambda message: message.seq, align_right=True),
    Column("role", lambda message: message.role),
    Column("time", lambda message: message.created_at),
    Column("text", _describe_message, shrinks=True),
)
AUTHOR = Column("author", lambda message: "/".join(filter(None, [message.author, message.agent_id])))


def columns_of(messages: Sequence[Message]) -> tuple[Column, ...]:
    """The columns of a table of messages. Authors are shown if another than the owner added one of them."""
    has_authors = any(message.author or message.agent_id for message in messages)
    return (*COLUMNS[:2], AUTHOR, *COLUMNS[2:]) if has_authors else COLUMNS


@app.command(
    epilog=help_texts.example(
        'session add-message chat_001 --role user --content "How do I authenticate users?"',
        "session add-message chat_001 --role tool --parts @result.json",
    )
)
def add_message(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    role: Annotated[
        Literal["user", "assistant", "system", "tool"],
        typer.Option(
            "--role", metavar="user|assistant|system|tool", help="The role of the message.", show_default=False
        ),
    ],
    content: Annotated[
        str | None,
        typer.Option(
            "--content",
            metavar="TEXT|-",
            help="The text; - reads it from the standard input, without a final newline.",
            show_default=False,
        ),
    ] = None,
    parts: Annotated[
        str | None,
        typer.Option(
            "--parts",
            metavar="JSON|-|@FILE",
            help="A JSON array of parts, instead of `--content`.",
            show_default=False,
        ),
    ] = None,
    idempotency_key: IdempotencyKey = None,
    expected_seq: ExpectedSeq = None,
    owner: help_texts.Owner = None,
) -> None:
    """Add one message.

    A missing session of your own is created.
    """
    if content == "-" and parts == "-":
        raise typer.BadParameter("only one can read the standard input", param_hint="--content and --parts")
    if content is None and parts is None:
        raise typer.BadParameter("one of them is required", param_hint="--content and --parts")
    text = _without_final_newline(arguments.read_text("-", "--content")) if content == "-" else content
    part_list = None if parts is None else arguments.read_json(parts, "--parts", list, "a JSON array of parts")
    with options.get(ctx).open_client(run_tasks=True) as client:
        added = client.add_message(
            session_id, role, text, part_list, idempotency_key=idempotency_key, expected_seq=expected_seq, owner=owner
        )
    output.print_result(ctx, added, f"added {added.message_id} to {session_id} as message {added.seq:,}")


def _without_final_newline(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")


@app.command(
    epilog=help_texts.example(
        """session add-messages chat_001 '[{"role":"user","content":"Hello"}]'""",
        "session add-messages chat_001 - --idempotency-key import-1 < messages.jsonl",
    )
)
def add_messages(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    messages: Annotated[
        str,
        typer.Argument(
            metavar="MESSAGES",
            help="A JSON array of messages, or JSONL; - reads the standard input, @FILE reads a file.",
            show_default=False,
        ),
    ],
    idempotency_key: IdempotencyKey = None,
    expected_seq: ExpectedSeq = None,
    owner: help_texts.Owner = None,
) -> None:
    """Add several messages, in order.

    They are added in batches of 100, each in one transaction: all messages of a batch or none.
    """
    items = arguments.read_items(messages, "MESSAGES")
    with options.get(ctx).open_client(run_tasks=True) as client, progress_bar(f"adding to {session_id}") as progress:
        session = client.session(session_id, owner=owner)
        added = _add_in_batches(session, items, idempotency_key, expected_seq, progress)
    output.print_result(ctx, added, f"added {added.added:,} to {session_id}; the last is message {added.seq:,}")


def _add_in_batches(
    session: "Session",
    messages: list[Any],
    key: str | None,
    expected_seq: int | None,
    progress: "ProgressCallback",
) -> Appended:
    batches: list[Appended] = []
    try:
        for start in range(0, len(messages) or 1, BATCH_SIZE):
            progress(start, len(messages), "")
            batches.append(
                session.add_messages(
                    messages[start : start + BATCH_SIZE],
                    idempotency_key=_batch_key(key, len(batches)),
                    expected_seq=None if expected_seq is None else expected_seq + start,
                )
            )
    except BaseException:
        if batches:
            count = len(batches) * BATCH_SIZE
            remedy = "repeat the command" if key else f"remove the first {count:,} messages and repeat the command"
            output.print_notice(f"{count:,} of {len(messages):,} messages were added; to continue, {remedy}.")
        raise
    ids = [message_id for batch in batches for message_id in batch.message_ids]
    return msgspec.structs.replace(batches[-1], added=sum(batch.added for batch in batches), message_ids=ids)


def _batch_key(key: str | None, number: int) -> str | None:
    """The idempotency key of a batch: the given key for the first, with a number appended for the others."""
    return key if key is None or number == 0 else f"{key}.{number + 1}"
