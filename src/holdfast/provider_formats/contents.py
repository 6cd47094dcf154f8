"""What a message's `content` holds: texts and images become parts, any other block is kept as it is."""

from typing import Any

from holdfast.errors import InvalidArgumentError, shown
from holdfast.model.parts import TEXT_BLOCKS, ImagePart, Part, ProviderPart, TextPart
from holdfast.provider_formats.fields import is_nothing

CACHE_MARKS = frozenset({"cache_control", "prompt_cache_breakpoint"})
"""Advice to a provider's cache: set anew with each request, and no content."""
OPENAI_BLOCKS = frozenset(
    {
        "audio",
        "computer_screenshot",
        "file",
        "image_url",
        "input_audio",
        "input_file",
        "input_image",
        "input_text",
        "output_audio",
        "output_text",
        "reasoning_text",
        "refusal",
        "summary_text",
    }
)
ANTHROPIC_BLOCKS = frozenset(
    {
        "compaction",
        "container_upload",
        "document",
        "fallback",
        "image",
        "mcp_tool_listing",
        "mcp_tool_use",
        "redacted_thinking",
        "search_result",
        "server_tool_use",
        "text",
        "thinking",
        "tool_addition",
        "tool_removal",
        "tool_result",
        "tool_use",
    }
)


def kind_of(value: Any) -> str:
    """The `type` that an object says it is of, if it says one."""
    kind = value.get("type") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""


def blocks_of(where: str, content: Any) -> list[Any]:
    """The blocks of a `content`: a text alone is one, and so is an object."""
    if is_nothing(content):
        return []
    blocks = content if isinstance(content, list) else [content]
    for number, block in enumerate(blocks):
        if not isinstance(block, str | dict):
            raise InvalidArgumentError(f"{where}[{number}]", not_a_dictionary(block))
    return blocks


def not_a_dictionary(value: Any) -> str:
    if hasattr(value, "model_dump"):
        return f"is a {type(value).__name__}; give a dictionary, as its model_dump() makes one"
    return f"is {shown(value)}; give a dictionary"


def read_block(block: Any) -> Part:
    """A text or an image as such, if nothing of it is lost by that; else the block itself.

    >>> read_block({"type": "image_url", "image_url": {"url": "file:///a.png"}})
    ImagePart(url='file:///a.png', description='', detail='')
    >>> read_block({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}).provider
    'anthropic'
    """
    text = text_in(block)
    if text is not None:
        return TextPart(text)
    image = _image_in(block)
    return kept(block) if image is None else image


def kept(block: dict[str, Any]) -> ProviderPart:
    return ProviderPart(_provider_of(block), block)


def read_output(content: Any) -> Any:
    """A tool's result: its text if it is nothing but text, else the value as it is."""
    if content is None:
        return ""
    if isinstance(content, dict) or (isinstance(content, list) and content):
        texts = [text_in(block) for block in (content if isinstance(content, list) else [content])]
        if None not in texts:
            return "\n".join(text for text in texts if text is not None)
    return content


def text_in(block: Any) -> str | None:
    """The text that is all there is to a block."""
    if isinstance(block, str):
        return block
    kind = kind_of(block)
    field = "refusal" if kind == "refusal" else "text"
    if kind not in TEXT_BLOCKS and kind != "refusal":
        return None
    text, others = block.get(field), {key: value for key, value in block.items() if key not in {"type", field}}
    if isinstance(text, dict):  # as the threads of OpenAI's assistants have it
        others |= {key: value for key, value in text.items() if key != "value"}
        text = text.get("value")
    return text if isinstance(text, str) and _only_marks(others) else None


def _image_in(block: dict[str, Any]) -> ImagePart | None:
    match kind_of(block):
        case "image_url" | "input_image":
            image, others = block.get("image_url"), {**block}
            if isinstance(image, dict):
                others |= {key: value for key, value in image.items() if key != "url"}
                image = image.get("url")
            detail = others.pop("detail", None)
            return _image(image, "" if detail is None else detail, others, "image_url")
        case "image":
            source = block.get("source")
            if not isinstance(source, dict):
                return None
            match source:
                case {"type": "url", "url": str(url), **rest}:
                    return _image(url, "", {**block, **rest}, "source")
                case {"type": "base64", "media_type": str(media), "data": str(data), **rest}:
                    return _image(f"data:{media};base64,{data}", "", {**block, **rest}, "source")
    return None


def _image(url: Any, detail: Any, others: dict[str, Any], field: str) -> ImagePart | None:
    rest = {key: value for key, value in others.items() if key not in {"type", field}}
    return (
        ImagePart(url, detail=detail)
        if isinstance(url, str) and isinstance(detail, str) and _only_marks(rest)
        else None
    )


def is_no_content(key: str, value: Any) -> bool:
    """Whether a field of a block can be left out: it is empty, or a mark for a cache."""
    return key in CACHE_MARKS or is_nothing(value)


def _only_marks(others: dict[str, Any]) -> bool:
    return all(is_no_content(key, value) for key, value in others.items())


def _provider_of(block: dict[str, Any]) -> str:
    kind = kind_of(block)
    if kind in OPENAI_BLOCKS or (kind == "text" and "annotations" in block):
        return "openai"
    if kind in ANTHROPIC_BLOCKS or kind.endswith("_tool_result"):
        return "anthropic"
    return "other"
