"""Fork safety. No other module calls `os.register_at_fork`.

A forked child has a copy of its parent's memory, but only the thread that called `fork`. Four things go wrong:

- A lock that another thread held stays locked in the child forever. Either the child replaces it (`Lock`,
  `reset_in_child`), or the parent holds it during the fork, so that no other thread can (`lock_held_by_forks`).
- Threads and thread pools are gone, with the work that waited for them. The child starts new ones (`reset_in_child`).
- Connections are shared with the parent: both would read and write the same socket. The child drops them and opens
  new ones. SQLite connections must not cross a fork at all: they are closed before it (`register`).
- Random generators repeat what the parent's produce. The child seeds them again (`in_child`).

Hooks before a fork run in reverse order of registration, hooks after it in order of registration. Two are registered
that run before a fork. `lazy` is imported first, so its lock is taken last: SQLite's hook waits until no transaction
runs, a transaction may import a module, and an import never waits for a transaction.

A hook cannot be removed. Register at module level only, and add objects to the set that `reset_in_child` returns.
An object that opens connections when it is used can also compare `os.getpid()` with the process that opened them.
On a platform without `fork` nothing is registered.
"""

import os
import threading
import weakref
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
Hook = Callable[[], object]

CAN_FORK = hasattr(os, "register_at_fork")


def register(*, before: Hook, in_parent: Hook, in_child: Hook) -> None:
    """Run `before` each fork, then `in_parent` and `in_child` on the two sides of it.

    The hooks after a fork run only if `before` was called for the same fork. Another thread may register them during
    a fork, for example while it imports this module's caller.
    """
    thread = threading.local()

    def begin() -> None:
        thread.forks = True
        before()

    def ending_with(hook: Hook) -> Hook:
        def end() -> None:
            if getattr(thread, "forks", False):
                thread.forks = False
                hook()

        return end

    if CAN_FORK:
        os.register_at_fork(before=begin, after_in_parent=ending_with(in_parent), after_in_child=ending_with(in_child))


def in_child(hook: Hook) -> None:
    """Run `hook` in each forked child, before `fork` returns there."""
    if CAN_FORK:
        os.register_at_fork(after_in_child=hook)


def reset_in_child(reset: Callable[[T], object]) -> "weakref.WeakSet[T]":
    """Return a set. A forked child calls `reset` with each object of the set that is still in use."""
    objects: weakref.WeakSet[T] = weakref.WeakSet()

    def reset_all() -> None:
        for each in list(objects):
            reset(each)

    in_child(reset_all)
    return objects


def lock_held_by_forks() -> "threading.RLock":
    """Return a lock that the forking thread holds during each fork. A thread that holds it delays the fork."""
    lock = threading.RLock()
    register(before=lock.acquire, in_parent=lock.release, in_child=lock.release)
    return lock


class Lock:
    """A lock that a forked child finds released, also if another thread held it in the parent."""

    def __init__(self) -> None:
        self._renew()
        in_child(self._renew)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _renew(self) -> None:
        self._lock = threading.Lock()
