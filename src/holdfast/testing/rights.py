"""Examples of every operation on a session, for tests of who may call it."""

import itertools
from collections.abc import Callable
from typing import Any, Literal, get_args

import msgspec

from holdfast.errors import HoldfastError, NotFoundError, PermissionDeniedError
from holdfast.model.access import RIGHT_BITS, Right
from holdfast.model.parts import ToolPart
from holdfast.ops.sessions import AddMessage, AddMessages, RecordUse, UpdateSession, with_provider_fields
from holdfast.ops.sharing import UnshareSession
from holdfast.ops.table import OPERATIONS, Operation, fields_of, rights_needed, validate_operation
from holdfast.testing.examples import example_operation

SESSION_OPERATIONS = [cls for cls, entry in OPERATIONS.items() if entry.right is not None]
SETS_OF_RIGHTS: list[list[Right]] = [
    list(rights) for size in (1, 2, 3) for rights in itertools.combinations(get_args(Right), size)
]
Outcome = Literal["allowed", "denied", "missing"]


def variants(cls: type[Operation[Any]], **values: Any) -> list[Operation[Any]]:
    """An example of an operation, and examples with values that need another right."""
    example = example_operation(cls, **values)
    replace = msgspec.structs.replace
    if isinstance(example, AddMessage):
        called = {"tool_calls": [{"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}]}
        return [
            example,
            replace(example, content=None, parts=[ToolPart(tool_name="t", tool_output="x")]),
            replace(example, role="tool"),
            with_provider_fields(replace(example, role="assistant", content=None), called),
        ]
    if isinstance(example, AddMessages):
        result: Any = {"role": "tool", "tool_call_id": "c", "content": "x"}
        return [example, replace(example, messages=[*example.messages, result])]
    if isinstance(example, RecordUse):
        return [example, replace(example, skill={"uri": "viking://skill"})]
    if isinstance(example, UpdateSession):
        return [replace(example, title="x"), replace(example, state="archived")]
    return [example]


def needed(op: Operation[Any]) -> int:
    """What the table says; to remove another collaborator, ownership."""
    valid = validate_operation(type(op), fields_of(op))
    return RIGHT_BITS["own"] if isinstance(op, UnshareSession) else rights_needed(valid)


def outcome(call: Callable[[Operation[Any]], Any], op: Operation[Any]) -> Outcome:
    """Call an operation, and return whether its session was reached."""
    try:
        call(op)
    except PermissionDeniedError:
        return "denied"
    except NotFoundError as error:
        return "missing" if error.details["type"] == "session" else "allowed"
    except HoldfastError:
        return "allowed"
    return "allowed"
