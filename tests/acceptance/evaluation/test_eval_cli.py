"""`holdfast eval` on small data, through the client, on both databases."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from evaluation_data import locomo_samples, longmemeval_rows

Cli = Callable[..., Any]
HEADER = "turns n R@1 R@3 R@5 R@10 R@20 any@10 all@10 NDCG MRR"


@pytest.fixture(autouse=True)
def no_own_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def locomo_file(tmp_path: Path) -> str:
    file = tmp_path / "locomo.json"
    file.write_text(json.dumps(locomo_samples(2)), "utf-8")
    return str(file)


@pytest.fixture
def longmemeval_file(tmp_path: Path) -> str:
    file = tmp_path / "longmemeval.json"
    file.write_text(json.dumps(longmemeval_rows(3)), "utf-8")
    return str(file)


def test_locomo_is_evaluated_in_a_temporary_database(run_cli: Cli, locomo_file: str, tmp_path: Path) -> None:
    result = run_cli("eval", "locomo", locomo_file)
    assert result.code == 0, result.err
    turns, sessions = result.out.split("\n\n")
    assert " ".join(turns.splitlines()[0].split()) == HEADER
    assert sessions.splitlines()[0].split()[:3] == ["sessions", "n", "S@1"]
    assert turns.splitlines()[1].split()[:2] == ["all", "6"]
    assert turns.splitlines()[1].split()[6] == "1.000"  # R@20: a session has four turns
    assert "2 questions without evidence were left out" in result.err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("days", ["36501", "-40000", "99999999999999999999"])
def test_a_shift_out_of_range_is_refused_with_the_range(run_cli: Cli, locomo_file: str, days: str) -> None:
    result = run_cli("eval", "locomo", locomo_file, "--shift-days", days)
    assert result.code == 2
    assert "--shift-days" in result.err
    assert "36500" in result.err


def test_a_shift_beyond_the_times_that_exist_is_refused(run_cli: Cli, longmemeval_file: str) -> None:
    file = Path(longmemeval_file)
    file.write_text(file.read_text("utf-8").replace("2023/", "9990/"), "utf-8")
    result = run_cli("eval", "longmemeval", longmemeval_file, "--shift-days", "36500")
    assert result.code == 2
    assert "outside the years 1 to 9999" in result.err


def test_longmemeval_is_evaluated(run_cli: Cli, longmemeval_file: str) -> None:
    result = run_cli("eval", "longmemeval", longmemeval_file, "-o", "json")
    assert result.code == 0, result.err
    report = result.json
    assert [(row["level"], row["questions"]) for row in report["figures"]] == [("turn", 3), ("session", 3)]
    assert [answer["rank"] for answer in report["answers"]] == [1, 1, 1]


def test_conversations_are_imported_into_a_given_database(run_cli: Cli, locomo_file: str, target: str) -> None:
    first = run_cli("--path", target, "eval", "locomo", locomo_file, "-o", "json")
    again = run_cli("--path", target, "eval", "locomo", locomo_file, "-o", "json")
    assert (first.code, again.code) == (0, 0), first.err + again.err
    assert first.json["answers"] == again.json["answers"]
    with holdfast.connect(target, account="evaluation", user="conv-1") as client:
        assert len(client.list_sessions()) == 3
        assert len(client.get_messages("conv-1-session_1").messages) == 4


def test_each_conversation_is_searched_alone(run_cli: Cli, locomo_file: str) -> None:
    for answer in run_cli("eval", "locomo", locomo_file, "-o", "json").json["answers"]:
        assert all(session.startswith(f"{answer['conversation']}-") for session in answer["found_sessions"])


def test_figures_and_a_plot_are_written_to_files(run_cli: Cli, locomo_file: str, tmp_path: Path) -> None:
    result = run_cli("eval", "locomo", locomo_file, "--json", "a.json", "--plot", "a.svg")
    assert result.code == 0, result.err
    assert json.loads((tmp_path / "a.json").read_text("utf-8"))["figures"][0]["questions"] == 6
    assert (tmp_path / "a.svg").read_text("utf-8").startswith("<svg")


def test_names_and_dates_can_be_changed(run_cli: Cli, locomo_file: str) -> None:
    result = run_cli("eval", "locomo", locomo_file, "--rename", "--shift-days", "371", "-o", "json")
    assert result.code == 0, result.err
    assert result.json["dataset"] == "locomo (renamed, shifted by 371 days)"
    assert not any("Laura" in answer["question"] for answer in result.json["answers"])


def test_two_settings_are_compared(run_cli: Cli, locomo_file: str, tmp_path: Path) -> None:
    result = run_cli(
        "eval", "locomo", locomo_file, "--compare", "embedder=static", "worker_threads=1", "--plot", "c.svg"
    )
    assert result.code == 0, result.err
    assert result.out.splitlines()[0].split()[:4] == ["turns", "n", "R@5", "A"]
    assert "0 questions have more of their evidence" in result.err
    assert (tmp_path / "c.svg").exists()


def test_two_results_are_compared_without_the_data(run_cli: Cli, locomo_file: str, tmp_path: Path) -> None:
    run_cli("eval", "locomo", locomo_file, "--json", "a.json")
    worse = json.loads((tmp_path / "a.json").read_text("utf-8"))
    worse["answers"][0] |= {"found": [], "rank": None}
    (tmp_path / "b.json").write_text(json.dumps(worse), "utf-8")
    result = run_cli("eval", "locomo", "--compare", "a.json", "b.json", "-o", "json")
    assert result.code == 0, result.err
    assert [(each["change"], each["second_rank"]) for each in result.json["changed"]] == [("lost", None)]
    table = run_cli("eval", "locomo", "--compare", "a.json", "b.json").out
    assert "lost" in table
    assert worse["answers"][0]["question"] in table


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ((), "is missing"),
        (("nowhere.json",), "cannot be read"),
        (("bad.json",), "not JSON"),
        (("empty.json",), "is not a LoCoMo sample"),
        (("locomo.json", "--plot", "a.png"), "does not end in .svg"),
        (("locomo.json", "--json", "no/such/folder.json"), "there is no folder"),
        (("locomo.json", "--compare", "nonsense", "x=1"), "is neither settings"),
        (("locomo.json", "--compare", "worker_threads=1", "worker_threads=2", "--fit"), "only one"),
        (("locomo.json", "--url", "http://127.0.0.1:1"), "give the database with --path"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistake_is_reported_before_any_work(
    run_cli: Cli, locomo_file: str, tmp_path: Path, args: tuple[str, ...], problem: str
) -> None:
    (tmp_path / "bad.json").write_text("{", "utf-8")
    (tmp_path / "empty.json").write_text("{}", "utf-8")
    result = run_cli("eval", "locomo", *args)
    assert (result.code in {1, 2}, result.out) == (True, "")
    assert problem in result.err
    assert result.err.count("\n") == 1


def test_weights_are_fitted_on_the_other_conversations(run_cli: Cli, locomo_file: str) -> None:
    result = run_cli("eval", "locomo", locomo_file, "--fit")
    assert result.code == 0, result.err
    assert "conv-1: 3 questions, with weights fitted on 3 questions of conv-2" in result.err


def test_own_sessions_without_uses_are_nothing_to_evaluate(run_cli: Cli, tmp_path: Path) -> None:
    result = run_cli("--path", str(tmp_path / "own"), "eval", "sessions")
    assert result.code == 1
    assert "no session has a recorded use" in result.err


def test_the_table_fits_a_terminal_of_80_columns(run_cli: Cli, locomo_file: str) -> None:
    assert max(len(line) for line in run_cli("eval", "locomo", locomo_file).out.splitlines()) <= 80
