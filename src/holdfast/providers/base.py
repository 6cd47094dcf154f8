"""What a language model and an embedder are to Holdfast."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple, Protocol

import msgspec

from holdfast.errors import UnavailableError
from holdfast.model.summaries import Prompt, Reply

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


NonNegative = Annotated[int, msgspec.Meta(ge=0)]
"""What a provider counted. A number below zero is not believed."""


class Embedded(NamedTuple):
    """Vectors, and the tokens that a provider counted for them."""

    vectors: "Vectors"
    tokens: int = 0


class ChatModel(Protocol):
    """Answers prompts, from any thread.

    What may pass (no network, a full service, half an answer) raises `UnavailableError` with `service="model"`, and
    with `details["retry_after"]` in seconds if the provider named them. What will not pass by itself (a wrong key, an
    unknown model) raises `FailedPreconditionError` that says what to do. Asking again is the caller's decision.
    """

    @property
    def name(self) -> str:
        """Who answers, such as `openai/gpt-5-mini`."""
        ...

    def complete(self, prompt: Prompt) -> Reply: ...

    def close(self) -> None: ...


class Embedder(Protocol):
    """Turns texts into vectors, from any thread; fails as a `ChatModel` does."""

    @property
    def name(self) -> str: ...

    @property
    def space(self) -> str:
        """Which space the vectors live in: vectors of two spaces are never compared."""
        ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> "Embedded":
        """A row for each text, of length one, or of zeros for a text that says nothing."""
        ...

    def close(self) -> None: ...


def unavailable(message: str, *, reason: str, retry_after: float | None = None) -> UnavailableError:
    error = UnavailableError(message, service="model", reason=reason)
    if retry_after is not None:
        error.details["retry_after"] = retry_after
    return error
