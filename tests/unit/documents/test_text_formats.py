"""Texts are split by their structure: headings, classes and functions, keys, rows."""

import pytest

from holdfast.documents import ParsedDocument, parse, read_front_matter

PROSE = "The gateway restarts every night and writes a report about it. " * 8


def titles(document: ParsedDocument) -> list[str]:
    return [part.title for part in document.parts]


def texts(document: ParsedDocument) -> list[str]:
    return [document.text[part.start : part.end] for part in document.parts]


def test_markdown_is_split_by_headings_with_their_paths() -> None:
    source = (
        f"# Guide\n\n{PROSE}\n\n## Install\n\n{PROSE}\n\n### Linux\n\nUse apt on Debian. {PROSE}\n\n"
        f"Usage\n-----\n\n```sh\n# not a heading\n## neither\n```\n{PROSE}"
    )
    document = parse("docs/guide.md", source.encode())
    assert titles(document) == ["Guide", "Guide > Install", "Guide > Install > Linux", "Guide > Usage"]
    assert (document.title, document.media_type, document.text) == ("Guide", "text/markdown", source)
    assert document.parts[2].abstract.startswith("Use apt on Debian.")
    assert "".join(texts(document)) == source
    assert document.is_content


def test_short_neighbouring_sections_are_one_part_with_all_names() -> None:
    document = parse("a.md", b"# Install\n\n## Linux\n\nUse apt.\n\n## macOS\n\nUse brew.\n")
    assert titles(document) == ["Install: Linux, macOS"]
    assert document.parts[0].abstract == "Use apt. Use brew."


def test_a_long_section_is_split_at_paragraphs() -> None:
    document = parse("a.md", b"# Log\n\n" + b"A paragraph of some length about the night shift.\n\n" * 200)
    assert len(document.parts) > 2
    assert titles(document)[1] == f"Log (2 of {len(document.parts)})"
    assert all(500 < len(text) <= 3_500 and text.endswith("\n\n") for text in texts(document))


def test_front_matter_is_metadata_and_no_heading() -> None:
    source = (
        b"---\nname: search-logs\ndescription: >\n  Finds lines\n  in logs.\n"
        b'tags: [ops, "logs"]\nuses:\n  - grep\n---\n# Use\nCall it.'
    )
    document = parse("SKILL.md", source)
    assert document.title == "search-logs"
    assert document.metadata["description"] == "Finds lines in logs."
    assert (document.metadata["tags"], document.metadata["uses"]) == (["ops", "logs"], ["grep"])
    assert titles(document) == ["Use"]
    assert document.parts[0].abstract == "Call it."
    assert read_front_matter("---\nnever: closed\n").end == 0


def test_python_is_split_by_classes_methods_and_functions() -> None:
    body = "        value = compute(value)\n" * 20
    source = (
        '"""Reads orders."""\n\nimport csv\n\n\n@cache\ndef load(path):\n    """Load the orders of a file."""\n'
        f'{body}\n\nclass Order:\n    """def not_a_function(): in a docstring"""\n\n'
        f"    def total(self):\n        # the sum\n{body}"
        f"\n    async def send(self):\n{body}\n        def inner():\n            pass\n"
    )
    document = parse("orders.py", source.encode())
    assert titles(document) == ["load", "Order: total", "Order > send"]
    assert document.parts[0].abstract.endswith("def load(path): Load the orders of a file.")
    assert texts(document)[0].count("@cache") == 1
    assert document.metadata["description"] == "Reads orders."
    assert "".join(texts(document)) == source


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        (
            "a.ts",
            "export async function load(x: string) {\n%}\n\nexport const save = async (x) => {\n%}\n",
            ["load", "save"],
        ),
        ("a.go", "func (s *Server) Run(ctx Context) error {\n%}\n\ntype Config struct {\n%}\n", ["Run", "Config"]),
        (
            "a.rs",
            "pub fn run() {\n%}\n\nimpl Server {\n    fn stop(&self) {\n%    }\n}\n",
            ["run", "Server: stop"],
        ),
        (
            "a.c",
            "/* starts */\nint main(int argc, char **argv)\n{\n%}\n\nstatic void stop(void) {\n%}\n",
            ["main", "stop"],
        ),
        ("A.java", "public class A {\n    private int run(int a) {\n%    }\n}\n", ["A: run"]),
        ("a.rb", "module Ops\n  def restart\n%  end\nend\n", ["Ops: restart"]),
    ],
)
def test_code_of_other_languages_is_split_by_declarations(name: str, source: str, expected: list[str]) -> None:
    document = parse(name, source.replace("%", "        step(1, 2, 3);\n" * 20).encode())
    assert titles(document) == expected


