"""The OpenAPI document, generated from the table of operations and the structs, so that it is always complete."""

import inspect
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.config import AuthMode
from holdfast.engine.tree import mounts
from holdfast.http.transfers.description import add_transfers
from holdfast.model.parts import TOOL_FIELD_ALIASES
from holdfast.ops.addresses import URI_PATTERN, uri_pattern
from holdfast.ops.table import OPERATIONS, Operation, OperationEntry
from holdfast.provider_formats import RESPONSE_ITEM_SUFFIXES, RESPONSE_ITEM_TYPES, ProviderFields

Schema = dict[str, Any]

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REF = "#/components/schemas/{name}"
ERRORS = {
    400: "The request is invalid; `details.field` names the field.",
    401: "The key is missing or not valid.",
    403: "This key or role may not call the operation.",
    404: "The resource does not exist, or belongs to another user.",
    408: "The request was not received in time.",
    409: "The resource already exists, or its state differs from the one that the request assumed.",
    412: "The operation is not possible in the current state.",
    413: "The body is too large.",
    429: "Too many requests or open streams; retry after `Retry-After` seconds.",
    500: "Internal error.",
    503: "Storage is unavailable.",
    504: "The operation timed out; its outcome is unknown.",
}
PAGES = {
    "/health": ("Whether the server runs, its authentication mode, and the caller.", "application/json"),
    "/ready": ("Whether requests can be served now; otherwise 503.", "application/json"),
    "/metrics": ("Metrics for Prometheus, for the operator.", "text/plain"),
    "/openapi.json": ("This document.", "application/json"),
}
HEADERS: dict[str, tuple[str, Schema]] = {
    "idempotency_key": ("Idempotency-Key", {"type": "string", "minLength": 1, "maxLength": 255}),
    "expected_seq": ("If-Match", {"type": "string", "pattern": '^(W/)?"?[0-9]{1,18}"?$'}),
}
"""Headers that can be sent instead of a field."""

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
ERROR_ENVELOPE: Schema = {
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
    """Generate the document. In `dev` mode no key is required."""
    types = [*OPERATIONS, *(entry.returns for entry in OPERATIONS.values())]
    _, components = msgspec.json.schema_components([*types, ProviderFields], ref_template=REF)
    schemas: dict[str, Schema] = {name: _complete(schema) for name, schema in components.items()}
    schemas |= {"AnyJson": ANY_JSON, "AnyObject": ANY_OBJECT, "Problem": ERROR_ENVELOPE, **_input_parts(schemas)}
    provider_fields = schemas.pop("ProviderFields")["properties"]
    messages = {name: _message(schemas[name], provider_fields) for name in ("NewMessage", "AddMessage")}
    schemas |= messages
    paths: dict[str, Schema] = {path: {"get": _page(path, *page)} for path, page in PAGES.items()}
    for cls, entry in OPERATIONS.items():
        operation = _operation(cls, entry, schemas.pop(cls.__name__), schemas)
        paths.setdefault(entry.path, {})[entry.verb.lower()] = operation
    add_transfers(paths)
    security_schemes = {
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
            "security": [] if mode == "dev" else [{name: []} for name in security_schemes],
            "paths": paths,
            "components": {"schemas": schemas, "securitySchemes": security_schemes},
        }
    )


