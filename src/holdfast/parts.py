"""What a message is made of: text, references to context, images and tool calls."""

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from holdfast.noun import Noun

ToolStatus = Literal["pending", "running", "completed", "error"]
ContextType = Literal["memory", "resource", "skill"]


def stated(default: str) -> Any:
    """A default that is written out also when it was not changed: readers on the wire rely on the key."""
    return msgspec.field(default_factory=lambda: default)


class PartBase(Noun, frozen=True, tag_field="type", omit_defaults=True):
    @property
    def type(self) -> str:
        return str(type(self).__struct_config__.tag)


class TextPart(PartBase, frozen=True, tag="text", gc=False):
    """`TextPart("How do I configure embedding?")`"""

    text: str


class ContextPart(PartBase, frozen=True, tag="context", gc=False):
    """A reference to a memory, a resource or a skill, with the abstract that was shown."""

    uri: str
    context_type: ContextType = stated("memory")
    abstract: str = stated("")


class ImagePart(PartBase, frozen=True, tag="image", gc=False):
    url: str
    description: str = ""
    detail: str = ""


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
    spelled = {TOOL_SPELLINGS.get(key, key): value for key, value in fields.items()}
    success = spelled.pop("success", None)
    if isinstance(success, bool) and "tool_status" not in spelled:
        spelled["tool_status"] = "completed" if success else "error"
    return spelled


class _AnySpelling(msgspec.StructMeta):
    def __call__(cls, *args: Any, **fields: Any) -> Any:  # noqa: N805 - the class being called
        return super().__call__(*args, **spell_tool(fields))


class ToolPart(PartBase, frozen=True, tag="tool", metaclass=_AnySpelling):
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
    duration_ms: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    tool_result_id: str = ""
    tool_output_chars: int = 0

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
            input: Any = ...,
            output: Any = ...,
            success: bool = ...,
        ) -> None: ...

    @property
    def input(self) -> Any:
        return self.tool_input

    @property
    def output(self) -> Any:
        return self.tool_output

    @property
    def success(self) -> bool:
        return self.tool_status == "completed"


Part = TextPart | ContextPart | ImagePart | ToolPart
PART_TYPES: dict[str, type[Part]] = {
    "text": TextPart,
    "context": ContextPart,
    "image": ImagePart,
    "tool": ToolPart,
}


def as_text(value: Any) -> str:
    """A tool's input or output as the text that a model reads: strings as they are, nothing as nothing, else JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
