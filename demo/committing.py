"""The parts of the demo about commits: a context before and after a commit, and a worker that is killed."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from output import console, heading, print_line, progress_bar
from rich.markdown import Markdown
from rich.panel import Panel
from rich.table import Table

import holdfast
from conversations import CONVERSATIONS
from holdfast.model.tasks import Task
from holdfast.testing.model import Behaviour, running_model

TIMEOUT_SECONDS = 60.0


def show_commit(client: holdfast.Client) -> None:
    english = [conversation for conversation in CONVERSATIONS if conversation.language == "en"]
    conversation = max(english, key=lambda conversation: len(conversation.messages))
    heading("A commit shortens the context", f"{len(conversation.messages)} messages about {conversation.name}")
    session = client.session("work")
    session.add_messages(conversation.messages[:100])
    for start in range(100, len(conversation.messages), 100):
        session.add_messages(conversation.messages[start : start + 100])
    before = session.context()
    started = time.perf_counter()
    commit = session.commit(keep_recent_count=2)
    took = (time.perf_counter() - started) * 1_000
    during = session.context()
    print_line(f"commit() returned after {took:.1f} ms: {commit.archive_uri}")
    task = watch_task(client, str(commit.task_id))
    after = session.context()
    table = Table("context", "messages", "tokens", "overview tokens", box=None, padding=(0, 2))
    for name, context in (("before", before), ("right after the call", during), ("when the task is done", after)):
        stats = context.stats
        table.add_row(name, str(len(context.messages)), f"{context.estimated_tokens:,}", f"{stats.archive_tokens:,}")
    console.print(table)
    seconds = f"{task.processing_seconds:.2f} s"
    print_line(f"All messages stayed in the context until the summary was done. It took {seconds}, without a model.")
    (archive,) = session.archives
    console.print(Panel(Markdown(shorten(session.archive(archive.archive_id).overview)), title=archive.archive_id))
    shown = "\n".join([after.latest_archive_overview, *(message.text for message in after.messages)])
    kept = [text for text in conversation.essentials if text in shown]
    print_line(f"{len(kept)} of {len(conversation.essentials)} essential facts are in the context, word for word.")
    for line in after.receipt.included:
        span = f"messages {line.first_seq}-{line.last_seq}"
        print_line(f"included: {line.what:<10} {span}, {line.tokens} tokens: {line.why}")
    expanded = session.expand(archive.archive_id, token_budget=200)
    span = f"messages {expanded.first_seq}-{expanded.last_seq}"
    print_line(f"expand() returns archived messages: {span}; call it with {expanded.next_ref} for more")


def show_killed_worker(folder: Path) -> None:
    heading("A killed worker's task is resumed", "kill -9 during model calls; finished steps are not repeated")
    with running_model(Behaviour(seconds=0.15)) as model:
        settings = {
            "HOLDFAST_MODEL_PROVIDER": "openai",
            "HOLDFAST_MODEL_NAME": "demo",
            "HOLDFAST_MODEL_BASE_URL": model.url,
            "HOLDFAST_MODEL_API_KEY": "none",
            "HOLDFAST_MODEL_INPUT_TOKENS": "2000",
            "HOLDFAST_TASK_LEASE_SECONDS": "1",
        }
        no_workers = holdfast.Settings(worker_threads=0)
        with holdfast.connect(folder, settings=no_workers) as client:
            session = client.session("long-work")
            messages = CONVERSATIONS[0].messages
            session.add_messages(messages[:100])
            commit = session.commit()
            first = start_worker(folder, settings)
            model.wait_for_calls(3, TIMEOUT_SECONDS)
            first.kill()
            first.wait()
            calls = model.calls
            task = client.get_task(str(commit.task_id))
            print_line(
                f"killed after {calls} model calls: {task.progress.done} of {task.progress.total} steps are stored,"
                f" and all {len(session.context().messages)} messages are still in the context"
            )
            second = start_worker(folder, settings)
            try:
                task = watch_task(client, str(commit.task_id))
            finally:
                second.terminate()
                second.wait()
            pieces = task.progress.total - 2
            print_line(
                f"another worker resumed it: {task.status}. {pieces} pieces took {model.calls} model calls,"
                f" so {model.calls - pieces} was repeated: the interrupted one"
            )


def watch_task(client: holdfast.Client, task_id: str) -> Task:
    with progress_bar() as progress:
        bar = progress.add_task("summarising", total=None)
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            task = client.get_task(task_id)
            progress.update(bar, completed=task.progress.done, total=task.progress.total)
            if task.status not in {"pending", "running"} or time.monotonic() > deadline:
                return task
            time.sleep(0.01)


def start_worker(folder: Path, settings: dict[str, str]) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "holdfast", "worker", "--path", str(folder)]
    return subprocess.Popen(
        command, env={**os.environ, **settings}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def shorten(overview: str, lines: int = 40) -> str:
    """Return the first lines of an overview, with shortened message ids."""
    text = re.sub(r"msg_([0-9a-f]{4})[0-9a-f]+", r"msg_\1…", overview).splitlines()
    more = len(text) - lines
    return "\n".join(text[:lines] + ([f"*… and {more} more lines*"] if more > 0 else []))
