"""Filler: long tool outputs full of numbers that no summary has to keep."""

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
    """Return lines of a log. Each seed gives different lines."""
    output: list[str] = []
    for at in range(lines):
        number = seed * 131 + at * 17
        event = _EVENTS[number % len(_EVENTS)].format(ms=number % 389 + 3, n=number % 53)
        output.append(f"{number % 24:02d}:{number % 60:02d}:{at % 60:02d} INFO {_PARTS[number % len(_PARTS)]} {event}")
    return "\n".join(output)


def log_zh(lines: int, seed: int) -> str:
    return "\n".join(
        f"{at % 24:02d}:{seed % 60:02d} 信息 任务{seed * 31 + at} 正常，耗时{at * 7 + seed}毫秒" for at in range(lines)
    )


def listing(rows: int, seed: int) -> str:
    """Return a table of files in the format of `ls -l`."""
    return "\n".join(f"-rw-r--r-- 1 app app {seed * 977 + at * 41:>7} part-{seed:03d}-{at:04d}" for at in range(rows))


def prose(sentences: int, seed: int) -> str:
    """Return sentences in the style of a long document."""
    return " ".join(
        f"Prior work on {_TOPICS[(seed + at) % len(_TOPICS)]} considers a related setting and leaves the cost of"
        f" {_TOPICS[(seed + at + 2) % len(_TOPICS)]} to future study."
        for at in range(sentences)
    )
