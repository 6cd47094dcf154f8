"""Two reports side by side, with the questions that changed. Pure functions."""

from typing import Literal

import msgspec

from holdfast.errors import InvalidArgumentError
from holdfast.evaluation.metrics import score_ranking
from holdfast.evaluation.model import Answer, Figures, Report
from holdfast.model.base import WireStruct

CUTOFF = 10
"""A question is won if more of its evidence is among the first ten results of the second report."""


class ComparedFigures(WireStruct, frozen=True, kw_only=True):
    level: str
    category: str
    questions: int
    first: dict[str, float]
    second: dict[str, float]


class ChangedQuestion(WireStruct, frozen=True, kw_only=True):
    change: Literal["won", "lost"]
    conversation: str
    question_id: str
    category: str
    question: str
    first_share: float
    """The share of its evidence that is among the first ten results."""
    second_share: float
    first_rank: int | None
    second_rank: int | None


class Comparison(WireStruct, frozen=True, kw_only=True):
    first: str
    second: str
    figures: list[ComparedFigures]
    changed: list[ChangedQuestion]


def compare_reports(first: Report, second: Report) -> Comparison:
    """Compare the questions that both reports have. They must be of the same data set, which may be renamed."""
    if first.dataset.partition(" (")[0] != second.dataset.partition(" (")[0]:
        raise InvalidArgumentError("compare", f"the results are of different data: {first.dataset}, {second.dataset}")
    changed = [
        ChangedQuestion(
            change="won" if second_share > first_share else "lost",
            conversation=before.conversation,
            question_id=before.question_id,
            category=before.category,
            question=before.question,
            first_share=first_share,
            second_share=second_share,
            first_rank=before.rank,
            second_rank=after.rank,
        )
        for before, after in _paired_answers(first, second)
        for first_share, second_share in [(_share(before), _share(after))]
        if first_share != second_share
    ]
    return Comparison(
        first=first.settings,
        second=second.settings,
        figures=_paired_figures(first, second),
        changed=sorted(changed, key=lambda each: (each.change == "lost", each.category, each.question_id)),
    )


def summarise_figures(figures: Figures) -> dict[str, float]:
    """Return the measures that tables show, by name: `R@5` for turns, `S@5` for sessions."""
    letter = "R" if figures.level == "turn" else "S"
    scores = figures.scores
    return {
        **{f"{letter}@{k}": value for k, value in scores.share.items()},
        f"any@{CUTOFF}": scores.any[CUTOFF],
        f"all@{CUTOFF}": scores.all[CUTOFF],
        "NDCG": scores.ndcg,
        "MRR": scores.mrr,
    }


def _share(answer: Answer) -> float:
    if answer.evidence:
        return score_ranking(answer.found, answer.evidence).share[CUTOFF]
    return score_ranking(answer.found_sessions, answer.evidence_sessions).share[CUTOFF]


def _paired_answers(first: Report, second: Report) -> list[tuple[Answer, Answer]]:
    others = {(answer.conversation, answer.question_id): answer for answer in second.answers}
    pairs = [(answer, others.get((answer.conversation, answer.question_id))) for answer in first.answers]
    return [(answer, other) for answer, other in pairs if other is not None]


def _paired_figures(first: Report, second: Report) -> list[ComparedFigures]:
    others = {(figures.level, figures.category): figures for figures in second.figures}
    return [
        ComparedFigures(
            level=figures.level,
            category=figures.category,
            questions=figures.questions,
            first=summarise_figures(figures),
            second=summarise_figures(others[figures.level, figures.category]),
        )
        for figures in first.figures
        if (figures.level, figures.category) in others
    ]


def read_report(content: bytes, where: str) -> Report:
    """Read the JSON of an earlier run."""
    try:
        return msgspec.json.decode(content, type=Report)
    except (msgspec.DecodeError, ValueError) as error:
        raise InvalidArgumentError("compare", f"{where} is not the JSON of an evaluation: {error}") from None
