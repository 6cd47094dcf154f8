"""Opening, sharing and closing clients, and leaving a process."""

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest

import holdfast
from holdfast.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError


def run(code: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_importing_holdfast_loads_no_heavy_library() -> None:
    heavy = "apsw psycopg asyncio rich numpy httpx2 starlette"
    out = run("import sys, holdfast\nprint([m for m in sys.argv[1].split() if m in sys.modules])", heavy)
    assert out == "[]\n"


def test_the_embedded_client_loads_neither_psycopg_nor_rich() -> None:
    code = """
        import sys, holdfast
        holdfast.connect(":memory:").close()
        print("psycopg" in sys.modules, "rich" in sys.modules)
    """
    assert run(code) == "False False\n"


def test_connect_uses_the_data_folder_of_the_platform(tmp_path: Path) -> None:
    code = """
        import holdfast
        with holdfast.connect() as client:
            client.add_message("chat_001", "user", "hello")
    """
    run(code, XDG_DATA_HOME=str(tmp_path))
    with holdfast.connect(tmp_path / "holdfast") as client:
        assert [message.text for message in client.session("chat_001").messages] == ["hello"]


def test_added_messages_survive_an_exit_without_close(target: str) -> None:
    code = """
        import sys, holdfast
        client = holdfast.connect(sys.argv[1])
        client.add_message("chat_001", "user", "hello")
        print("added")
    """
    assert run(code, target) == "added\n"
    with holdfast.connect(target) as client:
        assert [message.text for message in client.session("chat_001").messages] == ["hello"]


def test_an_exit_while_threads_are_writing_is_clean(target: str) -> None:
    code = """
        import sys, threading, holdfast
        client = holdfast.connect(sys.argv[1])
        started = threading.Event()
        def write():
            for number in range(200):
                print(client.add_message("chat_001", "user", str(number)).seq, flush=True)
                started.set()
        threading.Thread(target=write).start()
        started.wait()
    """
    acknowledged = [int(line) for line in run(code, target).split()]
    assert acknowledged == list(range(1, 201))
    with holdfast.connect(target) as client:
        assert client.get_session("chat_001").total_message_count == 200


def test_closing_leaves_one_file(tmp_path: Path) -> None:
    with holdfast.connect(tmp_path) as client:
        client.add_message("chat_001", "user", "hello")
    assert [file.name for file in tmp_path.iterdir()] == ["holdfast.db"]


def test_a_closed_client_raises_an_error(target: str) -> None:
    client = holdfast.connect(target)
    client.close()
    client.close()
    with pytest.raises(FailedPreconditionError, match="closed"):
        client.create_session("chat_001")


def test_a_closed_asynchronous_client_raises_an_error(target: str) -> None:
    async def main() -> None:
        client = holdfast.connect_async(target)
        await client.create_session("chat_001")
        await client.close()
        await client.close()
        with pytest.raises(FailedPreconditionError, match="closed"):
            await client.create_session("chat_002")

    asyncio.run(main())


def test_closing_an_asynchronous_client_while_it_opens_leaves_no_open_files(tmp_path: Path) -> None:
    async def main() -> None:
        client = holdfast.connect_async(tmp_path)
        adding = asyncio.ensure_future(client.add_message("chat_001", "user", "hello"))
        await asyncio.sleep(0)
        adding.cancel()
        await client.close()

    asyncio.run(main())
    assert [file.name for file in tmp_path.iterdir()] == ["holdfast.db"]


def test_the_synchronous_client_works_inside_a_running_event_loop(target: str) -> None:
    async def main() -> int:
        with holdfast.connect(target) as client:
            return client.add_message("chat_001", "user", "hello").seq

    assert asyncio.run(main()) == 1


def test_the_asynchronous_client_works_as_documented(target: str) -> None:
    async def main() -> None:
        async with holdfast.connect_async(target) as client:
            session = client.session(session_id="oauth_help")
            await session.add_message("user", [{"type": "text", "text": "How do I implement OAuth?"}])
            await session.used(contexts=["viking://resources/docs/oauth.md"])
            assert [message.text for message in await session.messages] == ["How do I implement OAuth?"]
            assert (await session.stats).contexts_used == 1
            info = await client.get_session("oauth_help")
            assert info["message_count"] == 1

    asyncio.run(main())


def test_the_asynchronous_client_never_blocks_its_loop(tmp_path: Path) -> None:
    """The event loop runs on while another process locks the database for half a second."""
    file = tmp_path / "holdfast.db"
    holdfast.connect(file).close()
    lock = """
        import apsw, sys, time
        connection = apsw.Connection(sys.argv[1])
        connection.execute("BEGIN IMMEDIATE")
        print("locked", flush=True)
        time.sleep(0.7)
        connection.execute("ROLLBACK")
    """

    async def main() -> int:
        async with holdfast.connect_async(file) as client:
            adding = asyncio.ensure_future(client.add_message("chat_001", "user", "hello"))
            ticks = 0
            while not adding.done():
                await asyncio.sleep(0.01)
                ticks += 1
            assert adding.result().seq == 1
            return ticks

    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(lock), str(file)], stdout=subprocess.PIPE) as locker:
        assert locker.stdout is not None
        assert locker.stdout.readline() == b"locked\n"
        ticks = asyncio.run(main())
    assert ticks > 10


