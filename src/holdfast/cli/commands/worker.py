"""`holdfast worker`: background work, for a database that others write to."""

import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Annotated

import msgspec
import typer

from holdfast.cli import help_texts, options, output
from holdfast.composition import find_target, open_engine
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.errors import HoldfastError

app = typer.Typer()

GLANCE = 0.1
ENDING = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger("holdfast.worker")


@app.command(epilog=help_texts.example("worker --path ./data", "worker --path postgresql://db/holdfast --threads 8"))
def worker(
    ctx: typer.Context,
    threads: Annotated[
        int | None,
        typer.Option("--threads", metavar="N", min=1, help="How many tasks at once; else as the settings say."),
    ] = None,
    drain: Annotated[bool, typer.Option("--drain", help="End when nothing is left to do.")] = False,
) -> None:
    """Do the background work of a database, until it is told to stop.

    Any number of workers may share a database, on any machine. One that is told to stop finishes what it has in hand;
    one that is killed loses nothing: another takes over.
    """
    chosen = options.of(ctx)
    settings, source = chosen.load()
    if source.file is not None:
        output.note(source.described())
    chosen.warn(source)
    wanted = threads or settings.worker_threads or Settings().worker_threads
    target = find_target(chosen.target(), msgspec.structs.replace(settings, worker_threads=wanted))
    if target.url is not None:
        raise typer.BadParameter(
            f"{target.url} is a server, which does its own work; name a database with --path", param_hint="--url"
        )
    with closing(open_engine(target, polls=True)) as engine, _told_to_stop() as stop:
        logging.basicConfig(format="%(asctime)s %(message)s")
        many = "1 thread" if wanted == 1 else f"{wanted} threads"
        sys.stdout.write(f"Holdfast works on {chosen.where(settings)} with {many}; Ctrl-C stops it\n")
        sys.stdout.flush()
        _attend(engine, stop, drain=drain)


def _attend(engine: Engine, stop: threading.Event, *, drain: bool) -> None:
    """Until told to stop or nothing is left; the work itself goes on in other threads."""
    while not stop.wait(GLANCE):
        try:
            if drain and not engine.has_work():
                return
        except HoldfastError as error:  # the database is away; it may come back
            log.warning("cannot look for work: %s", error.message)


@contextmanager
def _told_to_stop() -> Iterator[threading.Event]:
    """An event that is set when the process is told to end. Told a second time, it does not finish first."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in ENDING}

    def end(_number: int, _frame: object) -> None:
        stop.set()
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in ENDING:
        signal.signal(number, end)
    try:
        yield stop
    finally:
        restore()
