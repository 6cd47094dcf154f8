"""Embeddings without running a model: each token has a fixed vector, and a text has the mean of its tokens' vectors."""

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from holdfast import forking, lazy
from holdfast.errors import FailedPreconditionError
from holdfast.providers.base import EmbeddingResult

DIMENSIONS = 256
MAX_TEXT_CHARS = 20_000
"""Longer texts are truncated, because the mean of very many vectors is nearly the same for every text."""

_lock = forking.Lock()


class StaticEmbedder:
    """Uses the 32,000 token vectors of the `wordllama` package. They are loaded on first use, once per process."""

    name = "static"
    space = "wordllama-l2-supercat-256"  # the name of the set of vectors
    dimensions = DIMENSIONS

    def embed(self, texts: Sequence[str]) -> EmbeddingResult:
        np = lazy.numpy
        with _lock:  # without it, two threads could both load the vectors
            tokenizer, table = _load()
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in enumerate(texts):  # encoding a batch would start threads, which are not fork-safe
            ids = tokenizer.encode(text[:MAX_TEXT_CHARS], add_special_tokens=False).ids
            if ids:
                # The sum instead of the mean: all vectors get the length 1 below.
                vectors[row] = table[ids].sum(axis=0, dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return EmbeddingResult(vectors)

    def close(self) -> None:
        """Do nothing: the vectors are shared by the whole process."""


@cache
def _load() -> tuple[Any, Any]:
    """The tokenizer and the table of vectors. The package is not imported, because its import configures logging."""
    folder = _package_folder()
    tokenizer = lazy.tokenizers.Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    (table,) = lazy.safetensors.load_file(folder / "weights" / "l2_supercat_256.safetensors").values()
    return tokenizer, table


def _package_folder() -> Path:
    spec = find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise FailedPreconditionError("the package wordllama is missing; install it with: pip install wordllama")
    return Path(spec.origin).parent
