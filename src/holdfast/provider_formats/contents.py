"""Translates the `content` of a message: texts and images become parts, any other block is kept unchanged."""

from typing import Any

from holdfast.errors import InvalidArgumentError, short_repr
from holdfast.model.parts import TEXT_BLOCKS, ImagePart, Part, ProviderPart, TextPart
from holdfast.provider_formats.fields import is_empty

CACHE_FIELDS = frozenset({"cache_control", "prompt_cache_breakpoint"})
"""Hints for a provider's cache. They belong to one request and are no content."""
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


def type_of(value: Any) -> str:
    """Return the `type` field of an object, or an empty string if there is none."""
    type_field = value.get("type") if isinstance(value, dict) else None
    return type_field if isinstance(type_field, str) else ""


def split_blocks(field: str, content: Any) -> list[Any]:
    """Return the blocks of a `content`. A single text or object is one block."""
    if is_empty(content):
        return []
    blocks = content if isinstance(content, list) else [content]
    for number, block in enumerate(blocks):
        if not isinstance(block, str | dict):
            raise InvalidArgumentError(f"{field}[{number}]", not_a_dict_problem(block))
    return blocks


def not_a_dict_problem(value: Any) -> str:
    if hasattr(value, "model_dump"):
        return f"is a {type(value).__name__}; pass a dictionary, such as the result of its model_dump()"
    return f"is {short_repr(value)}; pass a dictionary"


def translate_block(block: Any) -> Part:
    """Return a text part or an image part if it can hold all of the block. Otherwise return a provider part.

    >>> translate_block({"type": "image_url", "image_url": {"url": "file:///a.png"}})
    ImagePart(url='file:///a.png', description='', detail='')
    >>> translate_block({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}).provider
    'anthropic'
    """
    text = plain_text(block)
    if text is not None:
        return TextPart(text)
    image = _plain_image(block)
    return as_provider_part(block) if image is None else image


def as_provider_part(block: dict[str, Any]) -> ProviderPart:
    return ProviderPart(_detect_provider(block), block)


def translate_output(content: Any) -> Any:
    """Return the output of a tool: a string if it consists only of text, else the unchanged value."""
    if content is None:
        return ""
    if isinstance(content, dict) or (isinstance(content, list) and content):
        texts = [plain_text(block) for block in (content if isinstance(content, list) else [content])]
        if None not in texts:
            return "\n".join(text for text in texts if text is not None)
    return content


def plain_text(block: Any) -> str | None:
    """Return the text of a block that holds nothing but text, or None."""
    if isinstance(block, str):
        return block
    block_type = type_of(block)
    field = "refusal" if block_type == "refusal" else "text"
    if block_type not in TEXT_BLOCKS and block_type != "refusal":
        return None
    text, others = block.get(field), {key: value for key, value in block.items() if key not in {"type", field}}
    if isinstance(text, dict):  # the format of OpenAI's assistant threads
        others |= {key: value for key, value in text.items() if key != "value"}
        text = text.get("value")
    return text if isinstance(text, str) and _are_droppable(others) else None


def _plain_image(block: dict[str, Any]) -> ImagePart | None:
    match type_of(block):
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
        if isinstance(url, str) and isinstance(detail, str) and _are_droppable(rest)
        else None
    )


def is_droppable_field(key: str, value: Any) -> bool:
    """Return whether a field of a block can be dropped: it is empty, or a hint for a cache."""
    return key in CACHE_FIELDS or is_empty(value)


def _are_droppable(others: dict[str, Any]) -> bool:
    return all(is_droppable_field(key, value) for key, value in others.items())


def _detect_provider(block: dict[str, Any]) -> str:
    block_type = type_of(block)
    if block_type in OPENAI_BLOCKS or (block_type == "text" and "annotations" in block):
        return "openai"
    if block_type in ANTHROPIC_BLOCKS or block_type.endswith("_tool_result"):
        return "anthropic"
    return "other"
