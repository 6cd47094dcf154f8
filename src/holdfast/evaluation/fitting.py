"""Weights of the ranker, fitted on some conversations and reported on others."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import msgspec

from holdfast.config import Settings
from holdfast.errors import FailedPreconditionError
from holdfast.evaluation.model import Answer, Ask, Conversation, Dataset, ProgressCallback, Report
from holdfast.evaluation.running import (
    Place,
    ask_questions,
    load_dataset,
    make_report,
    open_place,
    search_messages,
    searching,
)
from holdfast.evaluation.weight_fit import Sample, fit
from holdfast.search.experiments import experiment
from holdfast.search.matches import MAX_CANDIDATES

Fit = Callable[[Sequence[Conversation]], AbstractContextManager[Ask]]
"""Fits weights on conversations that are stored and indexed, and returns a search that uses these weights."""

MIN_CONVERSATIONS = 2


def weights_fit(place: Place) -> Fit:
    """Fit the weights of the ranker. What was ranked for the questions of a conversation is read once."""
    samples: dict[str, list[Sample]] = {}

    @contextmanager
    def fitted(training: Sequence[Conversation]) -> Iterator[Ask]:
        for conversation in training:
            if conversation.name not in samples:
                samples[conversation.name] = read_samples(place, conversation)
        weights = fit([sample for conversation in training for sample in samples[conversation.name]])
        with searching(place) as ask, experiment(weights):
            yield ask

    return fitted


def read_samples(place: Place, conversation: Conversation) -> list[Sample]:
    """Ask all questions of a conversation, and return what was ranked, with the positions of the evidence."""
    samples: list[Sample] = []
    with place.open(conversation) as client, experiment() as running:
        for question in conversation.questions:
            found = search_messages(client, question, MAX_CANDIDATES)
            evidence = [index for index, turn in enumerate(found) if turn.turn in question.turns]
            if evidence:
                samples.append(Sample(running.samples[-1][: len(found)], evidence))
            running.samples.clear()
    return samples


def evaluate_fitted(
    dataset: Dataset, target: str | None, settings: Settings, label: str, progress: ProgressCallback
) -> Report:
    """Import a data set, and report what `search` finds in each conversation with weights fitted on the others."""
    with open_place(target, settings) as place:
        load_dataset(place, dataset, progress)
        answers, seconds, notes = cross_validate(dataset, weights_fit(place), progress)
    report = make_report(dataset, f"{label}, weights fitted on other conversations", answers, seconds)
    return msgspec.structs.replace(report, notes=notes)


def cross_validate(
    dataset: Dataset, fit: Fit, progress: ProgressCallback
) -> tuple[list[Answer], list[float], list[str]]:
    """Answer the questions of each conversation with weights that were fitted on all the others.

    Return the answers, the time of each in seconds, and a note for each fit.
    """
    if len(dataset.conversations) < MIN_CONVERSATIONS:
        raise FailedPreconditionError(
            f"a fit needs at least {MIN_CONVERSATIONS} conversations, to report on others than it is fitted on;"
            f" this data has {len(dataset.conversations)}"
        )
    answers: list[Answer] = []
    seconds: list[float] = []
    notes: list[str] = []
    for number, left_out in enumerate(dataset.conversations):
        if not left_out.questions:
            continue
        training = [each for each in dataset.conversations if each is not left_out and each.questions]
        progress(number, len(dataset.conversations), f"fitting without {left_out.name}")
        with fit(training) as ask:
            alone = Dataset(name=dataset.name, conversations=[left_out], left_out=0)
            found, taken = ask_questions(alone, ask, progress)
        answers += found
        seconds += taken
        count = sum(len(each.questions) for each in training)
        notes.append(
            f"{left_out.name}: {len(found)} questions, with weights fitted on {count} questions of"
            f" {', '.join(each.name for each in training)}"
        )
    return answers, seconds, notes
