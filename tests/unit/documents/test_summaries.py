"""Files and folders have an abstract of one line and an overview with an outline."""

import pytest

from holdfast.documents import ChildSummary, parse, summarise_file, summarise_folder
from sample_files import SAMPLE_MAIL, make_docx, make_epub, make_pdf, make_png, make_xlsx

PROSE = "The gateway restarts every night and writes a report about it. " * 8
GUIDE = (
    f"# Guide\n\nHow to run the gateway. {PROSE}\n\n## Install\n\nUse apt. {PROSE}\n\n"
    f"## Billing\n\nPay in euros. {PROSE}"
)
FILES = {
    "guide.md": GUIDE.encode(),
    "long.md": b"".join(b"# Chapter %d\n\n%b\n\n" % (number, PROSE.encode()) for number in range(300)),
    "tiny.txt": b"hi",
    "short.md": b"# Note\n\nRestart.",
    "blank.txt": b"\n\n",
    "empty.txt": b"",
    "word.txt": b"x" * 1_000,
    "chinese.txt": ("网关每天晚上重启，并写一份报告。" * 60).encode(),
    "a.json": b'{"a": {"b": [1, 2, 3]}}',
    "a.csv": b"a,b\n1,2\n" * 100,
    "a.pdf": make_pdf(["One.", "Two."]),
    "a.docx": make_docx(),
    "a.xlsx": make_xlsx(),
    "a.epub": make_epub(),
    "a.png": make_png(),
    "a.eml": SAMPLE_MAIL,
}


@pytest.mark.parametrize("name", FILES)
def test_the_abstract_is_shorter_than_the_overview_and_that_than_the_text(name: str) -> None:
    document = parse(name, FILES[name])
    summary = summarise_file(document)
    assert len(summary.abstract) <= len(summary.overview) <= len(document.text)
    assert len(summary.abstract) <= 256
    assert len(summary.overview) <= 2_000
    assert "\n" not in summary.abstract
    assert summary == summarise_file(document)


def test_an_overview_has_the_title_what_it_is_about_and_an_outline() -> None:
    summary = summarise_file(parse("guide.md", FILES["guide.md"]))
    assert summary.abstract.startswith("Guide: How to run the gateway.")
    assert summary.overview.startswith("# Guide\n\nHow to run the gateway.")
    assert "\n\n- Install: Use apt." in summary.overview
    assert "- Page 2: Two." in summarise_file(parse("a.pdf", make_pdf(["One. " * 99, "Two."]))).overview


def test_the_outline_of_a_long_document_names_chapters_and_counts_the_rest() -> None:
    overview = summarise_file(parse("long.md", FILES["long.md"])).overview
    assert "- Chapter 0\n" in overview
    assert overview.endswith(" more")


def test_the_reason_and_the_instruction_of_the_user_are_used() -> None:
    summary = summarise_file(parse("guide.md", FILES["guide.md"]), "for new colleagues", "what about billing in euros")
    assert summary.abstract.endswith("(for new colleagues)")
    assert summary.overview.startswith("Added for: for new colleagues\n\nFocus: what about billing in euros\n\n# Guide")
    assert summary.overview.index("Billing") < summary.overview.index("Install")
    tiny = summarise_file(parse("tiny.txt", b"hi"), "a test")
    assert (tiny.abstract, tiny.overview) == ("hi (a test)", "Added for: a test\n\nhi")
    assert len(summarise_file(parse("tiny.txt", b"hi"), "long " * 1_000, "x" * 9_000).overview) < 1_000


def test_a_folder_is_summarised_by_its_children() -> None:
    children = [
        ChildSummary("guide.md", is_folder=False, abstract="How to run the gateway."),
        ChildSummary("api", is_folder=True, abstract="3 files: paths and errors."),
    ]
    summary = summarise_folder("docs", children, reason="for support")
    assert summary.abstract == (
        "docs: 1 file and 1 folder: guide.md (How to run the gateway.), api (3 files: paths and errors.) (for support)"
    )
    assert summary.overview == (
        "Added for: for support\n\n# docs\n\n1 file and 1 folder.\n\n"
        "- **guide.md**: How to run the gateway.\n- **api/**: 3 files: paths and errors."
    )


def test_the_summary_of_a_folder_is_bounded_whatever_its_size() -> None:
    children = [ChildSummary(f"{number}.md", is_folder=False, abstract="text " * 500) for number in range(20_000)]
    summary = summarise_folder("big", children)
    assert summary.abstract.startswith("big: 20000 files: 0.md (text text")
    assert (len(summary.abstract) <= 256, len(summary.overview) <= 2_200) == (True, True)
    assert summary.overview.endswith(" more")
    assert summarise_folder("none", []).overview == "# none\n\nEmpty."
