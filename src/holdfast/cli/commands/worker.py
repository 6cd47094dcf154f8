"""`holdfast worker`: run the background tasks of a database."""

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
from holdfast.composition import open_engine, resolve_target
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.errors import HoldfastError
from holdfast.http.telemetry.log_writer import LogWriter, QueuedHandler

app = typer.Typer()

POLL_SECONDS = 0.1
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger("holdfast.worker")


@app.command(epilog=help_texts.example("worker --path ./data", "worker --path postgresql://db/holdfast --threads 8"))
def worker(
    ctx: typer.Context,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            metavar="N",
            min=1,
            help="The number of tasks to run at once. Default: the setting `worker_threads`.",
        ),
    ] = None,
    drain: Annotated[bool, typer.Option("--drain", help="Exit when no tasks are left.")] = False,
) -> None:
    """Run the background tasks of a database.

    The worker runs until it is stopped with Ctrl-C or SIGTERM. It then works on its current tasks for up to
    `close_seconds` and releases the rest. Any number of workers, on any machine, may share a database. If a worker is
    killed, another one takes over its tasks.
    """
    shared = options.get(ctx)
    settings, source = shared.load_settings()
    if source.file is not None:
        output.print_notice(source.describe())
    shared.print_warnings(source)
    thread_count = threads or settings.worker_threads or Settings().worker_threads
    target = resolve_target(shared.target(), msgspec.structs.replace(settings, worker_threads=thread_count))
    if target.url is not None:
        raise typer.BadParameter(
            f"{target.url} is a server, which runs its own tasks; give a database with --path", param_hint="--url"
        )
    with closing(open_engine(target, polls=True)) as engine, _stop_on_signals() as stop:
        _log_in_a_thread()
        count = "1 thread" if thread_count == 1 else f"{thread_count} threads"
        sys.stdout.write(f"Holdfast works on {shared.location(settings)} with {count}; Ctrl-C stops it\n")
        sys.stdout.flush()
        _wait_for_stop(engine, stop, drain=drain)


def _log_in_a_thread() -> None:
    """Write warnings to standard error. A worker continues if nobody reads them."""
    handler = QueuedHandler(LogWriter(lambda count: b"%d lines of the log were dropped" % count))
    logging.basicConfig(format="%(asctime)s %(message)s", handlers=[handler])


def _wait_for_stop(engine: Engine, stop: threading.Event, *, drain: bool) -> None:
    """Wait for a signal or, with `drain`, until no tasks are left. The tasks run in other threads."""
    while not stop.wait(POLL_SECONDS):
        try:
            if drain and not engine.has_work():
                return
        except HoldfastError as error:  # the database is unavailable; it may come back
            log.warning("cannot look for tasks: %s", error.message)


@contextmanager
def _stop_on_signals() -> Iterator[threading.Event]:
    """Set an event at the first SIGTERM or SIGINT. A second signal ends the process at once."""
    stop = threading.Event()
    previous = {number: signal.getsignal(number) for number in STOP_SIGNALS}

    def handle(_number: int, _frame: object) -> None:
        stop.set()
        restore()

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    for number in STOP_SIGNALS:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        restore()
