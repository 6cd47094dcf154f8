"""Answers of the language model that a caller waits for, with a limit of time."""

import threading

from holdfast import forking
from holdfast.errors import HoldfastError
from holdfast.model.summaries import Prompt
from holdfast.providers.limits import RateLimitedModel

MAX_RUNNING = 8
"""Calls of all searches of a process. A model that does not answer must not gather threads."""


class NoAnswerError(Exception):
    """The model gave no answer. The text says why, for the caller."""


class _Running:
    def __init__(self) -> None:
        self.lock = forking.Lock()
        self.count = 0
        forking.in_child(self.reset)

    def reset(self) -> None:
        self.count = 0


_running = _Running()


def ask(model: RateLimitedModel, prompt: Prompt, seconds: float) -> str:
    """Return the answer of a model, or raise `NoAnswerError` if there is none within `seconds`."""
    with _running.lock:
        if _running.count >= MAX_RUNNING:
            raise NoAnswerError("the model is busy with other searches")
        _running.count += 1
    answers: list[str] = []
    errors: list[HoldfastError] = []
    has_ended = threading.Event()

    def call() -> None:
        try:
            answers.append(model.complete(prompt).text)
        except HoldfastError as error:
            errors.append(error)
        finally:
            with _running.lock:
                _running.count -= 1
            has_ended.set()

    threading.Thread(target=call, name="holdfast-query-model", daemon=True).start()
    if not has_ended.wait(seconds):
        raise NoAnswerError(f"the model did not answer within {seconds:g} s")
    if not answers:
        raise NoAnswerError(errors[0].message if errors else "the model failed")
    return answers[0]
