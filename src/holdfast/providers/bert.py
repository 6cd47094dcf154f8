"""The forward pass of a BERT encoder in numpy: token ids in, one unit vector for each text out."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast import lazy

if TYPE_CHECKING:
    from holdfast.providers.base import Vectors

NORM_EPSILON = 1e-12
MAX_BATCH_TOKENS = 2_048
"""How many tokens are computed at once, padding included. It bounds the memory of a batch to some 50 MB."""
MASKED = -1e9
"""Added to the attention to padding: its weight becomes 0."""


class BertShape(NamedTuple):
    layers: int
    dimensions: int
    heads: int
    inner_dimensions: int
    """The width between the two dense layers of a block."""
    vocabulary: int
    positions: int
    """The maximum number of tokens of a text."""


class _Dense(NamedTuple):
    weight: Any
    bias: Any

    def __call__(self, x: Any) -> Any:
        y = x @ self.weight
        y += self.bias
        return y


class _Norm(NamedTuple):
    weight: Any
    bias: Any

    def __call__(self, x: Any) -> Any:
        np = lazy.numpy
        x -= x.mean(axis=-1, keepdims=True)
        variance = np.einsum("ij,ij->i", x, x)[:, None] / np.float32(x.shape[-1])
        x /= np.sqrt(variance + np.float32(NORM_EPSILON))
        x *= self.weight
        x += self.bias
        return x


class _Layer(NamedTuple):
    attention_input: _Dense
    """Queries, keys and values in one matrix."""
    attention_output: _Dense
    attention_norm: _Norm
    inner: _Dense
    output: _Dense
    output_norm: _Norm


class Bert:
    """A BERT encoder with the mean of its last layer as the vector of a text."""

    def __init__(self, tensors: Mapping[str, Any], shape: BertShape) -> None:
        """Raises `KeyError` for a tensor that is missing, and `ValueError` for one of another shape."""
        self._shape = shape
        take = _Tensors(tensors)
        size, inner = shape.dimensions, shape.inner_dimensions
        self._words = take.matrix("embeddings.word_embeddings.weight", shape.vocabulary, size)
        positions = take.matrix("embeddings.position_embeddings.weight", shape.positions, size)
        self._positions = positions + take.matrix("embeddings.token_type_embeddings.weight", 1, size)[0]
        self._norm = take.norm("embeddings.LayerNorm", size)
        self._layers = [
            _Layer(
                take.stacked([f"{name}.attention.self.{part}" for part in ("query", "key", "value")], size),
                take.dense(f"{name}.attention.output.dense", size, size),
                take.norm(f"{name}.attention.output.LayerNorm", size),
                take.dense(f"{name}.intermediate.dense", size, inner),
                take.dense(f"{name}.output.dense", inner, size),
                take.norm(f"{name}.output.LayerNorm", size),
            )
            for name in (f"encoder.layer.{number}" for number in range(shape.layers))
        ]

    def embed(self, texts: Sequence[Sequence[int]]) -> "Vectors":
        """A unit vector for each text. Texts of similar length are computed together, since a batch is padded."""
        np = lazy.numpy
        vectors = np.zeros((len(texts), self._shape.dimensions), dtype=np.float32)
        by_length = sorted((row for row, ids in enumerate(texts) if ids), key=lambda row: len(texts[row]))
        while by_length:
            longest = len(texts[by_length[-1]])
            count = max(1, MAX_BATCH_TOKENS // longest)
            rows = by_length[-count:]
            del by_length[-count:]
            vectors[rows] = self._forward([texts[row] for row in rows], longest)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return vectors

    def _forward(self, texts: list[Sequence[int]], longest: int) -> Any:
        """The sum of the last layer over the tokens of each text."""
        np = lazy.numpy
        ids = np.zeros((len(texts), longest), dtype=np.intp)
        is_token = np.zeros((len(texts), longest), dtype=np.float32)
        for row, text in enumerate(texts):
            ids[row, : len(text)] = text
            is_token[row, : len(text)] = 1
        mask = None if is_token.all() else ((1 - is_token) * np.float32(MASKED))[:, None, None, :]
        x = (self._words[ids] + self._positions[:longest]).reshape(-1, self._shape.dimensions)
        x = self._norm(x)
        for layer in self._layers:
            x = layer.attention_norm(x + layer.attention_output(self._attend(layer, x, mask, ids.shape)))
            x = layer.output_norm(x + layer.output(gelu(layer.inner(x))))
        return np.einsum("btd,bt->bd", x.reshape(*ids.shape, -1), is_token)

    def _attend(self, layer: _Layer, x: Any, mask: Any, batch_shape: tuple[int, int]) -> Any:
        np = lazy.numpy
        heads = self._shape.heads
        width = self._shape.dimensions // heads
        projected = layer.attention_input(x).reshape(*batch_shape, 3, heads, width)
        queries, keys, values = projected.transpose(2, 0, 3, 1, 4)
        weights = queries @ keys.transpose(0, 1, 3, 2)
        weights *= np.float32(width**-0.5)
        if mask is not None:
            weights += mask
        weights -= weights.max(axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=-1, keepdims=True)
        return (weights @ values).transpose(0, 2, 1, 3).reshape(x.shape)


class _Tensors:
    """Takes tensors by name, checks their shapes, and converts them to float32."""

    def __init__(self, tensors: Mapping[str, Any]) -> None:
        self._tensors = tensors

    def matrix(self, name: str, rows: int, columns: int) -> Any:
        """A matrix with at least this many rows."""
        tensor = self._tensors[name]
        if tensor.ndim != 2 or tensor.shape[0] < rows or tensor.shape[1] != columns:  # noqa: PLR2004 - a matrix
            raise ValueError(f"tensor {name!r} has the shape {list(tensor.shape)}, not [{rows}, {columns}]")
        return lazy.numpy.asarray(tensor, dtype=lazy.numpy.float32)

    def vector(self, name: str, length: int) -> Any:
        tensor = self._tensors[name]
        if tensor.shape != (length,):
            raise ValueError(f"tensor {name!r} has the shape {list(tensor.shape)}, not [{length}]")
        return lazy.numpy.asarray(tensor, dtype=lazy.numpy.float32)

    def norm(self, name: str, length: int) -> _Norm:
        return _Norm(self.vector(f"{name}.weight", length), self.vector(f"{name}.bias", length))

    def dense(self, name: str, inputs: int, outputs: int) -> _Dense:
        weight = self.matrix(f"{name}.weight", outputs, inputs)
        return _Dense(weight[:outputs].T, self.vector(f"{name}.bias", outputs))

    def stacked(self, names: Sequence[str], size: int) -> _Dense:
        np = lazy.numpy
        parts = [self.dense(name, size, size) for name in names]
        return _Dense(
            np.concatenate([part.weight for part in parts], axis=1), np.concatenate([part.bias for part in parts])
        )


def gelu(x: Any) -> Any:
    """Apply GELU in place: x times the normal distribution's share below x.

    The distribution is approximated with an error below 2e-7 (Abramowitz and Stegun, 7.1.26).
    """
    np = lazy.numpy
    distance = np.abs(x)
    distance *= np.float32(0.5**0.5)
    t = np.float32(1) / (np.float32(1) + np.float32(0.3275911) * distance)
    np.square(distance, out=distance)
    np.negative(distance, out=distance)
    np.exp(distance, out=distance)
    tail = t * np.float32(1.061405429)
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail += np.float32(coefficient)
        tail *= t
    tail *= distance
    tail *= np.float32(0.5)  # the share beyond |x|, on one side
    tail *= x
    np.maximum(x, 0, out=x)  # x itself for a positive x, minus its tail; for a negative x its tail alone
    x -= np.abs(tail)
    return x
