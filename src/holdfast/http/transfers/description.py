"""The routes that transfer files, in the OpenAPI document."""

from typing import Any

from holdfast.http.routes import TRANSFER_ROUTES
from holdfast.ops.table import OPERATIONS
from holdfast.ops.uploads import FinishUpload, ReadBytes

Schema = dict[str, Any]
NOT_SENT = {"offset", "limit"}
"""Fields of `ReadBytes` that a download does not have: it has the header `Range`."""
DESCRIPTIONS = {
    "upload": "Upload a file. The id in the result can be used for a day, where `temp_file_id` is asked for.",
    "download": "Download a file as it is stored. A view, such as `messages.jsonl`, is sent as text.",
}


def add_transfers(paths: dict[str, Schema]) -> None:
    """Add the routes to the paths of the document, which has the operations already."""
    for route in TRANSFER_ROUTES:
        operation = _described(FinishUpload if route.transfer == "upload" else ReadBytes, paths)
        described = _upload(operation) if route.transfer == "upload" else _download(operation)
        common = {
            "operationId": route.name,
            "tags": [route.path.split("/")[3]],
            "description": DESCRIPTIONS[route.transfer],
            "x-role": OPERATIONS[route.cls].role,
        }
        paths.setdefault(route.path, {})[route.verb.lower()] = {**common, **described}


def _described(cls: type, paths: dict[str, Schema]) -> Schema:
    entry = OPERATIONS[cls]
    described: Schema = paths[entry.path][entry.verb.lower()]
    return described


def _upload(finish: Schema) -> Schema:
    file = {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}}, "required": ["file"]}
    return {
        "parameters": [],
        "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": file}}},
        "responses": finish["responses"],
    }


def _download(read: Schema) -> Schema:
    bytes_sent = {"description": "The bytes of the file.", "content": {"*/*": {}}}
    profile = {"name": "profile", "in": "query", "required": False, "schema": {"type": "string"}}
    range_header = {"name": "Range", "in": "header", "required": False, "schema": {"type": "string"}}
    return {
        "parameters": [*(each for each in read["parameters"] if each["name"] not in NOT_SENT), profile, range_header],
        "responses": {
            **read["responses"],
            "200": bytes_sent,
            "206": {**bytes_sent, "description": "The bytes that `Range` asks for."},
            "416": {"description": "The file has no bytes in the `Range`."},
        },
    }
