"""Imports a data set, waits until it is indexed, and asks its questions through the client."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from holdfast.client.sync.client import Client, connect
from holdfast.config import Settings
from holdfast.errors import FailedPreconditionError
from holdfast.evaluation.metrics import CUTOFFS
from holdfast.evaluation.model import Answer, Ask, Conversation, Dataset, FoundTurn, ProgressCallback, Question, Report
from holdfast.evaluation.reports import make_answer, make_figures
from holdfast.exchange.importing.sessions import import_session

MAX_RESULTS = CUTOFFS[-1]
ACCOUNT = "evaluation"
INDEX_SECONDS = 3_600.0
"""How long an evaluation waits for the index."""


class Place(msgspec.Struct, frozen=True):
    """The database of an evaluation. Each conversation has its own user there, so that none finds what others said."""

    target: str
    settings: Settings
    account: str = ACCOUNT

    def open(self, conversation: Conversation, *, runs_tasks: bool = False) -> Client:
        settings = self.settings if runs_tasks else msgspec.structs.replace(self.settings, worker_threads=0)
        return connect(self.target, account=self.account, user=conversation.name, settings=settings)


@contextmanager
def open_place(target: str | None, settings: Settings) -> Iterator[Place]:
    """Use the database `target`, or a temporary one that is deleted afterwards."""
    if target is not None:
        yield Place(target, settings)
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-eval-", ignore_cleanup_errors=True) as folder:
        yield Place(str(Path(folder)), settings)


def load_dataset(place: Place, dataset: Dataset, progress: ProgressCallback) -> None:
    """Import every conversation that is not stored yet, and wait until all is indexed."""
    total = sum(len(conversation.sessions) for conversation in dataset.conversations)
    done = 0
    for conversation in dataset.conversations:
        with place.open(conversation) as client:
            for record in conversation.sessions:
                import_session(client, record, lambda _count: None, dry_run=False)
                done += 1
                progress(done, total, f"importing {conversation.name}")
    progress(done, total, "indexing")
    for conversation in dataset.conversations:
        with place.open(conversation, runs_tasks=True) as client:
            client.wait_until_idle(INDEX_SECONDS)


@contextmanager
def searching(place: Place) -> Iterator[Ask]:
    """Ask questions through `search` of the client of each conversation. It stays open until the next one's turn."""
    opened: list[tuple[str, Client]] = []

    def ask(conversation: Conversation, question: Question) -> list[FoundTurn]:
        if not opened or opened[0][0] != conversation.name:
            close()
            opened.append((conversation.name, place.open(conversation)))
        return search_messages(opened[0][1], question)

    def close() -> None:
        while opened:
            opened.pop()[1].close()

    try:
        yield ask
    finally:
        close()


def search_messages(client: Client, question: Question, limit: int = MAX_RESULTS) -> list[FoundTurn]:
    result = client.search(question.text, limit=limit, context_type="message", as_of=question.asked_at)
    return [FoundTurn(hit.message.id, hit.session_id) for hit in result.messages]


def ask_questions(
    dataset: Dataset, ask: Ask, progress: ProgressCallback, clock: Callable[[], float] = time.perf_counter
) -> tuple[list[Answer], list[float]]:
    """Ask all questions. Return the answers, and the time of each in seconds."""
    questions = [
        (conversation, question) for conversation in dataset.conversations for question in conversation.questions
    ]
    if not questions:
        raise FailedPreconditionError("there are no questions with evidence; check the file")
    answers: list[Answer] = []
    seconds: list[float] = []
    for number, (conversation, question) in enumerate(questions, 1):
        started_at = clock()
        found = ask(conversation, question)
        seconds.append(clock() - started_at)
        answers.append(make_answer(conversation, question, found))
        progress(number, len(questions), f"asking {conversation.name}")
    return answers, seconds


def evaluate(
    dataset: Dataset, target: str | None, settings: Settings, label: str, progress: ProgressCallback
) -> Report:
    """Import a data set into a database, or into a temporary one, and report what `search` finds."""
    with open_place(target, settings) as place:
        load_dataset(place, dataset, progress)
        with searching(place) as ask:
            answers, seconds = ask_questions(dataset, ask, progress)
    return make_report(dataset, label, answers, seconds)


def make_report(dataset: Dataset, label: str, answers: list[Answer], seconds: list[float]) -> Report:
    return Report(
        dataset=dataset.name,
        settings=label,
        conversations=len(dataset.conversations),
        left_out=dataset.left_out,
        seconds_per_question=statistics.median(seconds),
        figures=make_figures(answers),
        answers=answers,
    )
