"""Holdfast's main job, in the terminal: a conversation is kept, whatever happens. Run it with `make demo`."""

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
from committing import a_commit, a_killed_worker
from rich.table import Table
from telling import bar, console, heading, refused, say, show

import holdfast
from holdfast import ContextPart, TextPart, ToolPart


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        console.print("[bold]Holdfast[/bold]: the durable session layer for AI agents.")
        console.print("[dim]Everything below is real and happens in a folder that is deleted afterwards.[/dim]")
        with holdfast.connect(folder) as client:
            a_conversation(client)
            exactly_once(client)
            bad_input(client)
            a_large_tool_output(client)
            a_fork(client)
            finding_it_again(client)
            a_commit(client)
        a_killed_worker(Path(folder))
        killed_while_writing(Path(folder))
        over_http(Path(folder))
    console.print("\nThat was it. README.md goes on from here; [bold]make test[/bold] proves it.")


def a_conversation(client: holdfast.Client) -> None:
    heading("A conversation is kept", "one file, no server, no key")
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
    show(session.messages)
    stats = session.stats
    say(
        f"{session.uri} holds {stats.message_count} live messages, about {stats.pending_tokens} tokens,"
        f" and used {stats.contexts_used} context."
    )


def exactly_once(client: holdfast.Client) -> None:
    heading("A retry is harmless", "the answer was lost; the agent sends it again")
    first = client.add_message("chat_001", "assistant", "Done: refresh restored.", idempotency_key="turn-4")
    again = client.add_message("chat_001", "assistant", "Done: refresh restored.", idempotency_key="turn-4")
    say(
        f"sent twice, stored once: seq {first.seq} and {again.seq}, the same id: {first.message_id == again.message_id}"
    )
    refused(lambda: client.add_message("chat_001", "assistant", "Done: something else.", idempotency_key="turn-4"))
    say("Two agents on one session: the second one's picture is out of date, and it is told so.")
    refused(lambda: client.add_message("chat_001", "assistant", "I think we are at 3?", expected_seq=3))


def bad_input(client: holdfast.Client) -> None:
    heading("Bad input is refused by name", "and changes nothing")
    refused(lambda: client.add_message("../secrets", "user", "hello"))
    refused(lambda: client.add_message("chat_001", "robot", "hello"))  # type: ignore[arg-type]
    refused(lambda: client.add_message("chat_001", "user", parts=[{"type": "hologram"}]))
    say(f"Still {client.get_session('chat_001').message_count} messages.")


def a_large_tool_output(client: holdfast.Client) -> None:
    heading("A large output does not flood the window", "kept apart, previewed")
    log = "".join(f"2026-03-24T09:{n // 60 % 60:02}:{n % 60:02} GET /v1/items/{n} 200\n" for n in range(20_000))
    log += "2026-03-24T14:33:20 GET /v1/items/7 401 token expired\n"
    part = ToolPart(tool_id="call_7", tool_name="read_log", input={"file": "api.log"}, output=log, success=True)
    added = client.add_message("chat_001", "tool", parts=[part])
    (result,) = client.list_tool_results("chat_001").tool_results
    message = client.get_messages("chat_001", added.seq).messages[0]
    say(f"{result.chars:,} characters of output cost {message.tokens} tokens in the message.")
    (match,) = client.search_tool_result("chat_001", result.tool_result_id, "token expired", context_chars=30).matches
    say(f"search in it: “{match.context.strip()}” at character {match.offset:,}")


def a_fork(client: holdfast.Client) -> None:
    heading("A fork shares its past", "100,000 messages, no message is copied")
    with bar() as progress:
        for _ in progress.track(range(1_000), description="adding batches of 100"):
            batch = [{"role": "user", "content": f"message number {n}"} for n in range(100)]
            client.batch_add_messages("long", batch)
    started = time.perf_counter()
    forked = client.fork_session("long", 50_000, new_session_id="what-if")
    took = (time.perf_counter() - started) * 1_000
    client.add_message("what-if", "user", "And if we had done it the other way?")
    say(f"forked {forked.total_message_count:,} of them in {took:.1f} ms; both sessions go their own way from there")


def finding_it_again(client: holdfast.Client) -> None:
    heading("Words are searchable at once", "in the same transaction as the message")
    show(client.get_messages("chat_001", q="billing touch").messages)
    table = Table("session", "messages", "title", box=None, padding=(0, 2))
    for row in client.list_sessions():
        table.add_row(row.session_id, f"{row.message_count:,}", row.title or "[dim]none[/dim]")
    console.print(table)


def killed_while_writing(folder: Path) -> None:
    heading("kill -9 loses nothing", "a process that writes is killed without warning")
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
        kept = [message.seq for message in client.session("crash").messages]
        missing = set(acknowledged) - set(kept)
        say(
            f"acknowledged {len(acknowledged)}, found {len(kept)}, missing {len(missing)},"
            f" gapless: {kept == list(range(1, len(kept) + 1))}"
        )
        say(f"and the next append works: seq {client.add_message('crash', 'user', 'back again').seq}")


def over_http(folder: Path) -> None:
    heading("The same over HTTP", "the server is killed while clients append")
    server = serve(folder, 0)
    url = server_url(server)
    say(f"GET {url}/health answers {httpx2.get(f'{url}/health').json()['status']}.")
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
        server = serve(folder, int(url.rsplit(":", 1)[1]))
        server_url(server)
        time.sleep(1)
        done.set()
        for thread in threads:
            thread.join()
        with holdfast.connect(url) as client:
            kept = [message.text for message in client.session("served").messages]
    finally:
        done.set()
        server.terminate()
        server.wait()
    say(f"{before} appends were acknowledged before the kill, {len(acknowledged) - before} after it.")
    lost, doubled = len(set(acknowledged) - set(kept)), len(kept) - len(set(kept))
    console.print(f"[bold]lost {lost}, doubled {doubled}[/bold]: each append carried a key, so asking again was safe")


def serve(folder: Path, port: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "holdfast", "serve", "--path", str(folder), "--port", str(port)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def server_url(server: "subprocess.Popen[str]") -> str:
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
