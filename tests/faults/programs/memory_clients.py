"""Many short-lived clients in memory, with threads, commits and closes, for a number of seconds.

If a round hangs, the tracebacks of all threads are printed and the process exits with an error.
"""

import asyncio
import faulthandler
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import holdfast

MAX_ROUND_SECONDS = 30.0


def use_client(number: int) -> None:
    rng = random.Random(number)
    client = holdfast.connect(":memory:", settings=holdfast.Settings(close_seconds=rng.choice([0, 0.05, 5])))
    threads = [threading.Thread(target=_work, args=(client, f"chat_{index}", rng.random())) for index in range(3)]
    for thread in threads:
        thread.start()
    if rng.random() < 0.3:  # close while other threads use it
        time.sleep(rng.random() * 0.02)
        client.close()
    for thread in threads:
        thread.join()
    if rng.random() < 0.8:
        client.close()  # else the client is dropped


def _work(client: holdfast.Client, session: str, pause: float) -> None:
    try:
        for number in range(4):
            client.add_message(session, "user", f"Message {number}: we decided to deploy on Friday.")
        client.commit_session(session)
        time.sleep(pause * 0.01)
        client.get_session_context(session)
        client.add_message(session, "assistant", "Done.")
    except holdfast.errors.HoldfastError as error:
        if "closed" not in error.message:
            raise


async def use_async_client() -> None:
    async with holdfast.connect_async(":memory:") as client:
        await asyncio.gather(*[client.add_message(f"chat_{index % 2}", "user", "hello") for index in range(8)])
        await client.commit_session("chat_0")


def main() -> None:
    seconds = float(sys.argv[1])
    failures: list[BaseException] = []
    threading.excepthook = lambda arguments: failures.append(arguments.exc_value or AssertionError())
    deadline, rounds = time.monotonic() + seconds, 0
    with ThreadPoolExecutor(4) as threads:
        while time.monotonic() < deadline:
            faulthandler.dump_traceback_later(MAX_ROUND_SECONDS, exit=True)
            list(threads.map(use_client, range(rounds * 8, rounds * 8 + 8)))
            asyncio.run(use_async_client())
            rounds += 1
    faulthandler.cancel_dump_traceback_later()
    if failures:
        raise failures[0]
    sys.stdout.write(f"{rounds}\n")


if __name__ == "__main__":
    main()
