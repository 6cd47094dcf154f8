"""The description of the API, made from the table and the structs, so that nothing can be missing in it."""

import inspect
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.config import AuthMode
from holdfast.model.parts import TOOL_SPELLINGS
from holdfast.ops.table import OPERATIONS, Entry, Operation
from holdfast.provider_formats import ITEMS, LATER_ITEMS, ProviderFields

Schema = dict[str, Any]

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REF = "#/components/schemas/{name}"
ERRORS = {
    400: "Something in the request is wrong; `details.field` says what.",
    401: "No key, or one that does not work.",
    403: "Not with this key or this role.",
    404: "There is no such thing, or it is not the caller's.",
    408: "The request did not arrive in time.",
    409: "It exists already, or the state is not the one the caller assumed.",
    412: "Not in this state.",
    413: "The body is too large.",
    429: "Too many requests or streams; `Retry-After` says when to come back.",
    500: "Something went wrong in the server.",
    503: "Storage could not do it now.",
    504: "It took too long; its outcome is unknown.",
}
PAGES = {
    "/health": ("Whether the server runs, in which mode, and whose the key is.", "application/json"),
    "/ready": ("Whether requests can be served now; 503 when not.", "application/json"),
    "/metrics": ("Counts and times for Prometheus; for the operator.", "text/plain"),
    "/openapi.json": ("This document.", "application/json"),
}
HEADERS: dict[str, tuple[str, Schema]] = {
    "idempotency_key": ("Idempotency-Key", {"type": "string", "minLength": 1, "maxLength": 255}),
    "expected_seq": ("If-Match", {"type": "string", "pattern": '^(W/)?"?[0-9]{1,18}"?$'}),
}
"""Headers that can stand for a field."""

_EITHER = {
    "RecordUse": ("contexts", "skill"),
}
"""Fields of which at least one is needed."""

NO_NUL = "^[^\\u0000]*$"


def _ref(name: str) -> Schema:
    return {"$ref": REF.format(name=name)}


ANY_JSON: Schema = {
    "description": "any JSON",
    "anyOf": [
        {"type": ["null", "boolean"]},
        {"type": "number"},
        {"type": "string", "pattern": NO_NUL},
        {"type": "array", "items": _ref("AnyJson")},
        _ref("AnyObject"),
    ],
}
ANY_OBJECT: Schema = {
    "type": "object",
    "propertyNames": {"pattern": NO_NUL},
    "additionalProperties": _ref("AnyJson"),
}
PROBLEM: Schema = {
    "type": "object",
    "properties": {
        "status": {"const": "error"},
        "result": {"type": "null"},
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "details": {"type": "object"},
            },
            "required": ["code", "message", "details"],
        },
    },
    "required": ["status", "result", "error"],
}


def document(version: str, mode: AuthMode) -> bytes:
    """The whole document. Without keys there is no security to speak of."""
    types = [*OPERATIONS, *(entry.returns for entry in OPERATIONS.values())]
    _, components = msgspec.json.schema_components([*types, ProviderFields], ref_template=REF)
    schemas: dict[str, Schema] = {name: _exact(schema) for name, schema in components.items()}
    schemas |= {"AnyJson": ANY_JSON, "AnyObject": ANY_OBJECT, "Problem": PROBLEM, **_parts_as_given(schemas)}
    provided = schemas.pop("ProviderFields")["properties"]
    messages = {name: _messages(schemas[name], provided) for name in ("NewMessage", "AddMessage")}
    schemas |= messages
    paths: dict[str, Schema] = {path: {"get": _page(path, *told)} for path, told in PAGES.items()}
    for cls, entry in OPERATIONS.items():
        described = _operation(cls, entry, schemas.pop(cls.__name__), schemas)
        paths.setdefault(entry.path, {})[entry.verb.lower()] = described
    keys = {
        "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        "bearer": {"type": "http", "scheme": "bearer"},
    }
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "Holdfast",
                "version": version,
                "description": "The durable session layer for AI agents.",
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "security": [] if mode == "dev" else [{name: []} for name in keys],
            "paths": paths,
            "components": {"schemas": schemas, "securitySchemes": keys},
        }
    )


