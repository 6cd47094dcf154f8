"""What is inside a message of another program: text, images, arguments. Pure functions."""

from typing import Any

import msgspec

from holdfast.errors import HoldfastError, InvalidArgumentError, shown
from holdfast.parts import ImagePart, Part, TextPart, as_text
from holdfast.sound import sound_json

TEXTS = {"text", "input_text", "output_text", "refusal", "summary_text"}
IMAGES = {"image_url", "input_image"}


def read_parts(where: str, content: Any) -> list[Part]:
    """The parts of a `content`: a string or a list of parts. One of a kind that Holdfast lacks is kept as its JSON.

    >>> read_parts("", ["hello", {"type": "image_url", "image_url": {"url": "file:///a.png"}}])
    [TextPart(text='hello'), ImagePart(url='file:///a.png', description='', detail='')]
    """
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [TextPart(content)]
    if isinstance(content, dict):
        return [_read_part(content)]
    if not isinstance(content, list):
        raise InvalidArgumentError(where, f"the content {shown(content)} is neither a string nor a list of parts")
    return [_read_part(part) for part in content]


def read_text(content: Any) -> str | None:
    """The text of a `content`, or None if there is more to it than text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not content:
        return None
    texts = [_text_in(part) for part in content]
    return None if None in texts else "\n".join(text for text in texts if text is not None)


def as_value(text: Any) -> Any:
    """The value that a JSON text stands for, or the text itself if it is not JSON that can be kept as it is.

    >>> as_value('{"q": "fjord"}'), as_value("fjord"), as_value({"q": "fjord"})
    ({'q': 'fjord'}, 'fjord', {'q': 'fjord'})
    """
    if not isinstance(text, str):
        return text
    try:
        value = msgspec.json.decode(text)
        sound_json("arguments", value)
    except (msgspec.DecodeError, HoldfastError, RecursionError, ValueError):
        return text
    return value


def kind_of(value: Any) -> str:
    """The `type` that an object says it is of, if it says one."""
    kind = value.get("type") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""


def _read_part(given: Any) -> Part:
    text = _text_in(given)
    if text is not None:
        return TextPart(text)
    image = _image_in(given)
    return TextPart(as_text(given)) if image is None else image


def _text_in(given: Any) -> str | None:
    if isinstance(given, str):
        return given
    if kind_of(given) not in TEXTS:
        return None
    said = given.get("text", given.get("refusal"))
    if isinstance(said, dict):  # as threads have it
        said = said.get("value")
    return said if isinstance(said, str) else None


def _image_in(given: Any) -> Part | None:
    if kind_of(given) not in IMAGES:
        return None
    image = given.get("image_url")
    told = image if isinstance(image, dict) else {"url": image, "detail": given.get("detail")}
    url = told.get("url") or given.get("file_id")
    detail = told.get("detail")
    return ImagePart(url, detail=detail if isinstance(detail, str) else "") if isinstance(url, str) else None
