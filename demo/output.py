"""Output of the demo: headings, sentences and small tables."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from holdfast import Message
from holdfast.errors import HoldfastError

console = Console(highlight=False)
steps = iter(range(1, 100))


def heading(title: str, subtitle: str) -> None:
    console.print(f"\n[bold cyan]{next(steps)}. {title}[/bold cyan] [dim]({subtitle})[/dim]")


def print_line(text: str) -> None:
    console.print(Text(text), style="default", soft_wrap=False)


def show_error(call: object) -> None:
    try:
        call()  # type: ignore[operator]
    except HoldfastError as error:
        console.print(Text.assemble((f"{error.code} ", "yellow"), error.message))


def show_messages(messages: list[Message]) -> None:
    table = Table("seq", "role", "text", "tokens", box=None, padding=(0, 2))
    for message in messages:
        table.add_row(str(message.seq), message.role, Text(message.text), str(message.tokens))
    console.print(table)


def progress_bar() -> Progress:
    return Progress(
        TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    )
