"""Vectors without a model run: each token has one, and a text has their mean."""

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from holdfast import forking, lazy
from holdfast.errors import FailedPreconditionError
from holdfast.providers.base import Embedded

DIMENSIONS = 256
MAX_TEXT_CHARS = 20_000
"""In characters. The mean of more than that is the same grey for every text."""

_lock = forking.Lock()


class StaticVectors:
    """The 32,000 vectors of the `wordllama` package, loaded when they are first needed, once for the process."""

    name = "static"
    space = "wordllama-l2-supercat-256"
    dimensions = DIMENSIONS

    def embed(self, texts: Sequence[str]) -> Embedded:
        np = lazy.numpy
        with _lock:  # two threads that find nothing loaded would both load it
            tokenizer, table = _loaded()
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for at, text in enumerate(texts):  # a batch would start threads of its own, which no fork survives
            ids = tokenizer.encode(text[:MAX_TEXT_CHARS], add_special_tokens=False).ids
            if ids:
                vectors[at] = table[ids].sum(axis=0, dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return Embedded(vectors)

    def close(self) -> None:
        """There is nothing to let go of: what is loaded serves the whole process."""


@cache
def _loaded() -> tuple[Any, Any]:
    """The tokenizer and the table of vectors. The package itself is not imported: it sets up logging and more."""
    folder = _folder()
    tokenizer = lazy.tokenizers.Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    (table,) = lazy.safetensors.load_file(folder / "weights" / "l2_supercat_256.safetensors").values()
    return tokenizer, table


def _folder() -> Path:
    spec = find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise FailedPreconditionError("the package wordllama is missing; install it with: pip install wordllama")
    return Path(spec.origin).parent
