"""Figures from answers: means by category, at the level of turns and of sessions. Pure functions."""

from collections.abc import Sequence

from holdfast.evaluation.metrics import mean_scores, rank_of_first, score_ranking
from holdfast.evaluation.model import ALL, Answer, Conversation, Figures, FoundTurn, Level, Question


def make_answer(conversation: Conversation, question: Question, found: Sequence[FoundTurn]) -> Answer:
    turns, sessions = [each.turn for each in found], [each.session for each in found]
    return Answer(
        conversation=conversation.name,
        question_id=question.id,
        question=question.text,
        category=question.category,
        evidence=list(question.turns),
        evidence_sessions=list(question.sessions),
        found=turns,
        found_sessions=sessions,
        rank=rank_of_first(turns, question.turns) if question.turns else rank_of_first(sessions, question.sessions),
    )


def make_figures(answers: Sequence[Answer]) -> list[Figures]:
    """Return the means of all questions and of each category, for turns and then for sessions.

    A question counts at a level if its evidence is known there.
    """
    return [*_figures("turn", answers), *_figures("session", answers)]


def _figures(level: Level, answers: Sequence[Answer]) -> list[Figures]:
    scored = [
        (answer.category, score_ranking(found, evidence))
        for answer in answers
        for found, evidence in [_ranking(level, answer)]
        if evidence
    ]
    categories = sorted({category for category, _ in scored})
    rows = []
    for name in [ALL, *(categories if len(categories) > 1 else [])]:
        scores = [each for category, each in scored if name in {ALL, category}]
        if scores:
            rows.append(Figures(level=level, category=name, questions=len(scores), scores=mean_scores(scores)))
    return rows


def _ranking(level: Level, answer: Answer) -> tuple[list[str], list[str]]:
    if level == "turn":
        return answer.found, answer.evidence
    return answer.found_sessions, answer.evidence_sessions
