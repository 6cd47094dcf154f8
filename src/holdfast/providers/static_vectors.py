"""Embeddings without running a model: each token has a fixed vector, and a text has the mean of its tokens' vectors."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast import forking, lazy
from holdfast.errors import FailedPreconditionError
from holdfast.providers.base import EmbeddingResult

if TYPE_CHECKING:
    from holdfast.providers.base import Vectors

DIMENSIONS = 256
MAX_TEXT_CHARS = 20_000
"""Longer texts are truncated, because the mean of very many vectors is nearly the same for every text."""
MAX_TOKENS_AT_ONCE = 8_192
"""How many rows of the table are copied at once: 8 MB, which stay in the cache of a processor."""
MAX_CONVERTED_ROWS = 30_000
"""After so many rows, the whole table is converted to float32: about as many as it has."""
MAX_REMEMBERED_WORDS = 100_000
MAX_REMEMBERED_CHARS = 32
"""Longer words are rare, and each has many tokens."""
MAX_SHORT_TOKENS = 4
WORDS_AT_ONCE = 512
"""How many words the tokenizer gets in one call. Its time per word grows slowly with the length of the text."""

TokenIds = Sequence[int]

_WORD = re.compile(" +[^ ]*")
_lock = forking.Lock()


class StaticEmbedder:
    """Uses the 32,000 token vectors of the `wordllama` package. They are loaded on first use, once per process."""

    name = "static"
    space = "wordllama-l2-supercat-256"  # the name of the set of vectors
    dimensions = DIMENSIONS

    def embed(self, texts: Sequence[str]) -> EmbeddingResult:
        table = _loaded()
        table.remember(chain.from_iterable(words_of(text[:MAX_TEXT_CHARS]) for text in texts))
        return EmbeddingResult(table.unit_vectors(table.text_ids(text[:MAX_TEXT_CHARS]) for text in texts))

    def close(self) -> None:
        """Do nothing: the vectors are shared by the whole process."""


def word_vectors(words: Sequence[str]) -> "Vectors":
    """A row for each word: the mean of the vectors of its tokens, with length one, or zeros for an empty word."""
    table = _loaded()
    table.remember(words)
    return table.unit_vectors(table.word_ids(words))


def words_of(text: str) -> list[str]:
    """The parts of a text that the tokenizer encodes independently of each other.

    No token has a space after another character. A text is therefore encoded as its words are, each with the space
    before it; further spaces before a word belong to the word. The tokenizer itself adds the space of the first word.
    """
    if not text:
        return []
    if "▁" in text:  # the tokenizer's own sign for a space
        text = text.replace("▁", " ")
    if "  " not in text and text[0] != " ":
        return text.split(" ")
    return [word[1:] for word in _WORD.findall(f" {text}")]


class _Table:
    """The vectors of the tokens, the tokenizer, and the tokens of words that it has encoded."""

    def __init__(self, tokenizer: Any, vectors: Any) -> None:
        self._tokenizer = tokenizer
        self._vectors = vectors
        """Of float16 until many rows were read: to convert all of them takes longer than a search."""
        self._read_rows = 0
        self._space_ids: TokenIds = (tokenizer.token_to_id("▁"),)
        self._remembered: dict[str, TokenIds] = {}

    def text_ids(self, text: str) -> TokenIds:
        get, encode = self._remembered.get, self._encode
        return list(chain.from_iterable([get(word) or encode(word) for word in words_of(text)]))

    def word_ids(self, words: Sequence[str]) -> list[TokenIds]:
        get, text_ids = self._remembered.get, self.text_ids
        return [get(word) or text_ids(word[:MAX_TEXT_CHARS]) for word in words]

    def remember(self, words: Iterable[str]) -> None:
        """Encode the words that are new, many in one call of the tokenizer."""
        remembered = self._remembered
        new = [
            word
            for word in set(words).difference(remembered)
            if word and " " not in word and "▁" not in word and len(word) <= MAX_REMEMBERED_CHARS
        ]
        if len(remembered) + len(new) > MAX_REMEMBERED_WORDS:
            # Another thread may still use the old dictionary; it is never changed back.
            self._remembered = remembered = {}
            new = new[:MAX_REMEMBERED_WORDS]
        for start in range(0, len(new), WORDS_AT_ONCE):
            some = new[start : start + WORDS_AT_ONCE]
            remembered.update(zip(some, self._encode_all(some), strict=True))

    def unit_vectors(self, texts: Iterable[TokenIds]) -> "Vectors":
        """The mean of the vectors of each text's tokens, with length one."""
        np = lazy.numpy
        parts = [self._sums(some) for some in _batches(texts)]
        sums = np.concatenate(parts) if parts else np.zeros((0, DIMENSIONS), dtype=np.float32)
        # The sum has the direction of the mean.
        lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))[:, None]
        np.divide(sums, lengths, out=sums, where=lengths > 0)
        return sums

    def _sums(self, texts: list[TokenIds]) -> "Vectors":
        np = lazy.numpy
        counts = np.fromiter(map(len, texts), dtype=np.intp, count=len(texts))
        ids = np.fromiter(chain.from_iterable(texts), dtype=np.intp, count=int(counts.sum()))
        starts = np.cumsum(counts) - counts
        sums = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        # `reduceat` takes more time to start a row than to add a token: short rows are added token by token.
        for position in range(min(MAX_SHORT_TOKENS, int(counts.max(initial=0)))):
            rows = np.flatnonzero((counts > position) & (counts <= MAX_SHORT_TOKENS))
            if rows.size == len(texts):
                sums += self._rows(ids[starts + position])
            else:
                sums[rows] += self._rows(ids[starts[rows] + position])
        for row in np.flatnonzero(counts > MAX_SHORT_TOKENS):
            self._rows(ids[starts[row] : starts[row] + counts[row]]).sum(axis=0, out=sums[row])
        return sums

    def _rows(self, ids: Any) -> "Vectors":
        """Return the vectors of some tokens, as float32."""
        if self._read_rows <= MAX_CONVERTED_ROWS:
            self._read_rows += len(ids)
            if self._read_rows > MAX_CONVERTED_ROWS:
                self._vectors = self._vectors.astype(lazy.numpy.float32)
        rows: Vectors = self._vectors[ids].astype(lazy.numpy.float32, copy=False)
        return rows

    def _encode(self, word: str) -> TokenIds:
        """The tokens of one word. A word that is only the space before it is empty here."""
        if not word:
            return self._space_ids
        ids: list[int] = self._tokenizer.encode(word, add_special_tokens=False).ids
        return ids

    def _encode_all(self, words: list[str]) -> list[TokenIds]:
        """The tokens of words without spaces. Encoding a batch would start threads, which are not fork-safe."""
        encoding = self._tokenizer.encode(" ".join(words), add_special_tokens=False)
        encoded: list[list[int]] = []
        for token, token_id in zip(encoding.tokens, encoding.ids, strict=True):
            if token[0] == "▁":
                encoded.append([token_id])
            else:
                encoded[-1].append(token_id)
        return [tuple(ids) for ids in encoded]


def _batches(texts: Iterable[TokenIds]) -> Iterator[list[TokenIds]]:
    batch: list[TokenIds] = []
    tokens = 0
    for ids in texts:
        batch.append(ids)
        tokens += len(ids)
        if tokens >= MAX_TOKENS_AT_ONCE:
            yield batch
            batch, tokens = [], 0
    if batch:
        yield batch


def _loaded() -> _Table:
    with _lock:  # without it, two threads could both load the vectors
        return _load()


@cache
def _load() -> _Table:
    """Load the tokenizer and the vectors. The package is not imported, because its import configures logging."""
    folder = _package_folder()
    tokenizer = lazy.tokenizers.Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # a text that mentions `</s>` is an ordinary text
    (vectors,) = lazy.safetensors.load_file(folder / "weights" / "l2_supercat_256.safetensors").values()
    return _Table(tokenizer, vectors)


def _package_folder() -> Path:
    spec = find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise FailedPreconditionError("the package wordllama is missing; install it with: pip install wordllama")
    return Path(spec.origin).parent
