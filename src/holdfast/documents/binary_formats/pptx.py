"""PowerPoint presentations: a section for each slide."""

import io
from typing import Any

from holdfast import lazy
from holdfast.documents.binary_formats.line_writer import LineWriter
from holdfast.documents.packages import MAX_TREE_BYTES, open_package
from holdfast.documents.parsed import Extracted
from holdfast.text.sentences import to_single_line

MAX_SLIDES = 5_000
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"


def parse_pptx(data: bytes) -> Extracted:
    """Return the texts of a presentation, slide by slide, with the notes of the speaker."""
    open_package(data, MAX_TREE_BYTES).close()
    presentation = lazy.pptx.Presentation(io.BytesIO(data))
    writer = LineWriter()
    count = 0
    for number, slide in enumerate(presentation.slides, 1):
        if number > MAX_SLIDES or writer.is_full:
            writer.notes.append(f"Only the first {number - 1} slides were read.")
            break
        count = number
        title_shape = slide.shapes.title
        title = to_single_line(title_shape.text_frame.text[:300]) if title_shape is not None else ""
        writer.begin((title or f"Slide {number}",), number)
        writer.add(f"# {title or f'Slide {number}'}\n")
        writer.begin_body()
        for line in _lines(slide.element):
            if to_single_line(line) != title:
                writer.add(line)
        if slide.has_notes_slide:
            notes = slide.notes_slide.notes_text_frame
            if notes is not None and notes.text.strip():
                writer.add(f"\nNotes: {notes.text}")
        writer.add("")
    core = presentation.core_properties
    metadata = {"author": core.author, "subject": core.subject, "keywords": core.keywords, "slides": count}
    text, sections = writer.finish()
    title = core.title if core.title != "PowerPoint Presentation" else ""
    first = sections[0].path[0] if sections and sections[0].path else ""
    return Extracted(text, sections, title or first, metadata, writer.notes, merges=False)


def _lines(slide: Any) -> list[str]:
    """Return the paragraphs of a slide, and each row of its tables as one line."""
    lines: list[str] = []
    paragraphs_of_table = 0
    for element in slide.iter(f"{_A}tr", f"{_A}p"):
        if element.tag == f"{_A}tr":
            cells = [" ".join(_text(cell).split()) for cell in element.iterchildren(f"{_A}tc")]
            lines.append(" | ".join(cells))
            paragraphs_of_table = sum(1 for _ in element.iter(f"{_A}p"))
        elif paragraphs_of_table:
            paragraphs_of_table -= 1
        elif text := _text(element).strip():
            lines.append(text)
    return lines


def _text(element: Any) -> str:
    return "".join(node.text or "" if node.tag == f"{_A}t" else "\n" for node in element.iter(f"{_A}t", f"{_A}br"))
