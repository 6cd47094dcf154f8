"""What a job is, and the interface of what runs jobs."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from holdfast.validation import prebuild_decoder

I = TypeVar("I")  # noqa: E741 - the input of a job, as O is its output
O = TypeVar("O")  # noqa: E741
SERVICE = "compute"
"""The service that an error names if the process of a job has died."""
YieldCpu = Callable[[], None]
"""Called often by a long computation, so that other threads of its process can run."""
Embed = Callable[[Sequence[str], YieldCpu], Any]
"""Returns a matrix with a vector of length one for each text."""


def no_vectors(texts: Sequence[str], _yield_cpu: YieldCpu) -> Any:
    """Fail: for jobs that do not compare texts."""
    raise RuntimeError(f"vectors of {len(texts)} texts are needed; pass an embedder to the job")


class JobContext(msgspec.Struct, frozen=True):
    """What the process that runs a job provides."""

    embed: Callable[[Sequence[str]], Any]
    """Returns a matrix with a vector of length one for each text. A job calls it at most once."""
    yield_cpu: YieldCpu = lambda: None


class Job(msgspec.Struct, Generic[I, O], frozen=True):
    """A pure function with a name. Its input and output can be encoded, so that another process can run it."""

    name: str
    run: Callable[[I, JobContext], O]
    input_type: type[I]
    output_type: Any
    """The type of the output. `Any`, because the type of a union is not a class."""

    def __post_init__(self) -> None:
        prebuild_decoder(self.input_type)
        prebuild_decoder(self.output_type)


class JobRunner(Protocol):
    """Runs jobs. It can be used from any thread."""

    def run(self, job: Job[I, O], input: I, embed: Embed) -> O:
        """Run a job and return its output. If the job needs vectors of texts, `embed` may be called once for them.

        A job that exceeds a limit raises `ResourceExhaustedError`. If its process died, `UnavailableError` is raised:
        the job may succeed later.
        """
        ...

    def close(self) -> None:
        """End running jobs."""
        ...
