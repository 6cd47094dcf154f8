"""The description of the API, made from the table and the structs."""

import msgspec

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:"


def document(version: str) -> bytes:
    return msgspec.json.encode({"openapi": "3.1.0", "info": {"title": "Holdfast", "version": version}, "paths": {}})
