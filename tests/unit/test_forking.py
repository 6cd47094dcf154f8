"""Fork hooks: their order, locks and objects in a forked child."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src"

if not hasattr(os, "fork"):
    pytest.skip("this platform does not fork", allow_module_level=True)

PREAMBLE = """
    import os, signal, threading, warnings
    from holdfast import forking

    warnings.simplefilter("ignore", DeprecationWarning)

    def fork(run_in_child):
        pid = os.fork()
        if pid == 0:
            signal.alarm(10)
            run_in_child()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    def report(text):
        os.write(1, f"{text}\\n".encode())
"""


def run(code: str) -> list[str]:
    """Run code in a new process, because hooks cannot be unregistered. Return the lines that it prints."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PREAMBLE) + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.splitlines()


def test_hooks_run_in_reverse_order_before_a_fork_and_in_order_after_it() -> None:
    code = """
        for name in "ab":
            forking.register(
                before=lambda name=name: report(f"before {name}"),
                in_parent=lambda name=name: report(f"parent {name}"),
                in_child=lambda name=name: report(f"child {name}"),
            )
        forking.in_child(lambda: report("child c"))
        fork(lambda: None)
    """
    lines = run(code)
    assert lines[:2] == ["before b", "before a"]
    assert [line for line in lines if "parent" in line] == ["parent a", "parent b"]
    assert [line for line in lines if "child" in line] == ["child a", "child b", "child c"]


def test_hooks_registered_during_a_fork_run_from_the_next_fork_on() -> None:
    code = """
        def register():
            if not registered:
                registered.append(True)
                forking.register(
                    before=lambda: report("before"),
                    in_parent=lambda: report("parent"),
                    in_child=lambda: report("child"),
                )

        registered = []
        os.register_at_fork(before=register)
        fork(lambda: None)
        report("second")
        fork(lambda: None)
    """
    lines = run(code)
    assert lines[:2] == ["second", "before"]
    assert sorted(lines[2:]) == ["child", "parent"]


def test_a_lock_held_by_another_thread_is_free_in_the_child() -> None:
    code = """
        lock, held, end = forking.Lock(), threading.Event(), threading.Event()

        def hold():
            with lock:
                held.set()
                end.wait(20)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(20)

        def take():
            with lock:
                report("taken")

        fork(take)
        end.set()
        thread.join()
    """
    assert run(code) == ["taken"]


def test_a_fork_waits_for_the_thread_that_holds_its_lock() -> None:
    code = """
        lock, held, end = forking.lock_held_by_forks(), threading.Event(), threading.Event()

        def hold():
            with lock:
                held.set()
                end.wait(20)
                report("released")

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(20)
        threading.Timer(0.2, end.set).start()

        def take():
            with lock:
                report("child")

        fork(take)
        thread.join()
        take()
        with lock:
            fork(take)  # the thread that holds the lock may fork
    """
    assert run(code) == ["released", "child", "child", "child"]


def test_a_child_resets_each_object_that_is_still_in_use() -> None:
    code = """
        class Thing:
            def __init__(self, name):
                self.name = name

        things = forking.reset_in_child(lambda thing: report(f"reset {thing.name}"))
        used, unused = Thing("used"), Thing("unused")
        things.add(used)
        things.add(unused)
        del unused
        fork(lambda: None)
        assert list(things) == [used]
    """
    assert run(code) == ["reset used"]


def test_without_fork_nothing_is_registered_and_locks_work() -> None:
    code = """
        import importlib
        del os.register_at_fork
        importlib.reload(forking)
        forking.register(before=int, in_parent=int, in_child=int)
        forking.reset_in_child(str).add(threading.Event())
        with forking.Lock(), forking.lock_held_by_forks():
            report("held")
    """
    assert run(code) == ["held"]


def test_a_transaction_may_import_while_a_fork_waits_for_it() -> None:
    """The import lock is taken after the databases are idle; otherwise fork and transaction would deadlock."""
    code = """
        import time
        import logging  # it registers hooks of its own, which must not happen during the fork
        from holdfast import lazy
        from holdfast.store.drivers.sqlite import forks
        from holdfast.store.drivers.sqlite.database import SqliteDatabase

        signal.alarm(30)
        begun = threading.Event()

        def work(tx):
            begun.set()
            while not forks._fork_lock.locked():
                time.sleep(0.01)
            time.sleep(0.1)
            lazy.load("holdfast.engine.commits.commit_task")
            report("imported")

        database = SqliteDatabase(":memory:")
        thread = threading.Thread(target=database.write, args=("acme", work))
        thread.start()
        begun.wait(20)
        fork(lambda: report("child"))
        thread.join()
    """
    assert run(code) == ["imported", "child"]
