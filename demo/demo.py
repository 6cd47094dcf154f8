"""A tour of Holdfast in the terminal. Run it with `make demo`."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

import httpx2
from committing import show_commit, show_killed_worker
from documents import show_documents
from output import console, heading, print_line, progress_bar, show_error, show_messages
from rich.table import Table
from rich.text import Text

import holdfast
from holdfast import ContextPart, TextPart, ToolPart


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        console.print("[bold]Holdfast[/bold]: the durable session layer for AI agents.")
        console.print("[dim]The demo runs real operations in a temporary folder, which is deleted at the end.[/dim]")
        with holdfast.connect(folder) as client:
            show_conversation(client)
            show_exactly_once(client)
            show_bad_input(client)
            show_large_tool_output(client)
            show_fork(client)
            show_search(client)
            show_recall(client)
            show_documents(client)
            show_commit(client)
        show_killed_worker(Path(folder))
        show_killed_writer(Path(folder))
        show_server(Path(folder))
    console.print("\nEnd of the demo. Continue with README.md; [bold]make test[/bold] runs all tests.")


def show_conversation(client: holdfast.Client) -> None:
    heading("A conversation is stored", "one file, no server, no key")
    session = client.session("chat_001")
    session.add_message("user", [TextPart("My API answers 401 after an hour. It never did before Tuesday.")])
    session.add_message(
        "assistant",
        [
            TextPart("Your access tokens expire after 3600 s; the refresh was removed on Tuesday."),
            ContextPart(
                uri="viking://resources/docs/auth.md", context_type="resource", abstract="Authentication guide"
            ),
        ],
    )
    session.add_message("user", [TextPart("Bring it back, but never touch the billing service.")])
    session.used(contexts=["viking://resources/docs/auth.md"])
    show_messages(session.messages)
    stats = session.stats
    print_line(
        f"{session.uri} has {stats.message_count} live messages, about {stats.pending_tokens} tokens,"
        f" and used {stats.contexts_used} context."
    )


def show_exactly_once(client: holdfast.Client) -> None:
    heading("Appends are safe to retry", "the response was lost; the agent sends the message again")
    first = client.add_message("chat_001", "assistant", "Done: refresh restored.", idempotency_key="turn-4")
    again = client.add_message("chat_001", "assistant", "Done: refresh restored.", idempotency_key="turn-4")
    print_line(
        f"sent twice, stored once: seq {first.seq} and {again.seq}, same id: {first.message_id == again.message_id}"
    )
    show_error(lambda: client.add_message("chat_001", "assistant", "Done: something else.", idempotency_key="turn-4"))
    print_line("Two agents use one session. The second one has not read the latest message, so its append is rejected:")
    show_error(lambda: client.add_message("chat_001", "assistant", "I think we are at 3?", expected_seq=3))


def show_bad_input(client: holdfast.Client) -> None:
    heading("Invalid input is rejected", "the error names the field; nothing is changed")
    show_error(lambda: client.add_message("../secrets", "user", "hello"))
    show_error(lambda: client.add_message("chat_001", "robot", "hello"))  # type: ignore[arg-type]
    show_error(lambda: client.add_message("chat_001", "user", parts=[{"type": "hologram"}]))
    print_line(f"Still {client.get_session('chat_001').message_count} messages.")


def show_large_tool_output(client: holdfast.Client) -> None:
    heading("A large tool output does not fill the context", "it is stored separately; the message has a preview")
    log = "".join(f"2026-03-24T09:{n // 60 % 60:02}:{n % 60:02} GET /v1/items/{n} 200\n" for n in range(20_000))
    log += "2026-03-24T14:33:20 GET /v1/items/7 401 token expired\n"
    part = ToolPart(tool_id="call_7", tool_name="read_log", input={"file": "api.log"}, output=log, success=True)
    added = client.add_message("chat_001", "tool", parts=[part])
    (result,) = client.list_tool_results("chat_001").tool_results
    message = client.get_messages("chat_001", added.seq).messages[0]
    print_line(f"{result.chars:,} characters of output cost {message.tokens} tokens in the message.")
    (match,) = client.search_tool_result("chat_001", result.tool_result_id, "token expired", context_chars=30).matches
    print_line(f"search result: “{match.context.strip()}” at character {match.offset:,}")


def show_fork(client: holdfast.Client) -> None:
    heading("A fork shares its messages", "100,000 messages, none is copied")
    with progress_bar() as progress:
        for _ in progress.track(range(1_000), description="adding batches of 100"):
            batch = [{"role": "user", "content": f"message number {n}"} for n in range(100)]
            client.batch_add_messages("long", batch)
    started = time.perf_counter()
    forked = client.fork_session("long", 50_000, new_session_id="what-if")
    took = (time.perf_counter() - started) * 1_000
    client.add_message("what-if", "user", "And if we had done it the other way?")
    print_line(
        f"forked at message {forked.total_message_count:,} in {took:.1f} ms; the sessions are independent from there"
    )


def show_search(client: holdfast.Client) -> None:
    heading("Messages are searchable at once", "as soon as the append returns")
    show_messages(client.get_messages("chat_001", q="billing touch").messages)
    table = Table("session", "messages", "title", box=None, padding=(0, 2))
    for row in client.list_sessions():
        table.add_row(row.session_id, f"{row.message_count:,}", row.title or "[dim]none[/dim]")
    console.print(table)


def show_recall(client: holdfast.Client) -> None:
    heading("A second conversation recalls the first", "everything that was said is searched, with reasons")
    session = client.session("chat_002")
    session.add_message("user", "The customers complain about 401 errors of the API again.")
    session.add_message("assistant", "I look for what we know about that.")
    query = "Why did it answer 401 after an hour?"
    result = session.search(query, limit=3, context_type="message")
    print_line(f"asked: {query}")
    print_line(f"added from the conversation: {', '.join(result.query_plan.added)}")
    table = Table("score", "where", "text", "why", box=None, padding=(0, 2))
    for hit in result.messages:
        reasons = sorted(hit.reasons, key=lambda reason: -reason.share)[:3]
        why = ", ".join(f"{reason.signal} {reason.share:.2f}" for reason in reasons)
        table.add_row(f"{hit.score:.2f}", f"{hit.session_id}#{hit.seq}", Text(hit.text), f"[dim]{why}[/dim]")
    console.print(table)
    context = session.search(query, limit=3, mode="context", max_tokens=300)
    assert context.stats is not None
    print_line(
        f"As a text for a prompt: {context.stats.returned} entries in {context.stats.used_tokens} of"
        f" {context.stats.max_tokens} tokens, oldest first; {context.stats.dropped} hits did not fit."
    )


def show_killed_writer(folder: Path) -> None:
    heading("kill -9 loses nothing", "a process is killed while it writes")
    code = """
        import sys, holdfast
        session = holdfast.connect(sys.argv[1]).session("crash")
        for number in range(1_000_000):
            print(session.add_message("user", content=f"step {number}").seq, flush=True)
    """
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    acknowledged = [int(writer.stdout.readline()) for _ in range(500)]
    os.kill(writer.pid, signal.SIGKILL)
    acknowledged += [int(line) for line in writer.stdout.read().splitlines() if line.isdigit()]
    writer.wait()
    writer.stdout.close()
    with holdfast.connect(folder) as client:
        stored = [message.seq for message in client.session("crash").messages]
        missing = set(acknowledged) - set(stored)
        print_line(
            f"acknowledged {len(acknowledged)}, stored {len(stored)}, missing {len(missing)},"
            f" without gaps: {stored == list(range(1, len(stored) + 1))}"
        )
        print_line(f"the next append works: seq {client.add_message('crash', 'user', 'back again').seq}")


def show_server(folder: Path) -> None:
    heading("The server can be killed as well", "it is killed and restarted while clients append")
    server = start_server(folder, 0)
    url = read_url(server)
    print_line(f"GET {url}/health returns {httpx2.get(f'{url}/health').json()['status']}.")
    done = threading.Event()
    acknowledged: list[str] = []
    threads = [threading.Thread(target=keep_appending, args=(url, acknowledged, done)) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(1)
        server.kill()
        server.wait()
        before = len(acknowledged)
        server = start_server(folder, int(url.rsplit(":", 1)[1]))
        read_url(server)
        time.sleep(1)
        done.set()
        for thread in threads:
            thread.join()
        with holdfast.connect(url) as client:
            stored = [message.text for message in client.session("served").messages]
    finally:
        done.set()
        server.terminate()
        server.wait()
    print_line(f"{before} appends were acknowledged before the kill, {len(acknowledged) - before} after it.")
    lost, duplicated = len(set(acknowledged) - set(stored)), len(stored) - len(set(stored))
    console.print(
        f"[bold]lost {lost}, duplicated {duplicated}[/bold]: each append had an idempotency key, so retries were safe"
    )


def start_server(folder: Path, port: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "holdfast", "serve", "--path", str(folder), "--port", str(port)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def read_url(server: "subprocess.Popen[str]") -> str:
    assert server.stdout
    (url,) = re.findall(r"http://\S+:\d+", server.stdout.readline())
    return str(url)


def keep_appending(url: str, acknowledged: list[str], done: threading.Event) -> None:
    name = threading.current_thread().name
    with holdfast.connect(url, settings=holdfast.Settings(http_attempts=20)) as client:
        number = 0
        while not done.is_set():
            number += 1
            client.add_message("served", "user", f"{name} says {number}")
            acknowledged.append(f"{name} says {number}")


if __name__ == "__main__":
    main()
