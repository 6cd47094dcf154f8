"""The interfaces of a chat model and of an embedder."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from holdfast.errors import UnavailableError
from holdfast.model.summaries import Prompt, Reply

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


class EmbeddingResult(NamedTuple):
    """Vectors, and the number of tokens that the provider counted for them."""

    vectors: "Vectors"
    tokens: int = 0


class ChatModel(Protocol):
    """Answers prompts. It can be called from any thread.

    A temporary error (no network, an overloaded service, a truncated response) raises `UnavailableError` with
    `service="model"`, and with `details["retry_after"]` in seconds if the provider sent it. A permanent error (a wrong
    key, an unknown model) raises `FailedPreconditionError` with advice. The model does not retry; the caller may.
    """

    @property
    def name(self) -> str:
        """Provider and model, such as `openai/gpt-5-mini`."""
        ...

    def complete(self, prompt: Prompt) -> Reply: ...

    def close(self) -> None: ...


class Embedder(Protocol):
    """Converts texts to vectors. It can be called from any thread and raises the same errors as a `ChatModel`."""

    @property
    def name(self) -> str: ...

    @property
    def space(self) -> str:
        """The vector space of the embeddings. Vectors of different spaces must not be compared."""
        ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> "EmbeddingResult":
        """A row for each text: a vector of length one, or zeros for a text without content."""
        ...

    def close(self) -> None: ...


def unavailable(message: str, *, reason: str, retry_after: float | None = None) -> UnavailableError:
    """Create the error for a temporary failure of a model."""
    error = UnavailableError(message, service="model", reason=reason)
    if retry_after is not None:
        error.details["retry_after"] = retry_after
    return error
