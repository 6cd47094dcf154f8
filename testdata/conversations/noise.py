"""What tools print all day: long, full of numbers, and worth nothing tomorrow."""

_PARTS = ["scheduler", "cache", "gateway", "worker", "indexer", "mailer", "router"]
_EVENTS = [
    "request handled in {ms} ms, {n} items in queue",
    "heartbeat sent, lag {n}, next in {ms} ms",
    "flushed {n} entries to segment {ms}",
    "connection reused, pool {n} of {ms}",
    "config unchanged, revision {ms}",
]
_TOPICS = ["ranking", "pooling", "indexing", "sampling", "scoring", "caching"]


def log(lines: int, seed: int) -> str:
    """Lines of a log; another seed gives other lines."""
    found: list[str] = []
    for at in range(lines):
        number = seed * 131 + at * 17
        event = _EVENTS[number % len(_EVENTS)].format(ms=number % 389 + 3, n=number % 53)
        found.append(f"{number % 24:02d}:{number % 60:02d}:{at % 60:02d} INFO {_PARTS[number % len(_PARTS)]} {event}")
    return "\n".join(found)


def log_zh(lines: int, seed: int) -> str:
    return "\n".join(
        f"{at % 24:02d}:{seed % 60:02d} 信息 任务{seed * 31 + at} 正常，耗时{at * 7 + seed}毫秒" for at in range(lines)
    )


def listing(rows: int, seed: int) -> str:
    """A table of files as a shell prints it."""
    return "\n".join(f"-rw-r--r-- 1 app app {seed * 977 + at * 41:>7} part-{seed:03d}-{at:04d}" for at in range(rows))


def prose(sentences: int, seed: int) -> str:
    """Filler as it stands in a long document."""
    return " ".join(
        f"Prior work on {_TOPICS[(seed + at) % len(_TOPICS)]} considers a related setting and leaves the cost of"
        f" {_TOPICS[(seed + at + 2) % len(_TOPICS)]} to future study."
        for at in range(sentences)
    )
