"""The child process that runs jobs: `python -m holdfast.computing.child OPTIONS`.

It reads requests from standard input and writes replies to standard output. It opens no file, database or connection,
and writes no texts to a log.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

import msgspec

from holdfast import lazy
from holdfast.computing import limits, protocol
from holdfast.computing.job import Job, JobContext
from holdfast.computing.protocol import ChildOptions, Failed, Finished, OutOfMemory, Ready, Request, VectorsNeeded
from holdfast.errors import HoldfastError, describe_unexpected
from holdfast.json_documents import json_decoder
from holdfast.providers.static_vectors import StaticEmbedder

_encode = msgspec.json.encode
_decode_request = msgspec.json.Decoder(Request).decode
_OUT_OF_MEMORY = _encode(OutOfMemory())


class VectorsNeededError(Exception):
    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__()
        self.texts = texts


def main() -> None:
    options = msgspec.json.decode(sys.argv[1], type=ChildOptions)
    limits.end_with_parent(options.parent)
    for number in (signal.SIGINT, signal.SIGTERM):  # the parent ends this process when it has finished its own work
        signal.signal(number, signal.SIG_IGN)
    requests, replies = _take_standard_streams()
    limits.lower_priority()
    limits.limit_memory(options.memory_mb)
    jobs: dict[str, Job[Any, Any]] = {
        job.name: job for module in options.job_modules for job in import_module(module).JOBS
    }
    _write(replies, _encode(Ready()))
    _serve(jobs, requests, replies, options.seconds)


def _take_standard_streams() -> tuple[int, int]:
    """Return files for requests and replies, and redirect what a library may print to standard error."""
    requests, replies = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return requests, replies


def _serve(jobs: dict[str, Job[Any, Any]], requests: int, replies: int, seconds: float) -> None:
    while True:
        try:
            request = _decode_request(protocol.read_frame(lambda size: os.read(requests, size)))
            limits.limit_cpu_time(seconds)
            reply = _run(jobs[request.job], request)
        except EOFError:  # the parent has closed the stream
            return
        except MemoryError:
            break  # outside of the `except` block the memory of the job is free
        _write(replies, reply)
        del request, reply
    _write(replies, _OUT_OF_MEMORY)


def _run(job: Job[Any, Any], request: Request) -> bytes:
    try:
        input = json_decoder(job.input_type).decode(request.input)  # noqa: A001
        output = job.run(input, JobContext(_embedder(request)))
        return _encode(Finished(msgspec.Raw(_encode(output))))
    except VectorsNeededError as needed:
        return _encode(VectorsNeeded(list(needed.texts)))
    except MemoryError:
        raise
    except HoldfastError as error:
        return _encode(Failed(error.code, error.message, error.details))
    except Exception as error:  # noqa: BLE001 - the parent reports it
        message = f"the computation {job.name!r} failed: {describe_unexpected(error)}"
        return _encode(Failed(HoldfastError.code, message, {}))


def _embedder(request: Request) -> Callable[[Sequence[str]], Any]:
    vectors = request.vectors
    if vectors is not None:
        return lambda _texts: lazy.numpy.frombuffer(vectors.data, "float32").reshape(-1, vectors.dimensions)
    return (lambda texts: StaticEmbedder().embed(texts).vectors) if request.embeds_locally else _ask_for_vectors


def _ask_for_vectors(texts: Sequence[str]) -> NoReturn:
    raise VectorsNeededError(texts)


def _write(replies: int, document: bytes) -> None:
    for data in (protocol.pack(len(document)), document):
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(replies, rest) :]


if __name__ == "__main__":
    main()
