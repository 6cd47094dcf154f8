"""LoCoMo: very long conversations between two people, with questions and the turns that answer them. Pure functions."""

import re
from collections.abc import Collection, Sequence
from typing import Any

from holdfast.errors import InvalidArgumentError, short_repr
from holdfast.evaluation.model import Conversation, Dataset, Question
from holdfast.exchange.formats.locomo import read_locomo

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
"""Category 5 has questions without an answer in the conversation, which recall cannot measure."""

_TURN_ID = re.compile(r"D:?([0-9]{1,6}):([0-9]{1,6})")


def read_dataset(samples: Any) -> Dataset:
    """Read the samples of a LoCoMo file. Each becomes the conversation of its own user."""
    samples = samples if isinstance(samples, list) else [samples]
    conversations = [
        _read_sample(f"[{number}]", sample, f"sample-{number}") for number, sample in enumerate(samples, 1)
    ]
    asked = sum(len(conversation.questions) for conversation in conversations)
    in_scope = sum(_category(question) is not None for sample in samples for question in sample["qa"])
    return Dataset(name="locomo", conversations=conversations, left_out=in_scope - asked)


def parse_evidence(evidence: Any, known: Collection[str]) -> list[str]:
    """Return the turns of evidence as they are known: the published ids have mistakes, and some do not exist.

    >>> parse_evidence(["D8:6; D9:17", "D:11:26", "D30:05", "D99:1"], {"D8:6", "D9:17", "D11:26", "D30:5"})
    ['D8:6', 'D9:17', 'D11:26', 'D30:5']
    """
    texts = evidence if isinstance(evidence, list) else [evidence]
    ids = [f"D{int(match[1])}:{int(match[2])}" for text in texts for match in _TURN_ID.finditer(str(text))]
    return [turn for turn in dict.fromkeys(ids) if turn in known]


def _read_sample(where: str, sample: Any, name: str) -> Conversation:
    sessions = list(read_locomo(where, sample, name))
    if not isinstance(sample.get("qa"), list):
        raise InvalidArgumentError(where, f"{short_repr(sample.get('qa'))} is not a list of questions")
    session_of = {str(message.id): record.session_id for record in sessions for message in record.messages()}
    last = max((record.created_at for record in sessions if record.created_at is not None), default=None)
    questions = []
    for number, row in enumerate(sample["qa"], 1):
        category = _category(row)
        turns = parse_evidence(row.get("evidence"), session_of) if category is not None else []
        if category is None or not turns or not row["question"].strip():
            continue
        questions.append(
            Question(
                id=f"q{number:03}",
                text=str(row["question"]),
                category=category,
                asked_at=last,
                turns=tuple(turns),
                sessions=tuple(dict.fromkeys(session_of[turn] for turn in turns)),
            )
        )
    metadata: Sequence[Any] = [record.metadata or {} for record in sessions]
    owner = next((str(each["sample_id"]) for each in metadata if "sample_id" in each), name)
    return Conversation(name=owner, sessions=sessions, questions=questions)


def _category(row: Any) -> str | None:
    if not isinstance(row, dict) or not isinstance(row.get("question"), str):
        raise InvalidArgumentError("qa", f"{short_repr(row)} is not a question")
    category = row.get("category")
    return CATEGORIES.get(category) if isinstance(category, int) else None
