"""Creates and changes sessions in several threads, until it is killed: `auditing.py TARGET NAME`.

It prints the session and the number of each change after it was acknowledged.
"""

import os
import sys
import threading

import holdfast

THREADS = 6


def change_sessions(client: holdfast.Client, name: str) -> None:
    number = 0
    while True:
        session_id = f"{name}-{number // 5}"
        if number % 5 == 0:
            client.create_session(session_id)
        client.update_session(session_id, title=str(number))
        client.add_message(session_id, "user", "an append is not audited")
        client.get_session(session_id)  # the first read is audited, in the background
        os.write(1, f"{session_id} {number}\n".encode())
        number += 1


def main() -> None:
    target, name = sys.argv[1:]
    with holdfast.connect(target) as client:
        threads = [
            threading.Thread(target=change_sessions, args=(client, f"{name}{thread}")) for thread in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main()
