"""The CPU time of every parser grows at most as n log n on hostile input."""

from collections.abc import Callable
from functools import partial

import pytest

from holdfast.documents import ChildSummary, parse, summarise_file, summarise_folder
from holdfast.documents.binary_formats.mail import parse_mail
from holdfast.documents.formats import BY_EXTENSION, FORMATS
from holdfast.documents.text_formats.plain import parse_svg
from holdfast.errors import DocumentError
from holdfast.testing.timing.growth import growth_problem
from holdfast.testing.timing.hostile_values import TEXTS
from sample_files import make_epub, make_pdf, make_xlsx, make_zip

SIZE = 40_000
"""Characters of the smallest hostile input. The largest has four times as many."""
FLOOR_SECONDS = 0.15

SHAPES: dict[str, Callable[[int], str]] = {
    **TEXTS,
    "headings": lambda n: "# a\n" * (n // 4),
    "deeper headings": lambda n: "".join(f"{'#' * (1 + at % 6)} h{at}\n" for at in range(n // 8)),
    "underlines": lambda n: "a\n===\n" * (n // 6),
    "fences": lambda n: "```\n~~~\n" * (n // 8),
    "open front matter": lambda n: "---\n" + "a: [b\n" * (n // 6),
    "front matter": lambda n: "---\n" + "a:\n - b\n" * (n // 8) + "---\n",
    "functions": lambda n: "def f():\n    x\n" * (n // 16),
    "nested classes": lambda n: "".join(f"{' ' * (at % 9)}class C{at}:\n" for at in range(n // 14)),
    "decorators": lambda n: "@a\n" * (n // 3),
    "docstrings": lambda n: '"""' * (n // 3),
    "comments": lambda n: "/* a\n" * (n // 5),
    "parentheses": lambda n: "int a(" * (n // 6) + "{",
    "open comments": lambda n: "<!--" * (n // 4),
    "open tags": lambda n: "<a b='\"" * (n // 7),
    "open scripts": lambda n: "<script>" * (n // 8),
    "nested elements": lambda n: "<div><b>" * (n // 8),
    "elements of headings": lambda n: "<h1>" * (n // 4) + "</h1>" * (n // 8),
    "titles": lambda n: "<title>a</title>" * (n // 16),
    "references": lambda n: "&amp" * (n // 4) + "&#" * (n // 4),
    "rows": lambda n: 'a,"b\n' * (n // 5),
    "many columns": lambda n: "a," * (n // 2) + "\n1",
    "open strings": lambda n: '["\\' * (n // 3),
    "keys": lambda n: "{" + ",".join(f'"k{at}":1' for at in range(n // 9)) + "}",
    "lines": lambda n: "{}\n" * (n // 3),
    "mail headers": lambda n: "From: a\n" + "To: =?utf-8?q?a?= (" * (n // 19),
    "mail words": lambda n: "Subject: " + "=?utf-8?q?a" * (n // 11),
    "mail parts": lambda n: "From: a\nContent-Type: multipart/mixed; boundary=b\n\n" + "--b\n\n\n" * (n // 6),
    "mail comments": lambda n: "From: a\nContent-Type: text/plain; " + 'a=(;"' * (n // 5),
}
EXTENSIONS = ("c", "csv", "eml", "html", "json", "jsonl", "md", "py", "tsv", "txt")
"""One for each parser of files that need no signature."""


def test_every_parser_of_texts_is_measured() -> None:
    parsers = {each.read_text or each.read_bytes for each in FORMATS if not each.signatures}
    assert {BY_EXTENSION[extension].read_text or parse_mail for extension in EXTENSIONS} == parsers - {parse_svg}


def read(name: str, data: bytes) -> None:
    try:
        document = parse(name, data)
    except DocumentError:
        return
    summarise_file(document, instruction="where is the gateway")


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_no_text_makes_a_parser_slow(extension: str) -> None:
    def prepare(shape: str, size: int) -> Callable[[], None]:
        data = SHAPES[shape](size).encode("utf-8", "ignore")
        return lambda: read(f"a.{extension}", data)

    problems = [
        f"{shape}: {problem}"
        for shape in SHAPES
        if (problem := growth_problem(partial(prepare, shape), SIZE, floor_seconds=FLOOR_SECONDS))
    ]
    assert not problems, "\n".join(problems)


FILES: dict[str, Callable[[int], bytes]] = {
    "pages.pdf": lambda n: make_pdf(["a report"] * n),
    "lines.pdf": lambda n: make_pdf(["a\n" * 10 * n]),
    "rows.xlsx": lambda n: make_xlsx(5 * n),
    "chapters.epub": lambda n: make_epub({"OPS/one.xhtml": b"<h1>a</h1>" * 100 * n}),
    "entries.docx": lambda n: make_zip({f"word/{at}": b"" for at in range(5 * n)}),
}


@pytest.mark.parametrize("name", FILES)
def test_no_large_file_makes_a_parser_slow(name: str) -> None:
    def prepare(size: int) -> Callable[[], None]:
        data = FILES[name](size)
        return lambda: read(name, data)

    assert growth_problem(prepare, 50, floor_seconds=FLOOR_SECONDS) is None


def test_a_folder_of_many_children_is_summarised_fast() -> None:
    def prepare(size: int) -> Callable[[], object]:
        children = [ChildSummary(f"{at}", is_folder=False, abstract="a " * 50) for at in range(size)]
        return lambda: summarise_folder("a", children)

    assert growth_problem(prepare, 10_000, floor_seconds=0.05) is None
