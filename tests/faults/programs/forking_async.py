"""A program whose forked child uses the asynchronous client that its parent has used before."""

import asyncio
import multiprocessing
import sys

import holdfast

TIMEOUT_SECONDS = 15


async def add(client: holdfast.AsyncClient, text: str) -> None:
    await asyncio.gather(*(client.add_message("chat", "user", f"{text} {number}") for number in range(5)))


def add_in_child(client: holdfast.AsyncClient) -> None:
    asyncio.run(add(client, "child"))


def main() -> None:
    client = holdfast.connect_async(sys.argv[1])
    asyncio.run(add(client, "before"))
    child = multiprocessing.get_context("fork").Process(target=add_in_child, args=(client,))
    child.start()
    child.join(TIMEOUT_SECONDS)
    child.kill()
    child.join()
    asyncio.run(add(client, "after"))
    asyncio.run(client.close())
    sys.exit(child.exitcode)


if __name__ == "__main__":
    main()