def test_a_cancelled_caller_leaves_the_client_usable(target: str) -> None:
    async def main() -> int:
        async with holdfast.connect_async(target) as client:
            adding = asyncio.ensure_future(client.add_message("chat_001", "user", "one", idempotency_key="k"))
            await asyncio.sleep(0)
            adding.cancel()
            with pytest.raises(asyncio.CancelledError):
                await adding
            added = await client.add_message("chat_001", "user", "one", idempotency_key="k")
            return added.seq

    assert asyncio.run(main()) == 1


def test_many_threads_can_share_a_client(target: str) -> None:
    with holdfast.connect(target) as client:

        def add_messages(name: str) -> None:
            session = client.session(name)
            for number in range(20):
                session.add_message("user", content=str(number))
                assert len(session.messages) == number + 1

        threads = [threading.Thread(target=add_messages, args=(f"s{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {row.message_count for row in client.list_sessions()} == {20}
        assert len(client.list_sessions()) == 8


@pytest.mark.parametrize("target", ["ftp://localhost", "mysql://x"])
def test_an_unknown_url_scheme_is_rejected(target: str) -> None:
    with pytest.raises(InvalidArgumentError, match="neither a path nor"):
        holdfast.connect(target)


def test_a_file_that_is_not_a_database_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    file.write_text("dear diary, " * 100)
    with pytest.raises(UnavailableError, match="not a Holdfast database"):
        holdfast.connect(file)
    assert file.read_text().startswith("dear diary")


def test_a_database_of_another_program_is_rejected(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "other.db"))
    connection.execute("CREATE TABLE messages (mail TEXT)")
    connection.close()
    with pytest.raises(FailedPreconditionError, match="database of another program"):
        holdfast.connect(tmp_path / "other.db")
    connection = apsw.Connection(str(tmp_path / "other.db"))
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("messages",)]
    connection.close()


@pytest.mark.parametrize("target", [5, b"x", "~nosuchuser/x", "postgresql://x?nonsense=1"])
def test_an_invalid_target_is_rejected(target: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        holdfast.connect(target)


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file" / "deeper", "a\0b"):
        with pytest.raises(UnavailableError, match="cannot be created"):
            holdfast.connect(folder)


def test_invalid_settings_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="settings"):
        holdfast.connect(":memory:", settings={})  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="tool_output_threshold"):
        holdfast.connect(":memory:", settings=holdfast.Settings(tool_output_threshold=-1))


def test_an_unreachable_database_server_is_an_error(tmp_path: Path) -> None:
    settings = holdfast.Settings(postgres_wait_seconds=0.5)
    with pytest.raises(UnavailableError, match="check that the server runs"):
        holdfast.connect(f"postgresql://nobody@/none?host={tmp_path}", settings=settings)


def test_settings_are_passed_to_the_engine(target: str) -> None:
    settings = holdfast.Settings(tool_output_threshold=10, tool_output_preview=4)
    with holdfast.connect(target, settings=settings) as client:
        client.add_message("chat_001", "tool", parts=[holdfast.ToolPart(output="0123456789abcdef")])
        part: Any = client.session("chat_001").messages[0].parts[0]
        assert (part.tool_output, part.tool_output_chars) == ("0123", 16)
