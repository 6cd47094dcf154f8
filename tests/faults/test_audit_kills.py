"""Writers of audited changes that are killed with SIGKILL: the chain is intact, and has a line for each change."""

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

import holdfast
from holdfast.testing.fork_server import ForkedProcess

PROGRAM = Path(__file__).parent / "programs" / "auditing.py"


def run_and_kill(targets: list[str], rng: random.Random, name: str) -> set[tuple[str, str]]:
    """Run a program for each target, kill all at a random moment, and return the changes that were acknowledged."""
    programs = [
        ForkedProcess([str(PROGRAM)], [target, f"{name}p{number}t"], start_new_session=True)
        for number, target in enumerate(targets)
    ]
    acknowledged: set[tuple[str, str]] = set()
    for program in programs:  # it has begun to write
        acknowledged.add(parse(program.stdout.readline()))
    time.sleep(rng.uniform(0, 0.3))
    for program in programs:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
    for program in programs:
        with program.stdout as lines:
            acknowledged |= {parse(line) for line in lines if line.endswith(b"\n")}
        program.stderr.close()
        program.wait(60)
    return acknowledged


def parse(line: bytes) -> tuple[str, str]:
    session_id, _, number = line.decode().strip().partition(" ")
    return session_id, number


def visible_changes(client: holdfast.Client) -> Counter[tuple[str, str]]:
    """What was done, as the sessions themselves show it: how often each was created and changed."""
    done: Counter[tuple[str, str]] = Counter()
    cursor: str | None = None
    while True:
        page = client.list_sessions(limit=1_000, cursor=cursor)
        for row in page:
            done["CreateSession", row.session_id] += 1
            events = client.read_events(row.session_id, limit=1_000).events
            kinds = [event.change.kind for event in events if event.change is not None]
            done["UpdateSession", row.session_id] += kinds.count("updated")
        if page.next_cursor is None:
            return +done
        cursor = page.next_cursor


def audited_changes(client: holdfast.Client) -> Counter[tuple[str, str]]:
    lines: Counter[tuple[str, str]] = Counter()
    after: int | None = None
    while True:
        page = client.read_audit_chain(after=after)
        lines.update((line.action, line.resource) for line in page.lines)
        if page.next_cursor is None:
            return Counter({key: count for key, count in lines.items() if key[0] in {"CreateSession", "UpdateSession"}})
        after = page.next_cursor


@pytest.mark.rounds
def test_after_kill_9_the_chain_is_intact_and_has_exactly_the_changes(target: str, *, is_soak: bool) -> None:
    acknowledged: set[tuple[str, str]] = set()
    for seed in range(20 if is_soak else 3):
        acknowledged |= run_and_kill([target] * (1 + seed % 2), random.Random(seed), f"r{seed}")
        with holdfast.connect(target) as client:
            result = client.verify_audit()
            assert (result.problem, result.unsealed) == (None, 0)
            assert audited_changes(client) == visible_changes(client)
    with holdfast.connect(target) as client:
        audited = audited_changes(client)
        for session_id in {session_id for session_id, _ in acknowledged}:
            assert audited["UpdateSession", session_id] >= sum(1 for each in acknowledged if each[0] == session_id)
