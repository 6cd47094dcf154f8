"""What a message is made of: text, references to context, images, tool calls, and what only a provider knows."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from holdfast.model.base import WireStruct

ToolStatus = Literal["pending", "running", "completed", "error"]
ContextType = Literal["memory", "resource", "skill"]
NonNegative = Annotated[int, msgspec.Meta(ge=0)]


def stated(default: str) -> Any:
    """A default that is written out also when it was not changed: readers on the wire rely on the key."""
    return msgspec.field(default_factory=lambda: default)


class PartBase(WireStruct, frozen=True, tag_field="type", omit_defaults=True):
    @property
    def type(self) -> str:
        return str(type(self).__struct_config__.tag)

    def keys(self) -> tuple[str, ...]:
        return "type", *super().keys()

    def __getitem__(self, key: str) -> Any:
        return self.type if key == "type" else super().__getitem__(key)


class TextPart(PartBase, frozen=True, tag="text", gc=False):
    """`TextPart("How do I configure embedding?")`"""

    text: str


class ContextPart(PartBase, frozen=True, tag="context", gc=False):
    """A reference to a memory, a resource or a skill, with the abstract that was shown."""

    uri: str
    context_type: ContextType = stated("memory")
    abstract: str = stated("")


def spell_image(fields: dict[str, Any]) -> dict[str, Any]:
    """Translate `image_url`, which is a url or an object with one, to the stored spelling."""
    spelled = dict(fields)
    image = spelled.pop("image_url", None)
    return {**spelled, **(image if isinstance(image, dict) else {} if image is None else {"url": image})}


class _AnyImage(msgspec.StructMeta):
    def __call__(cls, *args: Any, **fields: Any) -> Any:  # noqa: N805 - the class being called
        return super().__call__(*args, **spell_image(fields))


class ImagePart(PartBase, frozen=True, tag="image", gc=False, metaclass=_AnyImage):
    """`ImagePart("file:///login.png", "The login page")`; `image_url=` works too."""

    url: str
    description: str = ""
    detail: str = ""

    if TYPE_CHECKING:

        def __init__(
            self, url: str = ..., description: str = ..., detail: str = ..., *, image_url: str | dict[str, Any] = ...
        ) -> None: ...


TOOL_SPELLINGS = {
    "id": "tool_id",
    "name": "tool_name",
    "input": "tool_input",
    "output": "tool_output",
    "status": "tool_status",
    "duration": "duration_ms",
}


def spell_tool(fields: dict[str, Any]) -> dict[str, Any]:
    """Translate the short spellings of a tool call (`input`, `output`, `success`, ...) to the stored ones."""
    short = {TOOL_SPELLINGS[key]: value for key, value in fields.items() if key in TOOL_SPELLINGS}
    spelled = {**short, **{key: value for key, value in fields.items() if key not in TOOL_SPELLINGS}}
    success = spelled.pop("success", None)
    if success is not None and "tool_status" not in spelled:
        spelled["tool_status"] = "completed" if success else "error"
    return spelled


class _AnyTool(msgspec.StructMeta):
    def __call__(cls, *args: Any, **fields: Any) -> Any:  # noqa: N805 - the class being called
        return super().__call__(*args, **spell_tool(fields))


class ToolPart(PartBase, frozen=True, tag="tool", metaclass=_AnyTool):
    """A tool call and, once there is one, its result.

    The short spelling works too: `ToolPart(tool_name="search", input={...}, output={...}, success=True)`.
    An output above the threshold is kept apart: `tool_output` is then a preview and `tool_result_id` its key.
    """

    tool_id: str = stated("")
    tool_name: str = stated("")
    tool_uri: str = ""
    skill_uri: str = ""
    tool_input: Any = None
    tool_output: Any = stated("")
    tool_status: ToolStatus = stated("pending")
    duration_ms: Annotated[float, msgspec.Meta(ge=0)] | None = None
    prompt_tokens: NonNegative | None = None
    completion_tokens: NonNegative | None = None
    tool_result_id: str = ""
    tool_output_chars: int = 0
    provider_fields: dict[str, Any] | None = None
    """What else a provider's call or result had, as it came."""

    if TYPE_CHECKING:

        def __init__(
            self,
            tool_id: str = ...,
            tool_name: str = ...,
            *,
            tool_uri: str = ...,
            skill_uri: str = ...,
            tool_input: Any = ...,
            tool_output: Any = ...,
            tool_status: ToolStatus = ...,
            duration_ms: float | None = ...,
            prompt_tokens: int | None = ...,
            completion_tokens: int | None = ...,
            provider_fields: dict[str, Any] | None = ...,
            id: str = ...,
            name: str = ...,
            input: Any = ...,
            output: Any = ...,
            status: ToolStatus = ...,
            success: bool = ...,
            duration: float = ...,
        ) -> None: ...

    @property
    def input(self) -> Any:
        return self.tool_input

    @property
    def output(self) -> Any:
        return self.tool_output

    @property
    def is_preview(self) -> bool:
        """Whether `tool_output` is only the beginning of what the tool gave, which `tool_result_id` names."""
        if not self.tool_result_id:
            return False
        marked = str(self.tool_output).endswith(f" {self.tool_result_id} ...]")
        return marked or len(self.tool_output) != self.tool_output_chars

    @property
    def success(self) -> bool:
        return self.tool_status == "completed"


class ProviderPart(PartBase, frozen=True, tag="provider"):
    """A block of a provider's message that has no equivalent here, exactly as it came, so that it can be sent back."""

    provider: str
    block: dict[str, Any]

    @property
    def text(self) -> str:
        """What it says in the conversation: the text of a text block, with citations perhaps; of others nothing."""
        text = self.block.get("text")
        return text if self.block.get("type") in TEXT_BLOCKS and isinstance(text, str) else ""

    @property
    def readable(self) -> str:
        """All of it that somebody can read, such as thoughts, titles and results, but no ids and no encoded data."""
        return "\n".join(_readable(self.block))


TEXT_BLOCKS = ("text", "input_text", "output_text", "summary_text", "reasoning_text")
_UNREADABLE_KEYS = {"type", "id", "role", "status", "signature", "encrypted_content", "encrypted_index", "media_type"}
_ENCODED = re.compile(r"[A-Za-z0-9+/_=-]{200}")


def is_encoded(text: str) -> bool:
    """Whether a string is base64 or the like: long, and nothing that a person or a model reads as text."""
    return text.startswith("data:") or _ENCODED.match(text) is not None


def without_encoded(value: Any) -> Any:
    """JSON with its encoded strings emptied: what is left of it costs a model about what its text costs."""
    match value:
        case str():
            return "" if is_encoded(value) else value
        case dict():
            return {key: without_encoded(item) for key, item in value.items()}
        case list() | tuple():
            return [without_encoded(item) for item in value]
        case _:
            return value


def _readable(value: Any) -> Iterator[str]:
    match value:
        case str() if value and not is_encoded(value):
            yield value
        case dict():
            for key, item in value.items():
                if key not in _UNREADABLE_KEYS and not key.endswith("_id"):
                    yield from _readable(item)
        case list() | tuple():
            for item in value:
                yield from _readable(item)


Part = TextPart | ContextPart | ImagePart | ToolPart | ProviderPart
PART_TYPES: dict[str, type[Part]] = {
    "text": TextPart,
    "context": ContextPart,
    "image": ImagePart,
    "image_url": ImagePart,
    "tool": ToolPart,
    "provider": ProviderPart,
}


def as_text(value: Any) -> str:
    """A tool's input or output as the text that a model reads: strings as they are, nothing as nothing, else JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