def _operation(cls: type[Operation[Any]], entry: OperationEntry, schema: Schema, schemas: dict[str, Schema]) -> Schema:
    properties: dict[str, Schema] = (schema["anyOf"][0] if "anyOf" in schema else schema)["properties"]
    required = set(schema.get("required", ()))
    path_fields = _path_fields(entry)
    other_fields = {name: value for name, value in properties.items() if name not in path_fields}
    parameters = [_parameter(name, "path", properties[name], required=True) for name in path_fields]
    operation: Schema = {
        "operationId": cls.__name__,
        "tags": [entry.path.split("/")[3]],
        "description": inspect.cleandoc(cls.__doc__) if cls.__doc__ else cls.__name__,
        "x-role": entry.role,
        "responses": _responses(entry, schemas),
    }
    links = _links(entry)
    if links:
        operation["responses"]["200"]["links"] = links
    if entry.verb in {"GET", "DELETE"}:
        parameters += [
            _parameter(name, "query", _without_null(value), required=name in required)
            for name, value in other_fields.items()
        ]
    else:
        required_in_body = sorted(required - set(path_fields))
        object_schema = {**schema, "properties": other_fields, "required": required_in_body}
        body = (
            {"anyOf": [_without(path_fields, alternative) for alternative in schema["anyOf"]]}
            if "anyOf" in schema
            else object_schema
        )
        operation["requestBody"] = {
            "required": bool(required_in_body) or "anyOf" in body,
            "content": {"application/json": {"schema": body}},
        }
    for field, (name, header_schema) in HEADERS.items():
        if field in properties:
            parameters.append(_parameter(name, "header", header_schema, required=False))
    return {**operation, "parameters": parameters}


def _parameter(name: str, location: str, schema: Schema, *, required: bool) -> Schema:
    return {"name": name, "in": location, "required": required, "schema": schema}


def _responses(entry: OperationEntry, schemas: dict[str, Schema]) -> Schema:
    (result,), _ = msgspec.json.schema_components([entry.returns], ref_template=REF)
    extra_fields: Schema = {}
    if entry.result_field is not None:
        extra_fields = dict(schemas[entry.returns.__name__]["properties"])
        result = extra_fields.pop(entry.result_field)
    envelope = {
        "type": "object",
        "properties": {
            "status": {"const": "ok"},
            "result": result,
            "error": {"type": "null"},
            "telemetry": {"type": ["object", "null"]},
            "time": {"type": "number"},
            **extra_fields,
        },
        "required": ["status", "result", "error", "telemetry", "time", *extra_fields],
    }
    content: Schema = {"application/json": {"schema": envelope}}
    if entry.stream:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    return {"200": {"description": "Success.", "content": content}, **_error_responses(*ERRORS)}


def _links(entry: OperationEntry) -> Schema:
    """The operations whose path can be filled in from the request's path and the ids in the response."""
    if entry.verb != "POST":
        return {}
    from_request = {name: f"$request.path.{name}" for name in _path_fields(entry)}
    fields: Sequence[str] = getattr(entry.returns, "__struct_fields__", ())
    from_response = {name: f"$response.body#/result/{name}" for name in fields if name not in from_request}
    values = from_request | from_response
    paths = {cls.__name__: _path_fields(other) for cls, other in OPERATIONS.items()}
    return {
        operation: {"operationId": operation, "parameters": {name: values[name] for name in names}}
        for operation, names in paths.items()
        if from_response.keys() & names and values.keys() >= set(names)
    }


def _path_fields(entry: OperationEntry) -> list[str]:
    return re.findall(r"{(\w+)}", entry.path)


def _error_responses(*statuses: int) -> Schema:
    content = {"application/json": {"schema": _ref("Problem")}}
    return {str(status): {"description": ERRORS[status], "content": content} for status in statuses}


def _page(path: str, description: str, media_type: str) -> Schema:
    content = {media_type: {"schema": {"type": "object" if media_type == "application/json" else "string"}}}
    responses: Schema = {"200": {"description": description, "content": content}}
    if path == "/ready":
        responses["503"] = {"description": "Requests cannot be served now.", "content": content}
    if path == "/metrics":
        responses |= _error_responses(400, 401, 403)
    name = path.strip("/").split(".")[0].capitalize()
    security: Schema = {} if path == "/metrics" else {"security": []}
    return {
        "operationId": f"Get{name}",
        "tags": ["pages"],
        "description": description,
        "responses": responses,
        **security,
    }