def test_html_has_no_tags_scripts_or_styles_and_is_split_by_headings() -> None:
    source = (
        f"<!doctype html><html><head><title>Runbook</title><style>p {{color: red}}</style></head><body><h1>On call</h1>"
        f"<p>Read   <b>this</b> &amp; that.</p><p>{PROSE}</p><h2>Pods</h2><ul><li>one<li>two</ul><!-- hidden -->"
        f"<table><tr><th>a<th>b<tr><td>1<td>2</table><pre>x\n  y</pre><p>{PROSE}</p><script>alert('<p>')</script>"
    )
    document = parse("runbook.html", source.encode())
    assert (document.title, titles(document)) == ("Runbook", ["On call", "On call > Pods"])
    assert "Read this & that." in document.text
    assert "\n- one\n- two\n" in document.text
    assert "a | b\n1 | 2" in document.text
    assert "x\n  y" in document.text
    assert not any(word in document.text for word in ("hidden", "alert", "color", "<", "Runbook"))
    assert not document.is_content


def test_json_is_split_by_keys_and_lists_by_items() -> None:
    value = ",".join(f'"k{number}": [1, "}}]", {{"a": null}}]' for number in range(300))
    document = parse("config.json", f'{{"first": {{{value}}}, "second": true, "third": "x"}}'.encode())
    assert titles(document)[0].startswith("first (1 of")
    assert titles(document)[-1] == "second, third"
    assert document.metadata["description"] == "JSON with the keys first, second, third."
    numbers = parse("n.json", f"[{', '.join(map(str, range(2_000)))}]".encode())
    assert numbers.metadata["description"] == "JSON list with 2000 items."
    assert titles(numbers)[0].startswith("items 1 to ")
    assert titles(parse("a.jsonl", b'{"a": 1}\n{"a": 2}\n')) == ["lines 1 to 2"]


def test_csv_is_split_by_rows_and_each_part_names_the_columns() -> None:
    rows = "".join(f'{number},"Ann ""A""\nfrom Rome",{number * 7}\n' for number in range(1, 301))
    document = parse("orders.csv", f"order,customer,amount\n{rows}".encode())
    assert len(document.parts) > 2
    assert titles(document)[0].startswith("order, customer, amount, rows 1 to ")
    assert all(part.abstract.startswith("order, customer, amount: ") for part in document.parts)
    assert all(text.rstrip()[-1].isdigit() for text in texts(document))
    assert document.metadata["rows"] == 300
    assert parse("a.csv", "Stadt;Land\nKöln;DE".encode()).metadata["columns"] == ["Stadt", "Land"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_an_encoding_with_a_mark_is_read(encoding: str) -> None:
    document = parse("a.txt", "Zürich 狐".encode(encoding))
    assert (document.text, document.notes, document.is_content) == ("Zürich 狐", [], False)


def test_line_breaks_and_unknown_extensions_are_kept_as_text() -> None:
    document = parse("deep/folder/Dockerfile", b"FROM x\r\n\r\nRUN y\n")
    assert (document.text, document.title, document.media_type) == ("FROM x\r\n\r\nRUN y\n", "Dockerfile", "text/plain")
    assert parse("empty.md", b"").parts == []
