"""Whatever bytes of a file change, it is read or gets an error that names it."""

import io
import random
import zipfile

import msgspec
import pytest

from holdfast.documents import parse, summarise_file
from holdfast.errors import DocumentError
from sample_files import (
    SAMPLE_MAIL,
    make_docx,
    make_epub,
    make_jpeg,
    make_pdf,
    make_png,
    make_pptx,
    make_xlsx,
    make_zip,
)

FILES = {
    "a.pdf": make_pdf(["One (a) page."] * 3, "Title", bookmarks={"x": 1, "y": 3}),
    "a.docx": make_docx(),
    "a.pptx": make_pptx(),
    "a.xlsx": make_xlsx(30),
    "a.epub": make_epub(),
    "a.png": make_png(20, 20),
    "a.jpg": make_jpeg(),
    "a.eml": SAMPLE_MAIL,
    "a.md": b"---\nname: a\n---\n# A\n\ntext\n\n## B\n\n```\n# c\n```\n",
    "a.html": b"<title>a</title><h1>a</h1><p>b &amp; <i>c</i><pre>x</pre>" * 9,
    "a.py": b'"""A."""\n@a\ndef f():\n    """B."""\n\nclass C:\n    def g(self):\n        pass\n',
    "a.json": b'{"a":[1,{"b":"c\\""}],"d":null}',
    "a.csv": b'a,"b"\n1,2\n' * 50,
}
ROUNDS, SOAK_ROUNDS = 40, 1_000


def damage(data: bytes, generator: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(generator.randint(1, 6)):
        at, length = generator.randrange(len(changed) + 1), generator.randint(1, 80)
        match generator.randrange(4):
            case 0:
                changed[at : at + 1] = generator.randbytes(1)
            case 1:
                changed[at:at] = changed[generator.randrange(len(changed) + 1) :][:length]
            case 2:
                del changed[at : at + length]
            case _:
                changed[at : at + 4] = generator.choice([b"\xff\xff\xff\xff", bytes(4), b"\x7f\xff\xff\xff"])
    return bytes(changed)


def damage_entry(package: bytes, generator: random.Random) -> bytes:
    """Damage an entry of a zip file, so that its checksum is right."""
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        entries = {info.filename: archive.read(info) for info in archive.infolist()}
    name = generator.choice(sorted(entries))
    return make_zip(entries | {name: damage(entries[name], generator)})


@pytest.mark.rounds
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_read_or_gets_an_error(name: str, is_soak: bool) -> None:
    generator = random.Random(name)
    for number in range(SOAK_ROUNDS if is_soak else ROUNDS):
        is_entry = number % 4 and name.endswith(("x", "epub"))
        data = (damage_entry if is_entry else damage)(FILES[name], generator)
        try:
            document = parse(name, data)
        except DocumentError as error:
            assert error.message.startswith(f"file: '{name}' ")  # noqa: PT017 - it is read or refused
            continue
        summary = summarise_file(document)
        assert len(summary.abstract) <= len(summary.overview) <= len(document.text)
        assert all(0 <= part.start < part.end <= len(document.text) for part in document.parts)
        assert "\0" not in document.text
        assert msgspec.json.decode(msgspec.json.encode(document), type=type(document)) == document
