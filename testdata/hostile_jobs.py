"""A job that loops, allocates memory, sleeps or crashes on demand. Tests load this module in the child process."""

import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.computing.job import Job, JobContext
from holdfast.text import tokens


class Demand(msgspec.Struct, frozen=True):
    text: str


def _loop() -> None:
    while True:
        pass


def _loop_in_c() -> None:
    re.match(r"(a+)+$", "a" * 64 + "b")  # does not end, and never releases the interpreter lock


def _allocate() -> None:
    blocks = []
    while True:
        blocks.append(bytearray(1 << 20))


DEMANDS: dict[str, Callable[[], Any]] = {
    "loop": _loop,
    "loop in C": _loop_in_c,
    "allocate": _allocate,
    "sleep": lambda: time.sleep(3_600),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "die": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda: os._exit(3),
    "fail": lambda: tokens.counter("a text of the user"),  # raises an error that quotes it
    "print": lambda: os.write(1, b"printed\n"),
}


def _obey(demand: Demand, context: JobContext) -> dict[str, Any]:
    """Do what is demanded, and describe the process that did it."""
    if demand.text in DEMANDS:
        DEMANDS[demand.text]()
    vectors = context.embed(demand.text.split()).tolist() if demand.text.startswith("embed ") else []
    return {
        "text": demand.text,
        "process": os.getpid(),
        "modules": sorted(sys.modules),
        "environment": sorted(os.environ),
        "files": [_target(link) for link in Path("/proc/self/fd").iterdir()] if sys.platform == "linux" else [],
        "nice": os.nice(0),
        "vectors": vectors,
    }


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:  # the file of the listing itself
        return ""


OBEY = Job[Demand, dict[str, Any]]("obey", _obey, Demand, dict[str, Any])
JOBS: list[Job[Any, Any]] = [OBEY]
