"""A commit: a conversation gets long, is sealed, and comes back short; a worker dies and nobody notices."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from rich.markdown import Markdown
from rich.panel import Panel
from rich.table import Table
from telling import bar, console, heading, say

import holdfast
from conversations import CONVERSATIONS
from holdfast.model.tasks import Task
from holdfast.testing.model import Behaviour, running_model

PATIENCE = 60.0


def a_commit(client: holdfast.Client) -> None:
    conversation = max((it for it in CONVERSATIONS if it.language == "en"), key=lambda it: len(it.messages))
    heading("A commit makes room", f"{len(conversation.messages)} messages about {conversation.name}")
    session = client.session("work")
    session.add_messages(conversation.messages[:100])
    for start in range(100, len(conversation.messages), 100):
        session.add_messages(conversation.messages[start : start + 100])
    before = session.context()
    started = time.perf_counter()
    done = session.commit(keep_recent_count=2)
    took = (time.perf_counter() - started) * 1_000
    meanwhile = session.context()
    say(f"commit answered in {took:.1f} ms: {done.archive_uri}")
    task = watch(client, str(done.task_id))
    after = session.context()
    table = Table("the context", "messages", "tokens", "of it overview", box=None, padding=(0, 2))
    for name, context in (("before", before), ("right after the call", meanwhile), ("when it is done", after)):
        stats = context.stats
        table.add_row(name, str(len(context.messages)), f"{context.estimated_tokens:,}", f"{stats.archive_tokens:,}")
    console.print(table)
    say(f"No message was out of sight before its summary was there; it took {task.processing_seconds:.2f} s, no model.")
    (archive,) = session.archives
    console.print(Panel(Markdown(shortened(session.archive(archive.archive_id).overview)), title=archive.archive_id))
    seen = "\n".join([after.latest_archive_overview, *(message.text for message in after.messages)])
    kept = [it for it in conversation.essentials if it in seen]
    say(f"{len(kept)} of {len(conversation.essentials)} things that must not get lost are in the context, literally.")
    for line in after.receipt.included:
        say(f"in:  {line.what:<10} messages {line.first_seq}-{line.last_seq}, {line.tokens} tokens: {line.why}")
    brought = session.expand(archive.archive_id, token_budget=200)
    span = f"messages {brought.first_seq}-{brought.last_seq}"
    say(f"expand brings back any of it: {span}, then ask for {brought.next_ref}")


def a_killed_worker(folder: Path) -> None:
    heading("A killed worker resumes", "kill -9 while a model writes; what was paid for is kept")
    with running_model(Behaviour(seconds=0.15)) as model:
        settings = {
            "HOLDFAST_MODEL_PROVIDER": "openai",
            "HOLDFAST_MODEL_NAME": "demo",
            "HOLDFAST_MODEL_BASE_URL": model.url,
            "HOLDFAST_MODEL_API_KEY": "none",
            "HOLDFAST_MODEL_INPUT_TOKENS": "2000",
            "HOLDFAST_TASK_LEASE_SECONDS": "1",
        }
        quiet = holdfast.Settings(worker_threads=0)
        with holdfast.connect(folder, settings=quiet) as client:
            session = client.session("long-work")
            messages = CONVERSATIONS[0].messages
            session.add_messages(messages[:100])
            done = session.commit()
            first = start_worker(folder, settings)
            model.wait_for_calls(3, PATIENCE)
            first.kill()
            first.wait()
            asked = model.calls
            task = client.get_task(str(done.task_id))
            say(
                f"killed after {asked} calls of the model; step {task.progress.done} of {task.progress.total} is kept,"
                f" and all {len(session.context().messages)} messages are still in the context"
            )
            second = start_worker(folder, settings)
            try:
                task = watch(client, str(done.task_id))
            finally:
                second.terminate()
                second.wait()
            pieces = task.progress.total - 2
            say(
                f"another one went on: {task.status}. {pieces} pieces cost {model.calls} calls in all, so"
                f" {model.calls - pieces} was made again: the one that was cut off"
            )


def watch(client: holdfast.Client, task_id: str) -> Task:
    with bar() as progress:
        shown = progress.add_task("summarising", total=None)
        deadline = time.monotonic() + PATIENCE
        while True:
            task = client.get_task(task_id)
            progress.update(shown, completed=task.progress.done, total=task.progress.total)
            if task.status not in {"pending", "running"} or time.monotonic() > deadline:
                return task
            time.sleep(0.01)


def start_worker(folder: Path, settings: dict[str, str]) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "holdfast", "worker", "--path", str(folder)]
    return subprocess.Popen(
        command, env={**os.environ, **settings}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def shortened(overview: str, lines: int = 40) -> str:
    """The beginning of an overview, with the ids of messages cut short so that they can be read."""
    shown = re.sub(r"msg_([0-9a-f]{4})[0-9a-f]+", r"msg_\1…", overview).splitlines()
    more = len(shown) - lines
    return "\n".join(shown[:lines] + ([f"*… and {more} lines more*"] if more > 0 else []))
