"""Embeddings with all-MiniLM-L6-v2 on this machine, from a folder with the model's own two files."""

import hashlib
import struct
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from holdfast import forking, lazy
from holdfast.errors import FailedPreconditionError, short_repr
from holdfast.providers.base import EmbeddingResult
from holdfast.providers.bert import BertShape

if TYPE_CHECKING:
    from holdfast.providers.bert import Bert

WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
SHAPE = BertShape(layers=6, dimensions=384, heads=12, inner_dimensions=1536, vocabulary=30_522, positions=512)
MAX_TOKENS = 256
"""The model was trained with texts of this length. Longer texts are truncated."""
MAX_TEXT_CHARS = 4_000
"""What the tokenizer reads of a text: more than `MAX_TOKENS` tokens of any language."""
MAX_HEADER_BYTES = 1024 * 1024
SAMPLE_BYTES = 64 * 1024

_lock = forking.Lock()


class MiniLmEmbedder:
    """all-MiniLM-L6-v2: a BERT with 6 layers and 384 dimensions. The files are read on first use."""

    name = "minilm"
    dimensions = SHAPE.dimensions

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __repr__(self) -> str:
        return f"MiniLmEmbedder({self._folder!r})"

    @property
    def space(self) -> str:
        """It names the files by a hash: vectors of another model with the same shape must not be compared."""
        with _lock:
            return f"minilm-{_fingerprint(self._folder)}"

    def embed(self, texts: Sequence[str]) -> EmbeddingResult:
        with _lock:  # without it, two threads could both load the model
            model = _load(self._folder)
        # One text at a time: encoding a batch would start threads, which are not fork-safe.
        ids = [model.tokenizer.encode(text[:MAX_TEXT_CHARS]).ids if text.strip() else [] for text in texts]
        return EmbeddingResult(model.bert.embed(ids))

    def close(self) -> None:
        """Do nothing: the model is shared by the whole process."""


class _Model(NamedTuple):
    tokenizer: Any
    bert: "Bert"


@lru_cache(maxsize=1)
def _load(folder: str) -> _Model:
    weights, tokenizer_file = _files(folder)
    try:
        tensors = lazy.safetensors.load_file(weights)
        bert = lazy.load("holdfast.providers.bert").Bert(tensors, SHAPE)
    except KeyError as error:
        _reject(weights, f"has no tensor {short_repr(error.args[0])}")
    except ValueError as error:
        _reject(weights, f"is of another model: {error}")
    except Exception as error:  # noqa: BLE001 - the library has error types of its own for a damaged file
        _reject(weights, f"cannot be read: {short_repr(str(error))}")
    try:
        tokenizer = lazy.tokenizers.Tokenizer.from_file(str(tokenizer_file))
    except Exception as error:  # noqa: BLE001 - the library raises Exception itself
        _reject(tokenizer_file, f"cannot be read: {short_repr(str(error))}")
    if tokenizer.get_vocab_size() > SHAPE.vocabulary:
        _reject(tokenizer_file, f"has {tokenizer.get_vocab_size()} tokens, and the model {SHAPE.vocabulary}")
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.encode_special_tokens = True  # a text that mentions `[SEP]` is an ordinary text
    return _Model(tokenizer, bert)


@lru_cache(maxsize=8)
def _fingerprint(folder: str) -> str:
    """A hash of the tokenizer, and of the size, the header and samples of the weights, which are too long to hash."""
    weights, tokenizer_file = _files(folder)
    try:
        with weights.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            (header_bytes,) = struct.unpack("<Q", file.read(8).ljust(8, b"\0"))
            hashed = hashlib.blake2b(file.read(min(header_bytes, MAX_HEADER_BYTES)), digest_size=6)
            for eighth in range(8):
                file.seek(size * eighth // 8)
                hashed.update(file.read(SAMPLE_BYTES))
        hashed.update(size.to_bytes(8, "little"))
        hashed.update(tokenizer_file.read_bytes())
    except OSError as error:
        _reject(Path(folder), f"cannot be read: {error.strerror}")
    return hashed.hexdigest()


def _files(folder: str) -> tuple[Path, Path]:
    try:
        path = Path(folder).expanduser()
        missing = [name for name in (WEIGHTS, TOKENIZER) if not (path / name).is_file()]
    except (OSError, RuntimeError, ValueError) as error:
        _reject(folder, f"cannot be used: {short_repr(str(error))}")
    if missing:
        reason = f"has no file {missing[0]}" if path.is_dir() else "is not a folder"
        _reject(path, reason)
    return path / WEIGHTS, path / TOKENIZER


def _reject(path: Path | str, reason: str) -> NoReturn:
    raise FailedPreconditionError(
        f"{short_repr(str(path))} {reason}; set HOLDFAST_EMBEDDING_MODEL_PATH to a folder with {WEIGHTS} and"
        f" {TOKENIZER} of all-MiniLM-L6-v2"
    ) from None
