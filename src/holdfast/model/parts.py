"""The parts of a message: texts, references to context, images, tool calls, and blocks of a provider."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from holdfast.model.base import TokenCount, WireStruct

ToolStatus = Literal["pending", "running", "completed", "error"]
OPEN_TOOL_STATUSES: frozenset[ToolStatus] = frozenset({"pending", "running"})
"""The statuses of a call that has no result yet."""
ContextType = Literal["memory", "resource", "skill"]


def always_encoded(default: str) -> Any:
    """Return a field default that is encoded even if it is unchanged, because readers of the JSON rely on the key."""
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
    """A text: `TextPart("How do I configure embedding?")`."""

    text: str


class ContextPart(PartBase, frozen=True, tag="context", gc=False):
    """A reference to a memory, a resource or a skill, with its abstract."""

    uri: str
    context_type: ContextType = always_encoded("memory")
    abstract: str = always_encoded("")


def normalise_image_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Replace `image_url`, which is a URL or an object with a URL, by the stored field names."""
    normalised = dict(fields)
    image = normalised.pop("image_url", None)
    return {**normalised, **(image if isinstance(image, dict) else {} if image is None else {"url": image})}


class _ImageMeta(msgspec.StructMeta):
    def __call__(cls, *args: Any, **fields: Any) -> Any:  # noqa: N805 - the class being called
        return super().__call__(*args, **normalise_image_fields(fields))


class ImagePart(PartBase, frozen=True, tag="image", gc=False, metaclass=_ImageMeta):
    """An image: `ImagePart("file:///login.png", "The login page")`. `image_url=` is accepted for `url=`."""

    url: str
    description: str = ""
    detail: str = ""

    if TYPE_CHECKING:

        def __init__(
            self, url: str = ..., description: str = ..., detail: str = ..., *, image_url: str | dict[str, Any] = ...
        ) -> None: ...


TOOL_FIELD_ALIASES = {
    "id": "tool_id",
    "name": "tool_name",
    "input": "tool_input",
    "output": "tool_output",
    "status": "tool_status",
    "duration": "duration_ms",
}


def normalise_tool_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Replace the short field names of a tool call (`input`, `output`, `success`, ...) by the stored ones."""
    aliased = {TOOL_FIELD_ALIASES[key]: value for key, value in fields.items() if key in TOOL_FIELD_ALIASES}
    normalised = {**aliased, **{key: value for key, value in fields.items() if key not in TOOL_FIELD_ALIASES}}
    success = normalised.pop("success", None)
    if success is not None and "tool_status" not in normalised:
        normalised["tool_status"] = "completed" if success else "error"
    return normalised


class _ToolMeta(msgspec.StructMeta):
    def __call__(cls, *args: Any, **fields: Any) -> Any:  # noqa: N805 - the class being called
        return super().__call__(*args, **normalise_tool_fields(fields))


class ToolPart(PartBase, frozen=True, tag="tool", metaclass=_ToolMeta):
    """A tool call and, if it has finished, its result.

    Short field names are accepted too: `ToolPart(tool_name="search", input={...}, output={...}, success=True)`.
    An output above the threshold is stored separately: `tool_output` is then a preview, and `tool_result_id` is the
    key of the whole output.
    """

    tool_id: str = always_encoded("")
    tool_name: str = always_encoded("")
    tool_uri: str = ""
    skill_uri: str = ""
    tool_input: Any = None
    tool_output: Any = always_encoded("")
    tool_status: ToolStatus = always_encoded("pending")
    duration_ms: Annotated[float, msgspec.Meta(ge=0)] | None = None
    prompt_tokens: TokenCount | None = None
    completion_tokens: TokenCount | None = None
    tool_result_id: str = ""
    tool_output_chars: int = 0
    provider_fields: dict[str, Any] | None = None
    """The other fields of a provider's call or result, unchanged."""

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
        """Whether `tool_output` is only the beginning of the output. `tool_result_id` identifies the whole output."""
        if not self.tool_result_id:
            return False
        marked = str(self.tool_output).endswith(f" {self.tool_result_id} ...]")
        return marked or len(self.tool_output) != self.tool_output_chars

    @property
    def success(self) -> bool:
        return self.tool_status == "completed"


class ProviderPart(PartBase, frozen=True, tag="provider"):
    """A block of a provider's message that has no equivalent, unchanged, so that it can be sent back."""

    provider: str
    block: dict[str, Any]

    @property
    def text(self) -> str:
        """The text of a text block, which may have citations. Empty for other blocks."""
        text = self.block.get("text")
        return text if self.block.get("type") in TEXT_BLOCKS and isinstance(text, str) else ""

    @property
    def readable(self) -> str:
        """All readable texts of the block, such as reasoning, titles and results, without ids and encoded data."""
        return "\n".join(_readable(self.block))


TEXT_BLOCKS = ("text", "input_text", "output_text", "summary_text", "reasoning_text")
_UNREADABLE_KEYS = {"type", "id", "role", "status", "signature", "encrypted_content", "encrypted_index", "media_type"}
_ENCODED = re.compile(r"[A-Za-z0-9+/_=-]{200}")


def is_encoded(text: str) -> bool:
    """Return whether a string is encoded data, such as base64, rather than text."""
    return text.startswith("data:") or _ENCODED.match(text) is not None


def without_encoded(value: Any) -> Any:
    """Return a JSON value with its encoded strings emptied, so that its tokens can be estimated from its text."""
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
    """Return a tool's input or output as text for a model: a string unchanged, None as empty, other values as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
