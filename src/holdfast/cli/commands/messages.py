"""`holdfast session`: the messages of a session, in and out."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from holdfast.cli import arguments, help_texts, options, output
from holdfast.cli.output import Column
from holdfast.cli.progress import Progress, bar
from holdfast.model.messages import Appended, Message, MessagePage
from holdfast.model.parts import ContextPart, ImagePart, Part, ProviderPart, TextPart

if TYPE_CHECKING:
    from holdfast import Client

app = typer.Typer()

BATCH = 100
PAGE = 1_000

IdempotencyKey = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key",
        metavar="KEY",
        help="Names this append: sent again with the same key, it is not done again.",
        show_default=False,
    ),
]
ExpectedSeq = Annotated[
    int | None,
    typer.Option(
        "--expected-seq",
        metavar="SEQ",
        help="Refuse, unless this is the number of the last message so far.",
        show_default=False,
    ),
]


@app.command(
    epilog=help_texts.example("session messages chat_001 --q login", "session messages chat_001 --all -o jsonl")
)
def messages(
    ctx: typer.Context,
    session_id: help_texts.SessionId,
    first: Annotated[int, typer.Option("--first", metavar="SEQ", help="The number to begin with.")] = 1,
    last: Annotated[
        int | None, typer.Option("--last", metavar="SEQ", help="The number to end with.", show_default=False)
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Leave out what is sealed in an archive.")] = False,
    q: Annotated[
        str | None,
        typer.Option("--q", metavar="WORDS", help="Only those that hold all these words.", show_default=False),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", help="How many to show; else 1,000.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show them all, however many there are.")] = False,
) -> None:
    """Show messages, oldest first.

    A table shortens them to the terminal; JSON has everything.
    """
    if every and limit is not None:
        raise typer.BadParameter("give one of them", param_hint="--limit and --all")
    with options.of(ctx).open() as client:
        page = client.get_messages(session_id, first, last, live=live, q=q, limit=PAGE if limit is None else limit)
        if every and options.of(ctx).output == "jsonl":  # may be more than fits in memory
            output.lines(page.messages)
            for later in _pages_behind(client, page, last, live=live, q=q):
                output.lines(later.messages)
            return
        if every:
            behind = [m for later in _pages_behind(client, page, last, live=live, q=q) for m in later.messages]
            page = MessagePage(page.session_id, page.messages + behind, None)
    output.rows(ctx, page.messages, COLUMNS, page)
    if page.next_seq is not None:
        output.note(f"There are more: --first {page.next_seq} goes on, --all shows them all.")


def _pages_behind(
    client: "Client", page: MessagePage, last: int | None, *, live: bool, q: str | None
) -> Iterator[MessagePage]:
    while page.next_seq is not None:
        page = client.get_messages(page.session_id, page.next_seq, last, live=live, q=q, limit=PAGE)
        yield page


def summary(message: Message) -> str:
    """A message in a line: its text, and of its other parts what they are."""
    return " ".join(_in_short(part) for part in message.parts)


def _in_short(part: Part) -> str:
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
    Column("seq", lambda message: message.seq, right=True),
    Column("role", lambda message: message.role),
    Column("time", lambda message: message.created_at),
    Column("text", summary, gives_way=True),
)


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
        typer.Option("--role", metavar="user|assistant|system|tool", help="Who speaks.", show_default=False),
    ],
    content: Annotated[
        str | None,
        typer.Option(
            "--content", metavar="TEXT|-", help="What is said; - reads it, less a last newline.", show_default=False
        ),
    ] = None,
    parts: Annotated[
        str | None,
        typer.Option(
            "--parts",
            metavar="JSON|-|@FILE",
            help="Instead of a text, a JSON array of parts.",
            show_default=False,
        ),
    ] = None,
    idempotency_key: IdempotencyKey = None,
    expected_seq: ExpectedSeq = None,
) -> None:
    """Add one message.

    A session that does not exist yet begins with it.
    """
    if content == "-" and parts == "-":
        raise typer.BadParameter("the standard input can be only one of them", param_hint="--content and --parts")
    if content is None and parts is None:
        raise typer.BadParameter("one of them is needed", param_hint="--content and --parts")
    said = _without_last_newline(arguments.text("-", "--content")) if content == "-" else content
    listed = None if parts is None else arguments.json(parts, "--parts", list, "a JSON array of parts")
    with options.of(ctx).open(works=True) as client:
        added = client.add_message(
            session_id, role, said, listed, idempotency_key=idempotency_key, expected_seq=expected_seq
        )
    output.said(ctx, added, f"added {added.message_id} to {session_id} as message {added.seq:,}")


def _without_last_newline(text: str) -> str:
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
            help="A JSON array of messages, or a message on each line; - reads it, @FILE reads a file.",
            show_default=False,
        ),
    ],
    idempotency_key: IdempotencyKey = None,
    expected_seq: ExpectedSeq = None,
) -> None:
    """Add many messages, in order.

    They are sent 100 at a time; each hundred is added as a whole or not at all.
    """
    listed = arguments.items(messages, "MESSAGES")
    with options.of(ctx).open(works=True) as client, bar(f"adding to {session_id}") as progress:
        added = _in_batches(client, session_id, listed, idempotency_key, expected_seq, progress)
    output.said(ctx, added, f"added {added.added:,} to {session_id}; the last is message {added.seq:,}")


def _in_batches(
    client: "Client",
    session_id: str,
    messages: list[Any],
    key: str | None,
    expected_seq: int | None,
    progress: Progress,
) -> Appended:
    done: list[Appended] = []
    try:
        for start in range(0, len(messages) or 1, BATCH):
            progress(start, len(messages), "")
            done.append(
                client.batch_add_messages(
                    session_id,
                    messages[start : start + BATCH],
                    idempotency_key=_key_of_batch(key, len(done)),
                    expected_seq=None if expected_seq is None else expected_seq + start,
                )
            )
    except BaseException:
        if done:
            remedy = "run it again as it is" if key else f"leave out the first {len(done) * BATCH:,}"
            output.note(f"{len(done) * BATCH:,} of {len(messages):,} messages were added; to go on, {remedy}.")
        raise
    ids = [added for batch in done for added in batch.message_ids]
    return msgspec.structs.replace(done[-1], added=sum(batch.added for batch in done), message_ids=ids)


def _key_of_batch(key: str | None, number: int) -> str | None:
    """Each hundred has a key of its own; that of the first is the one that was given."""
    return key if key is None or number == 0 else f"{key}.{number + 1}"
