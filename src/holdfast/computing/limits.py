"""Limits and priority of the child process, set by the child itself."""

import ctypes
import math
import os
import resource
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

NICE = 10
"""How much lower the priority of the child is than that of its parent."""
OOM_SCORE = "500"
"""If the machine runs out of memory, Linux ends processes with a high score first."""
PARENT_CHECK_SECONDS = 0.5
_PR_SET_PDEATHSIG = 1
_BYTES_PER_MB = 1 << 20


def end_with_parent(parent: int) -> None:
    """End this process when its parent ends in any way, also while it computes in C code.

    Linux does it. On other systems a thread watches the parent, and the limit of CPU time ends C code that keeps that
    thread from running.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if os.getppid() != parent:  # it ended before this function was called
        os._exit(1)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_SECONDS)
    os._exit(1)


def lower_priority() -> None:
    os.nice(NICE)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE, "ascii")


def limit_memory(megabytes: int) -> None:
    """Let allocations fail above a limit. On Linux, memory that is only reserved or shared does not count."""
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    limit = _at_most_hard_limit(kind, megabytes * _BYTES_PER_MB)
    with suppress(ValueError, OSError):  # macOS refuses it
        resource.setrlimit(kind, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would contain texts


def limit_cpu_time(seconds: float) -> None:
    """Let the system end this process with SIGXCPU when it has used `seconds` more of CPU time, rounded up."""
    limit = _at_most_hard_limit(resource.RLIMIT_CPU, math.ceil(time.process_time() + seconds))
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _at_most_hard_limit(kind: int, limit: int) -> int:
    hard = resource.getrlimit(kind)[1]
    return limit if hard == resource.RLIM_INFINITY else min(limit, hard)