def _complete(schema: Any) -> Any:
    """Add the constraints on strings and on free-form values that validation enforces but the structs do not state."""
    if isinstance(schema, list):
        return [_complete(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    complete = {key: value if key == "default" else _complete(value) for key, value in schema.items()}
    for name, value in complete.get("properties", {}).items():
        if not value.keys() - {"default"}:
            complete["properties"][name] = {**_ref("AnyJson"), **value}
    if complete.get("type") == "object" and "properties" not in complete and "additionalProperties" not in complete:
        return _ref("AnyObject")
    if complete.get("type") == "string":
        complete["pattern"] = complete.get("pattern", NO_NUL).replace(r"$(?!\n)", "$")
        complete["pattern"] = complete["pattern"].replace(URI_PATTERN, uri_pattern("|".join(mounts.scopes())))
        if "ISO 8601" in complete.get("description", ""):
            complete["format"] = "date-time"
            del complete["pattern"]
    return complete


def _without_null(schema: Schema) -> Schema:
    """Remove null from a schema. A query cannot hold null; a missing field is omitted."""
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    return choices[0] if len(choices) == 1 else schema


def _message(schema: Schema, provider_fields: Schema) -> Schema:
    """The three forms of a message: with parts, as a provider's message, or as an item of OpenAI's Responses API."""
    own_fields: Schema = {**schema["properties"]}
    required = [name for name in schema["required"] if name != "role"]
    part_types = ("TextPart", "ContextPart", "ImagePart", "ImageUrlGiven", "ToolGiven", "ProviderPart")
    parts = {"type": "array", "items": {"anyOf": [_ref(name) for name in part_types]}, "minItems": 1, "maxItems": 1000}
    with_parts = {**own_fields, "parts": parts}
    content = {
        "anyOf": [
            {**_BLOCKS, "type": "array"},
            {"type": "string", "pattern": NO_NUL},
            _ref("AnyObject"),
            {"type": "null"},
        ]
    }
    from_provider = {**own_fields, **provider_fields, "content": content, "parts": {"type": "null"}}
    item = {name: value for name, value in own_fields.items() if name not in {"role", "content", "parts", "id"}}
    forms = [
        _open_object(with_parts, [*required, "role", "parts"]),
        {
            **_open_object(from_provider, [*required, "role"]),
            "anyOf": [{"properties": {name: field}, "required": [name]} for name, field in _CONTENT_FIELDS.items()],
        },
        {**_open_object({**item, "type": _ITEM_TYPE}, [*required, "type"]), "not": {"required": ["role"]}},
    ]
    return {"anyOf": forms}


_BLOCKS: Schema = {"items": {"anyOf": [{"type": "string", "pattern": NO_NUL}, _ref("AnyObject")]}}
_CONTENT_FIELDS: dict[str, Schema] = {
    "content": {"anyOf": [{"type": "string", "pattern": NO_NUL}, {**_BLOCKS, "type": "array", "minItems": 1}]},
    "tool_calls": {"type": "array", "items": _ref("AnyObject"), "minItems": 1},
    "function_call": {**ANY_OBJECT, "minProperties": 1},
    "refusal": {"type": "string", "pattern": NO_NUL, "minLength": 1},
    "tool_call_id": {"type": "string", "pattern": NO_NUL},
}
"""The fields of a provider's message of which one is required, the most frequent first."""
_ITEM_TYPE: Schema = {
    "anyOf": [
        {"enum": sorted(RESPONSE_ITEM_TYPES)},
        {"type": "string", "pattern": f"^[^\\u0000]*({'|'.join(RESPONSE_ITEM_SUFFIXES)})$"},
    ]
}


def _open_object(properties: Schema, required: list[str]) -> Schema:
    """An object that may have further fields."""
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


def _input_parts(schemas: dict[str, Schema]) -> dict[str, Schema]:
    """The alternative forms of parts that are accepted as input."""
    tool: dict[str, Schema] = schemas["ToolPart"]["properties"]
    url = {"type": "string", "pattern": NO_NUL}
    return {
        "ToolGiven": {
            "type": "object",
            "properties": {**tool, "success": _ref("AnyJson")},
            "required": ["type"],
            "allOf": [
                {"anyOf": [{"required": [long]}, {"properties": {short: tool[long]}}]}  # the long name takes precedence
                for short, long in TOOL_FIELD_ALIASES.items()
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
