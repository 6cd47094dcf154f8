"""Messages of every type in the OpenAI and Anthropic libraries are stored without loss of content.

Examples are generated from the types of the libraries: with all fields, and with each alternative of each field once.
"""

import itertools
import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
import typing_extensions

import holdfast
from holdfast.config import Settings
from holdfast.errors import InvalidArgumentError
from holdfast.provider_formats import RESPONSE_ITEM_TYPES
from holdfast.provider_formats.contents import ANTHROPIC_BLOCKS

# Importing the libraries takes seconds, and every process that runs some of the tests collects them all.
chat = partial(pytest.importorskip, "openai.types.chat")
responses = partial(pytest.importorskip, "openai.types.responses")
anthropic = partial(pytest.importorskip, "anthropic.types")
beta = partial(pytest.importorskip, "anthropic.types.beta")

MAX_DEPTH = 8
FIELDS_WITHOUT_CONTENT = {"cache_control", "prompt_cache_breakpoint"}
WRAPPERS = {Annotated, typing_extensions.Required, typing_extensions.NotRequired, typing.Required, typing.NotRequired}
NUMBERS = itertools.count(700_001)
Shape = tuple[str, dict[str, Any]]


class UnsupportedTypeError(Exception):
    """A type that JSON cannot represent, such as an open file."""


def unwrap(kind: Any) -> Any:
    """Remove wrappers such as Annotated and Required from a type."""
    while get_origin(kind) in WRAPPERS:
        kind = get_args(kind)[0]
    return kind


def alternatives(kind: Any) -> list[Any]:
    kind = unwrap(kind)
    if get_origin(kind) in {Union, types.UnionType}:
        return [alternative for member in get_args(kind) for alternative in alternatives(member)]
    return [kind]


def examples(kind: Any, depth: int = MAX_DEPTH) -> list[Any]:
    """Example values of a type: one per alternative; for an object, one per alternative of each field."""
    values: list[Any] = []
    for alternative in alternatives(kind):
        try:
            values += _examples(alternative, depth)
        except UnsupportedTypeError:
            continue
    if not values:
        raise UnsupportedTypeError(kind)
    return values


def unique_text() -> str:
    return f"words-{next(NUMBERS)}"


SIMPLE: dict[Any, Callable[[], Any]] = {
    str: unique_text,
    object: unique_text,
    Any: unique_text,
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
        return [_list_example(inner[0], depth)]
    if depth == 0:  # some types are recursive
        raise UnsupportedTypeError(kind)
    return _objects(fields_of(kind), depth - 1)


def _list_example(kind: Any, depth: int) -> list[Any]:
    try:
        return examples(kind, depth)
    except UnsupportedTypeError:
        return []


def fields_of(kind: Any) -> dict[str, Any]:
    if hasattr(kind, "model_fields"):
        return {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
    if typing_extensions.is_typeddict(kind):
        return typing_extensions.get_type_hints(kind)
    raise UnsupportedTypeError(kind)


def _objects(fields: dict[str, Any], depth: int) -> list[dict[str, Any]]:
    values_by_field = {}
    for name, kind in fields.items():
        try:
            values_by_field[name] = examples(kind, depth)
        except UnsupportedTypeError:
            continue
    first = {name: values[0] for name, values in values_by_field.items()}
    return [first, *({**first, name: value} for name, values in values_by_field.items() for value in values[1:])]


def shapes(union: Any) -> Iterator[Shape]:
    """Examples of the members of a union. Examples of models are dumped by their library."""
    for kind in alternatives(union):
        for example in examples(kind):
            dumped = (
                kind.model_validate(example).model_dump(mode="json") if hasattr(kind, "model_validate") else example
            )
            yield kind.__name__, dumped


def as_message_content(union: Any, role: str) -> Iterator[Shape]:
    return ((name, {"role": role, "content": [block]}) for name, block in shapes(union))


def whole_messages(kind: Any) -> Iterator[Shape]:
    """Whole messages with a text block as content. The blocks have examples of their own."""
    fields = {name: field for name, field in fields_of(kind).items() if name != "content"}
    for example in _objects(fields, MAX_DEPTH):
        message = {**example, "content": [{"type": "text", "text": f"words-{next(NUMBERS)}"}]}
        yield kind.__name__, kind.model_validate(message).model_dump(mode="json")


SHAPES: dict[str, Callable[[], Iterator[Shape]]] = {
    "chat messages in": lambda: shapes(chat().ChatCompletionMessageParam),
    "chat messages out": lambda: shapes(chat().ChatCompletionMessage),
    "chat content": lambda: as_message_content(chat().ChatCompletionContentPartParam, "user"),
    "items in": lambda: shapes(responses().ResponseInputItemParam),
    "items out": lambda: shapes(responses().ResponseOutputItem),
    "blocks in": lambda: as_message_content(anthropic().ContentBlockParam, "user"),
    "blocks out": lambda: as_message_content(anthropic().ContentBlock, "assistant"),
    "beta blocks in": lambda: as_message_content(beta().BetaContentBlockParam, "user"),
    "beta blocks out": lambda: as_message_content(beta().BetaContentBlock, "assistant"),
    "messages in": lambda: shapes(anthropic().MessageParam),
    "messages out": lambda: whole_messages(anthropic().Message),
    "beta messages out": lambda: whole_messages(beta().BetaMessage),
}


def content_of(value: Any) -> Iterator[str]:
    """The generated texts, keys and numbers of an example. Each occurs in no other example."""
    match value:
        case dict():
            for key, item in value.items():
                if key not in FIELDS_WITHOUT_CONTENT:
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
    without_limits = Settings(tool_output_threshold=50_000_000, max_message_bytes=50_000_000)
    with holdfast.connect(":memory:", settings=without_limits) as client:
        yield client


@pytest.mark.parametrize("schema", SHAPES)
def test_all_content_of_a_published_type_is_stored(client: holdfast.Client, schema: str) -> None:
    refused = set()
    for number, (name, message) in enumerate(SHAPES[schema]()):
        session = client.session(f"{schema.replace(' ', '-')}-{number}")  # alternatives share the same message id
        try:
            session.add_messages([message])
        except InvalidArgumentError as error:
            refused.add((name, error.details["field"]))
            continue
        (stored,) = session.messages
        stored_leaves = set(re.findall(r"(?:words-|key-)?\d{6}", json.dumps(stored.to_dict())))
        lost = [leaf for leaf in content_of(message) if leaf not in stored_leaves]
        assert lost == [], f"{name} lost some of {message}"
    # A bare reference to an item is not a message.
    assert refused <= {("ItemReference", "messages[0].role")}


def test_examples_cover_every_type_of_block_and_item() -> None:
    items = {message.get("type") for schema in ("items in", "items out") for _, message in SHAPES[schema]()}
    assert items - {None, "message"} == RESPONSE_ITEM_TYPES
    blocks = {message["content"][0]["type"] for _, message in SHAPES["beta blocks in"]()}
    assert blocks >= {"text", "image", "document", "tool_use", "tool_result", "thinking", "mcp_tool_result"}
    assert {kind for kind in blocks if not kind.endswith("_tool_result")} <= ANTHROPIC_BLOCKS
