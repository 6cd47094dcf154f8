"""Word documents: sections by headings."""

import io
import re
from collections.abc import Iterator
from typing import Any

from holdfast import lazy
from holdfast.documents.binary_formats.line_writer import LineWriter
from holdfast.documents.packages import MAX_TREE_BYTES, open_package
from holdfast.documents.parsed import Extracted

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_HEADING_NAME = re.compile(r"heading ([1-9])$", re.IGNORECASE)
_TITLE_LEVEL = 0
_ITEM_LEVEL = -1
_PIECES = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}


def parse_docx(data: bytes) -> Extracted:
    """Return the text of a Word document. Headings are marked as in Markdown, and cells are separated by `|`."""
    open_package(data, MAX_TREE_BYTES).close()
    document = lazy.docx.Document(io.BytesIO(data))
    levels = _style_levels(document)
    writer = LineWriter()
    title = ""
    headings: list[tuple[int, str]] = []
    for block in _blocks(document.element.body):
        if block.tag == f"{_W}tbl":
            for row in block.iterchildren(f"{_W}tr"):
                writer.add(" | ".join(_text(cell).replace("\n", " ") for cell in row.iterchildren(f"{_W}tc")))
            writer.add("")
            continue
        text = _text(block).strip()
        if not text:
            continue
        level = _level(block, levels)
        if level is None or level == _ITEM_LEVEL:
            is_item = level == _ITEM_LEVEL or block.find(f"{_W}pPr/{_W}numPr") is not None
            writer.add(f"- {text}" if is_item else f"{text}\n")
            continue
        if level == _TITLE_LEVEL:
            title = title or text
            writer.add(f"# {text}\n")
            continue
        while headings and headings[-1][0] >= level:
            headings.pop()
        headings.append((level, text.replace("\n", " ")))
        writer.begin(tuple(name for _, name in headings))
        writer.add(f"{'#' * min(level, 6)} {headings[-1][1]}\n")
        writer.begin_body()
    core = document.core_properties
    metadata = {"author": core.author, "subject": core.subject, "keywords": core.keywords}
    first = next((name for level, name in headings if level == 1), "")
    text, sections = writer.finish()
    return Extracted(text, sections, core.title or title or first, metadata, writer.notes)


def _style_levels(document: Any) -> dict[str, int]:
    """Return the level of each style that is a heading, a title or an item of a list."""
    levels: dict[str, int] = {}
    for style in document.styles.element.iterchildren(f"{_W}style"):
        name = style.find(f"{_W}name")
        label = name.get(f"{_W}val", "") if name is not None else ""
        if match := _HEADING_NAME.match(label):
            levels[style.get(f"{_W}styleId", "")] = int(match[1])
        elif label.lower() == "title":
            levels[style.get(f"{_W}styleId", "")] = _TITLE_LEVEL
        elif label.lower().startswith("list "):
            levels[style.get(f"{_W}styleId", "")] = _ITEM_LEVEL
    return levels


def _level(paragraph: Any, levels: dict[str, int]) -> int | None:
    style = paragraph.find(f"{_W}pPr/{_W}pStyle")
    return levels.get(style.get(f"{_W}val", "")) if style is not None else None


def _blocks(body: Any) -> Iterator[Any]:
    """Return the paragraphs and tables of a body, also of those in content controls."""
    waiting = [body.iterchildren()]
    while waiting:
        block = next(waiting[-1], None)
        if block is None:
            waiting.pop()
        elif block.tag in {f"{_W}p", f"{_W}tbl"}:
            yield block
        elif block.tag in {f"{_W}sdt", f"{_W}sdtContent", f"{_W}customXml", f"{_W}ins", f"{_W}smartTag"}:
            waiting.append(block.iterchildren())


def _text(element: Any) -> str:
    nodes = element.iter(f"{_W}t", *_PIECES)
    return "".join(node.text or "" if node.tag == f"{_W}t" else _PIECES[node.tag] for node in nodes)
