"""The text of a message as a person or a model reads it, without what it repeats from a search."""

from collections.abc import Iterator

from holdfast.model.messages import Message
from holdfast.model.parts import ImagePart, ProviderPart, TextPart, ToolPart, as_text
from holdfast.search.results.recalled import own_parts


def readable_text(message: Message) -> str:
    r"""Return the texts of a message, its tool calls with their results, and the descriptions of its images.

    >>> from datetime import UTC, datetime
    >>> call = ToolPart(tool_name="weather", tool_input={"city": "Naxos"}, tool_output="24 degrees")
    >>> readable_text(Message("m1", "assistant", [TextPart("Let me see."), call], datetime.now(UTC), 1, 9))
    'Let me see.\n[weather {"city":"Naxos"}: 24 degrees]'
    """
    return "\n".join(text for text in _texts(message) if text).strip()


def _texts(message: Message) -> Iterator[str]:
    for part in own_parts(message):
        match part:
            case TextPart():
                yield part.text
            case ToolPart():
                call = f"{part.tool_name} {as_text(part.tool_input)}".strip()
                yield f"[{call}: {as_text(part.tool_output)}]"
            case ImagePart():
                yield part.description and f"[image: {part.description}]"
            case ProviderPart():
                yield part.readable
