"""`holdfast eval`: how well searches find the evidence of questions."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from holdfast import lazy
from holdfast.cli import help_texts, options, output
from holdfast.cli.output import Column
from holdfast.cli.progress import progress_bar

if TYPE_CHECKING:
    from holdfast.evaluation.comparison import Comparison
    from holdfast.evaluation.model import Dataset, Report
    from holdfast.evaluation.variants import Variant

app = help_texts.group("Measure how well searches find the evidence of questions.")

SHOWN_CUTOFFS = (1, 3, 5, 10, 20)
COMPARED = (5, 10, 20)
MAX_SHIFT_DAYS = 36_500
LETTERS = {"turn": "R", "session": "S"}

DataFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE", help="The JSON file with the data. Not needed to compare two results.", show_default=False
    ),
]
Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write the figures and all answers to this file.", show_default=False),
]
Plot = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE.svg", help="Draw the recall by category.", show_default=False),
]
Compare = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--compare",
        metavar="A B",
        help="Compare two settings, such as embedder=static, or files with settings (.toml) or results (.json).",
        show_default=False,
    ),
]
Fit = Annotated[
    bool,
    typer.Option("--fit", help="Fit the weights of the ranker on all conversations but one, and report on that one."),
]
Rename = Annotated[bool, typer.Option("--rename", help="Replace the names of people in turns and questions.")]
ShiftDays = Annotated[
    int,
    typer.Option(
        "--shift-days",
        metavar="N",
        min=-MAX_SHIFT_DAYS,
        max=MAX_SHIFT_DAYS,
        help="Shift all times and dates by this number of days.",
    ),
]


class EvalOptions(msgspec.Struct, frozen=True):
    json: Path | None
    plot: Path | None
    compare: tuple[str, str] | None = None
    fit: bool = False
    rename: bool = False
    shift_days: int = 0


@app.command(
    epilog=help_texts.example(
        "eval locomo locomo10.json --plot recall.svg",
        "eval locomo locomo10.json --rename --shift-days 371",
        "eval locomo --compare before.json after.json",
    )
)
def locomo(
    ctx: typer.Context,
    file: DataFile = None,
    json: Json = None,
    plot: Plot = None,
    compare: Compare = None,
    fit: Fit = False,
    rename: Rename = False,
    shift_days: ShiftDays = 0,
) -> None:
    """Evaluate searches on LoCoMo: long conversations between two people.

    The conversations are imported into a temporary database, or into the one given by --path; each has its own user.
    """
    _run(ctx, "locomo", file, EvalOptions(json, plot, compare, fit, rename, shift_days))


@app.command(epilog=help_texts.example("eval longmemeval longmemeval_s.json --json result.json"))
def longmemeval(
    ctx: typer.Context,
    file: DataFile = None,
    json: Json = None,
    plot: Plot = None,
    compare: Compare = None,
    fit: Fit = False,
    rename: Rename = False,
    shift_days: ShiftDays = 0,
) -> None:
    """Evaluate searches on LongMemEval, or on data in its format: chats between a user and an assistant.

    The chats are imported into a temporary database, or into the one given by --path; each haystack has its own user.
    """
    _run(ctx, "longmemeval", file, EvalOptions(json, plot, compare, fit, rename, shift_days))


@app.command(epilog=help_texts.example("eval sessions", "eval sessions --json result.json"))
def sessions(ctx: typer.Context, json: Json = None, plot: Plot = None) -> None:
    """Evaluate searches on your own sessions: do they find what was used after a message?

    Each recorded use of a context is a question. The last user message before it is the query.
    """
    chosen = EvalOptions(json, plot)
    _check_outputs(chosen)
    history = lazy.load("holdfast.evaluation.own_history")
    running = lazy.load("holdfast.evaluation.running")
    settings = options.get(ctx).load_and_report_settings()
    with options.get(ctx).open_client(settings) as client, progress_bar("evaluating") as progress:
        dataset = history.read_history(client)
        if not dataset.conversations[0].questions:
            output.print_notice("There is nothing to ask: no session has a recorded use after a user message.")
            raise typer.Exit(1)
        answers, seconds = running.ask_questions(dataset, history.search_as_before(client), progress)
    label = lazy.load("holdfast.evaluation.variants").describe_settings(settings)
    _print_report(ctx, running.make_report(dataset, label, answers, seconds), chosen)


def _run(ctx: typer.Context, kind: str, file: Path | None, chosen: EvalOptions) -> None:
    shared = options.get(ctx)
    _check_outputs(chosen)
    if shared.url is not None:
        raise typer.BadParameter("cannot be used here; give the database with --path", param_hint="--url")
    variants = lazy.load("holdfast.evaluation.variants")
    if chosen.compare is not None and chosen.fit:
        raise typer.BadParameter("use only one of them", param_hint="--compare and --fit")
    if chosen.compare is None:
        settings = shared.load_and_report_settings()
        variant = variants.Variant(variants.describe_settings(settings), settings, None)
        _print_report(ctx, _evaluate(shared, kind, file, variant, chosen), chosen)
        return
    pair = [variants.parse_variant(text, shared.config) for text in chosen.compare]
    if shared.path is not None:
        raise typer.BadParameter(
            "cannot be used with --compare: each setting needs its own database", param_hint="--path"
        )
    first, second = (_evaluate(shared, kind, file, variant, chosen) for variant in pair)
    _print_comparison(ctx, lazy.load("holdfast.evaluation.comparison").compare_reports(first, second), chosen)


def _evaluate(
    shared: options.SharedOptions, kind: str, file: Path | None, variant: "Variant", chosen: EvalOptions
) -> "Report":
    if variant.report is not None:
        return variant.report
    dataset = _read_dataset(kind, file, chosen)
    running = lazy.load("holdfast.evaluation.running")
    fitting = lazy.load("holdfast.evaluation.fitting")
    with progress_bar(variant.label) as progress:
        evaluate = fitting.evaluate_fitted if chosen.fit else running.evaluate
        report: Report = evaluate(dataset, shared.path, variant.settings, variant.label, progress)
    return report


def _read_dataset(kind: str, file: Path | None, chosen: EvalOptions) -> "Dataset":
    if file is None:
        raise typer.BadParameter("is missing; give the JSON file with the data", param_hint="FILE")
    try:
        content = file.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}", param_hint="FILE") from None
    try:
        decoded = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise typer.BadParameter(f"{file} is not JSON: {error}", param_hint="FILE") from None
    dataset: Dataset = lazy.load(f"holdfast.evaluation.datasets.{kind}").read_dataset(decoded)
    if not chosen.rename and not chosen.shift_days:
        return dataset
    renaming = lazy.load("holdfast.evaluation.renaming")
    try:
        changed: Dataset = renaming.rename_and_shift(dataset, rename=chosen.rename, days=chosen.shift_days)
    except OverflowError:
        raise typer.BadParameter("times would be outside the years 1 to 9999", param_hint="--shift-days") from None
    return changed


def _check_outputs(chosen: EvalOptions) -> None:
    """Refuse what would fail after minutes of work."""
    if chosen.plot is not None and chosen.plot.suffix.lower() != ".svg":
        raise typer.BadParameter(f"{chosen.plot} does not end in .svg", param_hint="--plot")
    for hint, file in (("--json", chosen.json), ("--plot", chosen.plot)):
        if file is not None and not file.absolute().parent.is_dir():
            raise typer.BadParameter(f"there is no folder {file.parent}", param_hint=hint)


def _print_report(ctx: typer.Context, report: "Report", chosen: EvalOptions) -> None:
    if chosen.json is not None:
        chosen.json.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    if chosen.plot is not None:
        chosen.plot.write_text(lazy.load("holdfast.evaluation.plot").plot_report(report), "utf-8")
    if not options.get(ctx).is_table:
        output.print_rows(ctx, report.figures, (), report)
        return
    levels = [level for level in LETTERS if any(figures.level == level for figures in report.figures)]
    for number, level in enumerate(levels):
        if number:
            output.print_blank_line()
        output.print_rows(ctx, [row for row in report.figures if row.level == level], _columns(level))
    output.print_notice(_describe_report(report))
    for note in report.notes:
        output.print_notice(note)


def _columns(level: str) -> list[Column]:
    def share(measure: str, cutoff: int | None = None) -> Callable[[Any], str]:
        def cell(row: Any) -> str:
            value = getattr(row.scores, measure)
            return format_share(value if cutoff is None else value[cutoff])

        return cell

    return [
        Column(f"{level}s", lambda row: row.category),
        Column("n", lambda row: row.questions, align_right=True),
        *(Column(f"{LETTERS[level]}@{k}", share("share", k), align_right=True) for k in SHOWN_CUTOFFS),
        Column("any@10", share("any", 10), align_right=True),
        Column("all@10", share("all", 10), align_right=True),
        Column("NDCG", share("ndcg"), align_right=True),
        Column("MRR", share("mrr"), align_right=True),
    ]


def format_share(value: float) -> str:
    """Format a share with three digits.

    >>> format_share(0.8284), format_share(1.0)
    ('.828', '1.000')
    """
    return f"{value:.3f}".removeprefix("0")


def _describe_report(report: "Report") -> str:
    left_out = f" {report.left_out:,} questions without evidence were left out." if report.left_out else ""
    milliseconds = 1_000 * report.seconds_per_question
    return (
        f"{report.dataset}: {len(report.answers):,} questions about {report.conversations:,} conversations,"
        f" {milliseconds:.1f} ms each (median), with {report.settings}.{left_out}"
    )


def _print_comparison(ctx: typer.Context, comparison: "Comparison", chosen: EvalOptions) -> None:
    if chosen.json is not None:
        chosen.json.write_bytes(msgspec.json.format(msgspec.json.encode(comparison), indent=2) + b"\n")
    if chosen.plot is not None:
        chosen.plot.write_text(lazy.load("holdfast.evaluation.plot").plot_comparison(comparison), "utf-8")
    if not options.get(ctx).is_table:
        output.print_rows(ctx, comparison.changed, (), comparison)
        return
    output.print_notice(f"A: {comparison.first}")
    output.print_notice(f"B: {comparison.second}")
    for level in LETTERS:
        rows = [row for row in comparison.figures if row.level == level]
        output.print_rows(ctx, rows, _compared_columns(level))
        if rows:
            output.print_blank_line()
    output.print_rows(ctx, comparison.changed, CHANGED)
    won = sum(each.change == "won" for each in comparison.changed)
    lost = len(comparison.changed) - won
    output.print_notice(f"{won} questions have more of their evidence among the first ten results, {lost} have less.")


def _compared_columns(level: str) -> list[Column]:
    def share(which: str, name: str) -> Callable[[Any], str]:
        return lambda row: format_share(getattr(row, which)[name])

    names = [*(f"{LETTERS[level]}@{k}" for k in COMPARED), "MRR"]
    return [
        Column(f"{level}s", lambda row: row.category),
        Column("n", lambda row: row.questions, align_right=True),
        *(
            Column(f"{name} {side}", share(which, name), align_right=True)
            for name in names
            for side, which in (("A", "first"), ("B", "second"))
        ),
    ]


CHANGED = (
    Column("change", lambda row: row.change),
    Column("A", lambda row: row.first_rank, align_right=True),
    Column("B", lambda row: row.second_rank, align_right=True),
    Column("category", lambda row: row.category),
    Column("question", lambda row: row.question, shrinks=True),
)