def _operation(cls: type[Operation[Any]], entry: Entry, schema: Schema, schemas: dict[str, Schema]) -> Schema:
    properties: dict[str, Schema] = (schema["anyOf"][0] if "anyOf" in schema else schema)["properties"]
    required = set(schema.get("required", ()))
    in_path = _in_path(entry)
    rest = {name: value for name, value in properties.items() if name not in in_path}
    parameters = [_parameter(name, "path", properties[name], required=True) for name in in_path]
    described: Schema = {
        "operationId": cls.__name__,
        "tags": [entry.path.split("/")[3]],
        "description": inspect.cleandoc(cls.__doc__) if cls.__doc__ else cls.__name__,
        "x-role": entry.role,
        "responses": _responses(entry, schemas),
    }
    links = _links(entry)
    if links:
        described["responses"]["200"]["links"] = links
    if entry.verb in {"GET", "DELETE"}:
        parameters += [
            _parameter(name, "query", _without_null(value), required=name in required) for name, value in rest.items()
        ]
    else:
        needed = sorted(required - set(in_path))
        body = (
            {"anyOf": [_without(in_path, one) for one in schema["anyOf"]]}
            if "anyOf" in schema
            else _with_one_of(_EITHER.get(cls.__name__, ()), {**schema, "properties": rest, "required": needed})
        )
        described["requestBody"] = {
            "required": bool(needed) or "anyOf" in body,
            "content": {"application/json": {"schema": body}},
        }
    for field, (name, given) in HEADERS.items():
        if field in properties:
            parameters.append(_parameter(name, "header", given, required=False))
    return {**described, "parameters": parameters}


def _parameter(name: str, place: str, schema: Schema, *, required: bool) -> Schema:
    return {"name": name, "in": place, "required": required, "schema": schema}


def _responses(entry: Entry, schemas: dict[str, Schema]) -> Schema:
    (result,), _ = msgspec.json.schema_components([entry.returns], ref_template=REF)
    beside: Schema = {}
    if entry.bare is not None:
        beside = dict(schemas[entry.returns.__name__]["properties"])
        result = beside.pop(entry.bare)
    envelope = {
        "type": "object",
        "properties": {
            "status": {"const": "ok"},
            "result": result,
            "error": {"type": "null"},
            "telemetry": {"type": ["object", "null"]},
            "time": {"type": "number"},
            **beside,
        },
        "required": ["status", "result", "error", "telemetry", "time", *beside],
    }
    content: Schema = {"application/json": {"schema": envelope}}
    if entry.stream:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    return {"200": {"description": "Done.", "content": content}, **_failures(*ERRORS)}


def _links(entry: Entry) -> Schema:
    """Where to go with the name of what was just made: to every operation whose path is known with it."""
    if entry.verb != "POST":
        return {}
    known = {name: f"$request.path.{name}" for name in _in_path(entry)}
    fields: Sequence[str] = getattr(entry.returns, "__struct_fields__", ())
    made = {name: f"$response.body#/result/{name}" for name in fields if name not in known}
    paths = {cls.__name__: _in_path(other) for cls, other in OPERATIONS.items()}
    return {
        operation: {"operationId": operation, "parameters": {name: (known | made)[name] for name in names}}
        for operation, names in paths.items()
        if made.keys() & names and (known | made).keys() >= set(names)
    }


def _in_path(entry: Entry) -> list[str]:
    return re.findall(r"{(\w+)}", entry.path)


def _failures(*statuses: int) -> Schema:
    content = {"application/json": {"schema": _ref("Problem")}}
    return {str(status): {"description": ERRORS[status], "content": content} for status in statuses}


def _page(path: str, text: str, media: str) -> Schema:
    content = {media: {"schema": {"type": "object" if media == "application/json" else "string"}}}
    responses: Schema = {"200": {"description": text, "content": content}}
    if path == "/ready":
        responses["503"] = {"description": "Not now.", "content": content}
    if path == "/metrics":
        responses |= _failures(400, 401, 403)
    name = path.strip("/").split(".")[0].capitalize()
    secured: Schema = {} if path == "/metrics" else {"security": []}
    return {"operationId": f"Get{name}", "tags": ["pages"], "description": text, "responses": responses, **secured}


