"""Images: size, format and texts of the metadata, described in words. The pixels are not decoded."""

import io
from typing import Any

from holdfast import lazy
from holdfast.documents.decoding import storable
from holdfast.documents.parsed import Extracted, Section, UnreadableError
from holdfast.text.sentences import to_single_line

MAX_PIXELS = 180_000_000
"""A larger image would need more than 500 MB of memory to be shown."""
MAX_VALUE_CHARS = 1_000
_READERS = (
    (b"\x89PNG", "PIL.PngImagePlugin", "PngImageFile"),
    (b"\xff\xd8\xff", "PIL.JpegImagePlugin", "JpegImageFile"),
    (b"GIF8", "PIL.GifImagePlugin", "GifImageFile"),
    (b"RIFF", "PIL.WebPImagePlugin", "WebPImageFile"),
    (b"BM", "PIL.BmpImagePlugin", "BmpImageFile"),
    (b"II*\x00", "PIL.TiffImagePlugin", "TiffImageFile"),
    (b"MM\x00*", "PIL.TiffImagePlugin", "TiffImageFile"),
)
"""How the content begins, and the class of Pillow that reads it. Other formats of Pillow are not used: some start
programs."""
_TEXT_TAGS = {
    0x010E: "description",
    0x010F: "camera maker",
    0x0110: "camera",
    0x0131: "software",
    0x0132: "taken at",
    0x013B: "artist",
    0x8298: "copyright",
    0x9C9B: "title",
    0x9C9C: "comment",
    0x9C9E: "keywords",
    0x9C9F: "subject",
}
_EXIF_DETAILS = 0x8769
_DETAIL_TAGS = {0x9003: "taken at", 0x9286: "comment", 0xA434: "lens"}
_POSITION = 0x8825


def parse_image(data: bytes) -> Extracted:
    """Describe an image. Only its header is read."""
    for signature, module, name in _READERS:
        if data.startswith(signature):
            return _describe(_open(data, module, name))
    raise UnreadableError("is not an image that can be read")


def _open(data: bytes, module: str, name: str) -> Any:
    library = lazy.load(module)
    image = getattr(library, name)(io.BytesIO(data))
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise UnreadableError(
            f"is an image of {width} x {height} pixels, more than {MAX_PIXELS} in all; save it in a smaller size"
        )
    return image


def _describe(image: Any) -> Extracted:
    width, height = image.size
    values = _texts(image)
    about = f"{image.format} image of {width} x {height} pixels."
    lines = [about, *(f"{name.capitalize()}: {value}" for name, value in values.items())]
    text = "\n".join(lines) + "\n"
    described = values.get("description") or values.get("title") or values.get("comment") or ""
    metadata = {"format": image.format, "width": width, "height": height, "mode": image.mode, **values}
    metadata["description"] = f"{about} {described}".strip()
    return Extracted(text, [Section((), 0, len(text))], values.get("title", ""), metadata)


def _texts(image: Any) -> dict[str, str]:
    """Return the texts in the metadata of an image: of EXIF, and of the text chunks of PNG."""
    values: dict[str, str] = {}
    try:
        exif = image.getexif()
        _collect(values, exif, _TEXT_TAGS)
        _collect(values, exif.get_ifd(_EXIF_DETAILS), _DETAIL_TAGS)
        if position := _position(exif.get_ifd(_POSITION)):
            values["position"] = position
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - damaged metadata is left out, the image stays
        values["note"] = "the metadata is damaged"
    for name, value in list(image.info.items())[:100]:
        if isinstance(name, str) and isinstance(value, str) and name not in {"XML:com.adobe.xmp", "exif"}:
            _add(values, name.lower(), value)
    comment = image.info.get("comment")
    if isinstance(comment, bytes):
        _add(values, "comment", comment[:MAX_VALUE_CHARS].decode("utf-8", "replace"))
    return values


def _collect(values: dict[str, str], tags: Any, names: dict[int, str]) -> None:
    for tag, name in names.items():
        value = tags.get(tag)
        if isinstance(value, bytes):  # tags of Windows are UTF-16, comments begin with the name of their encoding
            is_windows = 0x9C9B <= tag <= 0x9C9F  # noqa: PLR2004 - the range of these tags
            short = value[: 2 * MAX_VALUE_CHARS]
            value = short.decode("utf-16-le", "replace") if is_windows else short[8:].decode("utf-8", "replace")
        if isinstance(value, str):
            _add(values, name, value)


def _add(values: dict[str, str], name: str, value: str) -> None:
    line = storable(to_single_line(value[:MAX_VALUE_CHARS].replace("\0", " ")))
    if line:
        values.setdefault(storable(to_single_line(name[:60])), line)


def _position(tags: Any) -> str:
    """Return the latitude and longitude in degrees."""
    if 2 not in tags or 4 not in tags:  # noqa: PLR2004 - the numbers of the tags
        return ""
    degrees = [sum(float(value) / 60**power for power, value in enumerate(tags[tag][:3])) for tag in (2, 4)]
    signs = [-1 if tags.get(tag) in {"S", "W"} else 1 for tag in (1, 3)]
    return f"{signs[0] * degrees[0]:.5f}, {signs[1] * degrees[1]:.5f}"
