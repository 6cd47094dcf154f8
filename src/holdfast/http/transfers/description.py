"""The routes that transfer files, in the OpenAPI document."""

from typing import Any

from holdfast.http.routes import TRANSFER_ROUTES, Transfer
from holdfast.ops.addresses import URI_PATTERN
from holdfast.ops.table import OPERATIONS
from holdfast.ops.tree.packs import ListPackNodes
from holdfast.ops.tree.uploads import FinishUpload, ReadBytes

Schema = dict[str, Any]
NOT_SENT = {"offset", "limit"}
"""Fields of `ReadBytes` that a download does not have: it has the header `Range`."""
DESCRIPTIONS = {
    "upload": "Upload a file. The id in the result can be used for a day, where `temp_file_id` is asked for.",
    "download": "Download a file as it is stored. A view, such as `messages.jsonl`, is sent as text.",
    "export": "Download a file or a folder as a pack, with its versions and relations.",
    "backup": "Download all that the caller may change as one pack: the account's resources, own resources and skills.",
}
EXPORTED = {
    "uri": {"type": "string", "minLength": 1, "maxLength": 2048, "pattern": URI_PATTERN},
    "include_vectors": {"type": "boolean", "description": "Has no effect: vectors are computed again by an import."},
}


def add_transfers(paths: dict[str, Schema]) -> None:
    """Add the routes to the paths of the document, which has the operations already."""
    for route in TRANSFER_ROUTES:
        described = _describe(route.transfer, paths)
        common = {
            "operationId": route.name,
            "tags": [route.path.split("/")[3]],
            "description": DESCRIPTIONS[route.transfer],
            "x-role": OPERATIONS[route.cls].role,
        }
        paths.setdefault(route.path, {})[route.verb.lower()] = {**common, **described}


def _describe(transfer: Transfer, paths: dict[str, Schema]) -> Schema:
    match transfer:
        case "upload":
            return _upload(_described(FinishUpload, paths))
        case "download":
            return _download(_described(ReadBytes, paths))
        case "export":
            return _export(_described(ListPackNodes, paths), EXPORTED, required=["uri"])
        case "backup":
            vectors = {"include_vectors": EXPORTED["include_vectors"]}
            return _export(_described(ListPackNodes, paths), vectors, required=[])


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


def _export(listing: Schema, fields: Schema, required: list[str]) -> Schema:
    body = {"type": "object", "properties": fields, **({"required": required} if required else {})}
    return {
        "parameters": [{"name": "profile", "in": "query", "required": False, "schema": {"type": "string"}}],
        "requestBody": {"required": bool(required), "content": {"application/json": {"schema": body}}},
        "responses": {
            **listing["responses"],
            "200": {"description": "The pack: a zip archive.", "content": {"application/zip": {}}},
        },
    }