def _exact(schema: Any) -> Any:
    """With what a struct does not say of strings and of free values, but its check does."""
    if isinstance(schema, list):
        return [_exact(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    exact = {key: value if key == "default" else _exact(value) for key, value in schema.items()}
    for name, value in exact.get("properties", {}).items():
        if not value.keys() - {"default"}:
            exact["properties"][name] = {**_ref("AnyJson"), **value}
    if exact.get("type") == "object" and "properties" not in exact and "additionalProperties" not in exact:
        return _ref("AnyObject")
    if exact.get("type") == "string":
        exact["pattern"] = exact.get("pattern", NO_NUL).replace(r"$(?!\n)", "$")
        if "ISO 8601" in exact.get("description", ""):
            exact["format"] = "date-time"
            del exact["pattern"]
    return exact


def _without_null(schema: Schema) -> Schema:
    """A query has no null: what is not given is not there."""
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    return choices[0] if len(choices) == 1 else schema


def _messages(schema: Schema, provided: Schema) -> Schema:
    """A message in each of its shapes: with parts, as a provider has it, or as an item of OpenAI's responses."""
    own: Schema = {**schema["properties"]}
    required = [name for name in schema["required"] if name != "role"]
    kinds = ("TextPart", "ContextPart", "ImagePart", "ImageUrlGiven", "ToolGiven", "ProviderPart")
    parts = {"type": "array", "items": {"anyOf": [_ref(name) for name in kinds]}, "minItems": 1, "maxItems": 1000}
    with_parts = {**own, "parts": parts}
    provided = {**provided, "content": _some({**_BLOCKS, "type": "array"}, {"type": "string", "pattern": NO_NUL})}
    item = {name: value for name, value in own.items() if name not in {"role", "content", "parts", "id"}}
    shapes = [
        _shape(with_parts, [*required, "role", "parts"]),
        {
            **_shape({**own, **provided, "parts": {"type": "null"}}, [*required, "role"]),
            "anyOf": [{"properties": {name: given}, "required": [name]} for name, given in _SAYING.items()],
        },
        {**_shape({**item, "type": _ITEM_TYPE}, [*required, "type"]), "not": {"required": ["role"]}},
    ]
    return {"anyOf": shapes}


_BLOCKS: Schema = {"items": {"anyOf": [{"type": "string", "pattern": NO_NUL}, _ref("AnyObject")]}}
_SAYING: dict[str, Schema] = {
    "content": {"anyOf": [{"type": "string", "pattern": NO_NUL}, {**_BLOCKS, "type": "array", "minItems": 1}]},
    "tool_calls": {"type": "array", "items": _ref("AnyObject"), "minItems": 1},
    "function_call": {**ANY_OBJECT, "minProperties": 1},
    "refusal": {"type": "string", "pattern": NO_NUL, "minLength": 1},
    "tool_call_id": {"type": "string", "pattern": NO_NUL},
}
"""The fields of a provider's message of which one is needed, in the order of how often it is."""
_ITEM_TYPE: Schema = {
    "anyOf": [{"enum": sorted(ITEMS)}, {"type": "string", "pattern": f"^[^\\u0000]*({'|'.join(LATER_ITEMS)})$"}]
}


def _some(*choices: Schema) -> Schema:
    return {"anyOf": [*choices, _ref("AnyObject"), {"type": "null"}]}


def _shape(properties: Schema, required: list[str]) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "propertyNames": {"pattern": NO_NUL},
        "additionalProperties": _ref("AnyJson"),
    }


def _without(names: Sequence[str], schema: Schema) -> Schema:
    return {
        **schema,
        "properties": {name: value for name, value in schema["properties"].items() if name not in names},
        "required": [name for name in schema["required"] if name not in names],
    }


def _with_one_of(names: Sequence[str], schema: Schema) -> Schema:
    """The schema with at least one of these fields, and that not as null."""
    if not names:
        return schema
    properties: dict[str, Schema] = schema["properties"]
    return {
        "anyOf": [
            {
                **schema,
                "properties": {**properties, name: _without_null(properties[name])},
                "required": [*schema["required"], name],
            }
            for name in names
        ]
    }


def _parts_as_given(schemas: dict[str, Schema]) -> dict[str, Schema]:
    """The spellings of parts that are understood beside the stored ones."""
    tool: dict[str, Schema] = schemas["ToolPart"]["properties"]
    url = {"type": "string", "pattern": NO_NUL}
    return {
        "ToolGiven": {
            "type": "object",
            "properties": {**tool, "success": _ref("AnyJson")},
            "required": ["type"],
            "allOf": [
                {"anyOf": [{"required": [long]}, {"properties": {short: tool[long]}}]}  # the long spelling wins
                for short, long in TOOL_SPELLINGS.items()
            ],
        },
        "ImageUrlGiven": {
            "type": "object",
            "properties": {
                "type": {"const": "image_url"},
                "image_url": {
                    "anyOf": [
                        url,
                        {"type": "object", "properties": {"url": url, "detail": url}, "required": ["url"]},
                    ]
                },
            },
            "required": ["type", "image_url"],
        },
    }
