"""Chats between users and an assistant, with questions, in LongMemEval's format.

The short turns of the user have the facts, and the long ones of the assistant the words: in many questions no content
word occurs in the turn that answers it. Each file is a user's history of one topic. A question is asked in a haystack
of all sessions of all files up to its date, as if one user had them all.

A file has, in this order: `asked:` with the date of the questions; paragraphs of filler (`--- filler`), which are added
to the assistant's turns; sessions (`=== DATE`) with turns (`role label: text`; the label names a turn that is
evidence); and questions (`=== questions`): type, question, labels of the evidence, answer.

`python -m assistant_chats FILE` writes the data to a file for `holdfast eval longmemeval FILE`.
"""

import re
from datetime import datetime
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent
DATE = "%Y-%m-%d %H:%M"
_TURN = re.compile(r"(user|assistant|tool)(?: ([a-z0-9]+))?: (.*)")


class Turn(NamedTuple):
    role: str
    label: str | None
    text: str


class Session(NamedTuple):
    id: str
    date: datetime
    turns: list[Turn]


class ChatQuestion(NamedTuple):
    id: str
    type: str
    text: str
    labels: list[str]
    answer: str


class Chat(NamedTuple):
    name: str
    asked: datetime
    sessions: list[Session]
    questions: list[ChatQuestion]

    def evidence(self, question: ChatQuestion) -> list[Turn]:
        """Return the turns that answer a question."""
        turns = {turn.label: turn for session in self.sessions for turn in session.turns}
        return [turns[label] for label in question.labels]


def load_chats() -> list[Chat]:
    return [_read_chat(file.stem, file.read_text("utf-8")) for file in sorted(FOLDER.glob("*.txt"))]


def longmemeval_rows() -> list[dict[str, Any]]:
    """Return all questions in LongMemEval's format."""
    chats = load_chats()
    sessions = sorted((session for chat in chats for session in chat.sessions), key=lambda session: session.date)
    return [
        _row(chat, question, [session for session in sessions if session.date <= chat.asked])
        for chat in chats
        for question in chat.questions
    ]


def _read_chat(name: str, text: str) -> Chat:
    head, *blocks = re.split(r"^(?:===|---) ", text, flags=re.MULTILINE)
    fillers = cycle([block.removeprefix("filler\n").strip() for block in blocks if block.startswith("filler\n")])
    sessions: list[Session] = []
    questions: list[ChatQuestion] = []
    for block in blocks:
        title, _, body = block.partition("\n")
        lines = [line for line in body.splitlines() if line]
        if title == "questions":
            questions = [_read_question(f"{name}-{number:02}", line) for number, line in enumerate(lines, 1)]
        elif title != "filler":
            turns = [_read_turn(line, next(fillers) if line.startswith("assistant") else "") for line in lines]
            sessions.append(Session(f"{name}-{len(sessions) + 1}", datetime.strptime(title, DATE), turns))  # noqa: DTZ007
    asked = datetime.strptime(head.removeprefix("asked: ").strip(), DATE)  # noqa: DTZ007 - LongMemEval's have no zone
    return Chat(name, asked, sessions, questions)


def _read_turn(line: str, filler: str) -> Turn:
    match = _TURN.fullmatch(line)
    if match is None:
        raise ValueError(f"not a turn: {line}")
    text = match[3].replace("\\n", "\n")
    return Turn(match[1], match[2], f"{text}\n\n{filler}" if filler else text)


def _read_question(id: str, line: str) -> ChatQuestion:
    type_, text, labels, answer = (part.strip() for part in line.split("|"))
    return ChatQuestion(id, type_, text, labels.split(","), answer)


def _row(chat: Chat, question: ChatQuestion, haystack: list[Session]) -> dict[str, Any]:
    own = {session.id for session in chat.sessions}
    evidence_sessions = [
        session.id for session in chat.sessions if any(turn.label in question.labels for turn in session.turns)
    ]
    return {
        "question_id": question.id,
        "question_type": question.type,
        "question": question.text,
        "answer": question.answer,
        "question_date": _format(chat.asked),
        "haystack_session_ids": [session.id for session in haystack],
        "haystack_dates": [_format(session.date) for session in haystack],
        "haystack_sessions": [
            [
                {"role": turn.role, "content": turn.text}
                | ({"has_answer": True} if session.id in own and turn.label in question.labels else {})
                for turn in session.turns
            ]
            for session in haystack
        ],
        "answer_session_ids": evidence_sessions,
    }


def _format(date: datetime) -> str:
    return date.strftime("%Y/%m/%d (%a) %H:%M")
