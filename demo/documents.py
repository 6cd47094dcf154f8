"""The part of the demo that adds a folder of documents, and answers from it."""

import tempfile
from pathlib import Path

from output import console, heading, print_line, progress_bar, show_error
from rich.table import Table
from rich.text import Text

import holdfast
from holdfast.model.tree.resources import ResourceAdded
from sample_files import make_pdf

KNOTS = (
    """# Knots for the harbour

Three knots are enough for most boats. Learn them with a short line at home, then try them in the rain.

## Bowline

The bowline makes a loop that does not slip. Use it to moor a boat to a ring, or to join two lines.
"""
    + (
        "Make a small loop, bring the end up through it, around the standing part, and down again. Pull it tight. "
        "A bowline is easy to open, even after a night under load, but not while the line pulls.\n"
    )
    * 4
    + """
## Cleat hitch

Two turns and a locking hitch hold a line on a cleat. Never leave a cleat with one turn.
"""
    + (
        "Begin at the far horn, make a full turn around the base, cross over the top, and lock the line under itself. "
        "More than one locking turn jams when the line is wet.\n"
    )
    * 5
)
PAGES = (
    "Harbour handbook. Opening hours: the office opens at seven and closes at nine in the evening.",
    "Fees. A berth of ten metres costs 24 euros a night. Electricity is included.",
    "Safety. In a storm the bridge is closed from wind force nine. Call channel 12 before you leave.",
)
TIDES = "day,high water,low water\n" + "".join(
    f"2026-05-{n:02},{n % 12:02}:10,{(n + 6) % 12:02}:20\n" for n in range(1, 29)
)


def show_documents(client: holdfast.Client) -> None:
    heading("A folder of documents is added and searched", "Markdown, a PDF and a table; a hit names its page")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "harbour")
        folder.mkdir()
        (folder / "knots.md").write_text(KNOTS)
        (folder / "handbook.pdf").write_bytes(make_pdf(PAGES, "Harbour handbook"))
        (folder / "tides.csv").write_text(TIDES)
        (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and nothing else")
        added = _add(client, folder)
        for error in added.errors or []:
            print_line(f"left out: {error.message}")
        print_line(f"{added.added} files are in {added.root_uri}: {client.abstract(added.root_uri)}")
        _ask(client, "From which wind is the bridge closed?")
        _ask(client, "How do I tie a boat to a ring?")
        (folder / "knots.md").write_text(KNOTS.replace("Three knots", "Two knots"))
        again = client.add_resource(folder, to=added.root_uri, wait=True)
        print_line(f"Added again: {again.changed} file has changed, {again.unchanged} have not.")
    uri = f"{added.root_uri}/knots.md"
    versions = client.history(uri).versions
    print_line(f"{uri} has {len(versions)} versions; version 1 says: {client.read(uri, 2, 1, version=1).strip()}")
    show_error(lambda: client.write(uri, "Ropes", expected_version=1))
    client.rm(added.root_uri, recursive=True)
    print_line(f"Removed, then restored: {client.restore(added.root_uri).restored} files and folders.")


def _add(client: holdfast.Client, folder: Path) -> ResourceAdded:
    with progress_bar() as progress:
        bar = progress.add_task("reading", total=None)

        def show(done: int, total: int, stage: str) -> None:
            progress.update(bar, completed=done, total=total, description=stage)

        return client.add_resource(folder, reason="for the crew", wait=True, on_progress=show)


def _ask(client: holdfast.Client, question: str) -> None:
    hit = client.find(question, target_uri="viking://resources", limit=1, read_content=True).resources[0]
    place = f"page {hit.page}" if hit.page else hit.title or ""
    table = Table("asked", "found in", "where", "text", box=None, padding=(0, 2))
    text = " ".join((hit.content or hit.abstract).split())
    table.add_row(question, (hit.document or hit.uri).removeprefix("viking://resources/"), place, Text(text[:160]))
    console.print(table)
