"""Figures, comparisons and plots of answers, with a fake search."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from evaluation_data import locomo_samples
from holdfast.errors import FailedPreconditionError, InvalidArgumentError
from holdfast.evaluation.comparison import compare_reports, read_report
from holdfast.evaluation.datasets import locomo
from holdfast.evaluation.fitting import cross_validate
from holdfast.evaluation.model import Ask, Conversation, Dataset, FoundTurn, Question, Report
from holdfast.evaluation.plot import plot_comparison, plot_report
from holdfast.evaluation.running import ask_questions, make_report
from holdfast.evaluation.variants import parse_variant


def ignore(_done: int, _total: int, _label: str) -> None:
    pass


def find_right(_conversation: Conversation, question: Question) -> list[FoundTurn]:
    return [FoundTurn(turn, question.sessions[0]) for turn in question.turns]


def find_nothing(_conversation: Conversation, _question: Question) -> list[FoundTurn]:
    return []


def find_session_only(_conversation: Conversation, question: Question) -> list[FoundTurn]:
    return [FoundTurn("D9:99", question.sessions[0])]


@pytest.fixture
def dataset() -> Dataset:
    return locomo.read_dataset(locomo_samples(3))


def report_of(dataset: Dataset, ask: Ask, label: str = "fake") -> Report:
    answers, seconds = ask_questions(dataset, ask, ignore)
    return make_report(dataset, label, answers, seconds)


def test_figures_have_the_number_of_questions_of_each_category(dataset: Dataset) -> None:
    report = report_of(dataset, find_right)
    turns = {figures.category: figures.questions for figures in report.figures if figures.level == "turn"}
    assert turns == {"all": 9, "open-domain": 3, "single-hop": 3, "temporal": 3}
    assert all(figures.scores.share[1] == 1 for figures in report.figures)


def test_a_session_can_be_found_without_its_turn(dataset: Dataset) -> None:
    report = report_of(dataset, find_session_only)
    scores = {figures.level: figures.scores.any[1] for figures in report.figures if figures.category == "all"}
    assert scores == {"turn": 0, "session": 1}


def test_questions_without_evidence_are_counted_and_not_asked(dataset: Dataset) -> None:
    report = report_of(dataset, find_right)
    assert (report.left_out, len(report.answers)) == (3, 9)


def test_data_without_questions_is_an_error() -> None:
    with pytest.raises(FailedPreconditionError, match="no questions"):
        ask_questions(Dataset(name="empty", conversations=[], left_out=0), find_right, ignore)


def test_progress_ends_at_the_number_of_questions(dataset: Dataset) -> None:
    steps: list[tuple[int, int, str]] = []
    ask_questions(dataset, find_right, lambda *step: steps.append(step))
    assert steps[-1] == (9, 9, "asking conv-3")


def test_a_comparison_lists_won_and_lost_questions(dataset: Dataset) -> None:
    nothing, right = report_of(dataset, find_nothing, "A"), report_of(dataset, find_right, "B")
    comparison = compare_reports(nothing, right)
    assert {each.change for each in comparison.changed} == {"won"}
    assert {each.change for each in compare_reports(right, nothing).changed} == {"lost"}
    assert (comparison.changed[0].first_rank, comparison.changed[0].second_rank) == (None, 1)
    assert (comparison.figures[0].first["R@10"], comparison.figures[0].second["R@10"]) == (0, 1)
    assert compare_reports(right, right).changed == []


def test_reports_of_different_data_are_not_compared(dataset: Dataset) -> None:
    other = msgspec.structs.replace(report_of(dataset, find_right), dataset="longmemeval")
    with pytest.raises(InvalidArgumentError, match="different data"):
        compare_reports(report_of(dataset, find_right), other)


def test_a_report_is_read_from_its_own_json(dataset: Dataset) -> None:
    report = report_of(dataset, find_right)
    assert read_report(msgspec.json.encode(report), "file") == report
    with pytest.raises(InvalidArgumentError, match="file is not the JSON of an evaluation"):
        read_report(b"{}", "file")


def test_a_plot_names_every_category_with_its_number_of_questions(dataset: Dataset) -> None:
    report = msgspec.structs.replace(report_of(dataset, find_right), settings="<a & 'b'>")
    for drawn in (plot_report(report), plot_comparison(compare_reports(report, report))):
        texts = [element.text for element in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
        assert {"all", "single-hop", "n = 9", "n = 3"} <= set(texts)


def test_every_bar_of_a_plot_is_inside_it(dataset: Dataset) -> None:
    for ask in (find_right, find_nothing):
        root = ET.fromstring(plot_report(report_of(dataset, ask)))
        width, height = float(root.attrib["width"]), float(root.attrib["height"])
        for bar in root.iter("{http://www.w3.org/2000/svg}rect"):
            x, y = float(bar.get("x", "0")), float(bar.get("y", "0"))
            assert 0 <= x <= x + float(bar.attrib["width"]) <= width
            assert 0 <= y <= y + float(bar.attrib["height"]) <= height


def test_weights_are_fitted_on_other_conversations_than_they_are_reported_on(dataset: Dataset) -> None:
    fits: list[list[str]] = []

    @contextmanager
    def fit(training: Sequence[Conversation]) -> Iterator[Ask]:
        fits.append([conversation.name for conversation in training])
        yield lambda conversation, question: [] if conversation.name in fits[-1] else find_right(conversation, question)

    answers, _seconds, notes = cross_validate(dataset, fit, ignore)
    assert fits == [["conv-2", "conv-3"], ["conv-1", "conv-3"], ["conv-1", "conv-2"]]
    assert all(answer.rank == 1 for answer in answers)
    assert notes[0] == "conv-1: 3 questions, with weights fitted on 6 questions of conv-2, conv-3"


def test_one_conversation_is_not_enough_for_a_fit() -> None:
    alone = locomo.read_dataset(locomo_samples(1))
    with pytest.raises(FailedPreconditionError, match="at least 2 conversations"):
        cross_validate(alone, lambda _training: nullcontext(find_right), ignore)


def test_a_variant_is_settings_a_settings_file_or_a_result(tmp_path: Path, dataset: Dataset) -> None:
    (tmp_path / "fast.toml").write_text("worker_threads = 1\n", "utf-8")
    (tmp_path / "a.json").write_bytes(msgspec.json.encode(report_of(dataset, find_right)))
    assigned = parse_variant("worker_threads=3, embedder=static", None)
    assert assigned.settings is not None
    assert (assigned.settings.worker_threads, assigned.label) == (3, "worker_threads=3,embedder=static")
    from_file = parse_variant(str(tmp_path / "fast.toml"), None)
    assert from_file.settings is not None
    assert from_file.settings.worker_threads == 1
    earlier = parse_variant(str(tmp_path / "a.json"), None)
    assert earlier.report is not None


def test_a_key_is_not_shown_in_a_label() -> None:
    assert parse_variant("embedding_api_key=secret", None).label == "embedding_api_key=***"


@pytest.mark.parametrize("text", ["nonsense", "no_such_setting=1", "missing.json", "missing.toml", "embedder=huge"])
def test_a_variant_that_is_none_of_these_is_an_error(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        parse_variant(text, None)
