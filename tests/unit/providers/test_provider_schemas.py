"""Every shape that OpenAI's and Anthropic's own libraries publish goes in, and all that carries content comes out.

The examples are made from the libraries' types: each field filled, each alternative of each field tried once.
"""

import itertools
import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
import typing_extensions

import holdfast
from holdfast.config import Settings
from holdfast.errors import InvalidArgumentError
from holdfast.provider_formats import ITEMS
from holdfast.provider_formats.contents import ANTHROPIC_BLOCKS

chat = pytest.importorskip("openai.types.chat")
responses = pytest.importorskip("openai.types.responses")
anthropic = pytest.importorskip("anthropic.types")
beta = pytest.importorskip("anthropic.types.beta")

DEPTH = 8
NO_CONTENT = {"cache_control", "prompt_cache_breakpoint"}
WRAPPERS = {Annotated, typing_extensions.Required, typing_extensions.NotRequired, typing.Required, typing.NotRequired}
NUMBERS = itertools.count(700_001)
Shape = tuple[str, dict[str, Any]]


class UnwritableError(Exception):
    """A type that JSON does not have, such as an open file."""


def bare(kind: Any) -> Any:
    while get_origin(kind) in WRAPPERS:
        kind = get_args(kind)[0]
    return kind


def alternatives(kind: Any) -> list[Any]:
    kind = bare(kind)
    if get_origin(kind) in {Union, types.UnionType}:
        return [one for each in get_args(kind) for one in alternatives(each)]
    return [kind]


def examples(kind: Any, depth: int = DEPTH) -> list[Any]:
    """Values of a type: one for each alternative, and of an object one for each alternative of each field."""
    found: list[Any] = []
    for one in alternatives(kind):
        try:
            found += _examples(one, depth)
        except UnwritableError:
            continue
    if not found:
        raise UnwritableError(kind)
    return found


def words() -> str:
    return f"words-{next(NUMBERS)}"


SIMPLE: dict[Any, Callable[[], Any]] = {
    str: words,
    object: words,
    Any: words,
    int: lambda: next(NUMBERS),
    float: lambda: next(NUMBERS),
    bool: lambda: True,
    type(None): lambda: None,
    datetime: lambda: "2026-03-24T09:10:11Z",
}


def _examples(kind: Any, depth: int) -> list[Any]:
    origin, inner = get_origin(kind), get_args(kind)
    if kind in SIMPLE:
        return [SIMPLE[kind]()]
    if origin is Literal:
        return [inner[0]]
    if origin in {dict, Mapping}:
        return [{f"key-{next(NUMBERS)}": examples(inner[1], depth)[0]}]
    if origin in {list, Iterable, Sequence}:
        return [_listed(inner[0], depth)]
    if depth == 0:  # some contain themselves
        raise UnwritableError(kind)
    return _objects(fields_of(kind), depth - 1)


def _listed(kind: Any, depth: int) -> list[Any]:
    try:
        return examples(kind, depth)
    except UnwritableError:
        return []


def fields_of(kind: Any) -> dict[str, Any]:
    if hasattr(kind, "model_fields"):
        return {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
    if typing_extensions.is_typeddict(kind):
        return typing_extensions.get_type_hints(kind)
    raise UnwritableError(kind)


def _objects(fields: dict[str, Any], depth: int) -> list[dict[str, Any]]:
    written = {}
    for name, kind in fields.items():
        try:
            written[name] = examples(kind, depth)
        except UnwritableError:
            continue
    whole = {name: values[0] for name, values in written.items()}
    return [whole, *({**whole, name: value} for name, values in written.items() for value in values[1:])]


def shapes(union: Any) -> Iterator[Shape]:
    """Examples of the members of a union; those of a model are dumped as its library does it."""
    for kind in alternatives(union):
        for example in examples(kind):
            dumped = (
                kind.model_validate(example).model_dump(mode="json") if hasattr(kind, "model_validate") else example
            )
            yield kind.__name__, dumped


def in_message(union: Any, role: str) -> Iterator[Shape]:
    return ((name, {"role": role, "content": [block]}) for name, block in shapes(union))


def around_content(kind: Any) -> Iterator[Shape]:
    """Whole messages; what their content may be, the blocks show."""
    fields = {name: field for name, field in fields_of(kind).items() if name != "content"}
    for example in _objects(fields, DEPTH):
        message = {**example, "content": [{"type": "text", "text": f"words-{next(NUMBERS)}"}]}
        yield kind.__name__, kind.model_validate(message).model_dump(mode="json")


SHAPES: dict[str, Callable[[], Iterator[Shape]]] = {
    "chat messages in": lambda: shapes(chat.ChatCompletionMessageParam),
    "chat messages out": lambda: shapes(chat.ChatCompletionMessage),
    "chat content": lambda: in_message(chat.ChatCompletionContentPartParam, "user"),
    "items in": lambda: shapes(responses.ResponseInputItemParam),
    "items out": lambda: shapes(responses.ResponseOutputItem),
    "blocks in": lambda: in_message(anthropic.ContentBlockParam, "user"),
    "blocks out": lambda: in_message(anthropic.ContentBlock, "assistant"),
    "beta blocks in": lambda: in_message(beta.BetaContentBlockParam, "user"),
    "beta blocks out": lambda: in_message(beta.BetaContentBlock, "assistant"),
    "messages in": lambda: shapes(anthropic.MessageParam),
    "messages out": lambda: around_content(anthropic.Message),
    "beta messages out": lambda: around_content(beta.BetaMessage),
}


def content_of(value: Any) -> Iterator[str]:
    """The leaves that say something: words and numbers, none of which stands in another example."""
    match value:
        case dict():
            for key, item in value.items():
                if key not in NO_CONTENT:
                    yield from content_of(item)
                    yield from content_of(key)
        case list():
            for item in value:
                yield from content_of(item)
        case str() if value.startswith(("words-", "key-")):
            yield value
        case int() | float() if value is not True and value is not False:
            yield str(int(value))


@pytest.fixture(scope="module")
def client() -> Iterator[holdfast.Client]:
    whole = Settings(tool_output_threshold=50_000_000, max_message_bytes=50_000_000)
    with holdfast.connect(":memory:", settings=whole) as client:
        yield client


@pytest.mark.parametrize("schema", SHAPES)
def test_all_that_a_published_shape_says_is_kept(client: holdfast.Client, schema: str) -> None:
    refused = set()
    for number, (name, message) in enumerate(SHAPES[schema]()):
        session = client.session(f"{schema.replace(' ', '-')}-{number}")  # alternatives have their id in common
        try:
            session.add_messages([message])
        except InvalidArgumentError as error:
            refused.add((name, error.details["field"]))
            continue
        (stored,) = session.messages
        kept = set(re.findall(r"(?:words-|key-)?\d{6}", json.dumps(stored.to_dict())))
        assert [leaf for leaf in content_of(message) if leaf not in kept] == [], f"{name} lost some of {message}"
    # An id that says of nothing what it refers to is not a message.
    assert refused <= {("ItemReference", "messages[0].role")}


def test_there_are_examples_of_every_kind_of_block_and_item() -> None:
    items = {message.get("type") for schema in ("items in", "items out") for _, message in SHAPES[schema]()}
    assert items - {None, "message"} == ITEMS
    blocks = {message["content"][0]["type"] for _, message in SHAPES["beta blocks in"]()}
    assert blocks >= {"text", "image", "document", "tool_use", "tool_result", "thinking", "mcp_tool_result"}
    assert {kind for kind in blocks if not kind.endswith("_tool_result")} <= ANTHROPIC_BLOCKS
