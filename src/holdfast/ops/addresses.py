"""Addresses as fields of operations."""

from typing import Annotated

import msgspec

from holdfast.model.uris import SCHEME

_SEGMENT = r"\.?[A-Za-z0-9_~:@-][A-Za-z0-9._~:@-]*"


def uri_pattern(scope: str) -> str:
    """Return the pattern of the URIs whose first segment matches `scope`."""
    return f"^{SCHEME}(({scope})(/{_SEGMENT})*/?)?$"


URI_PATTERN = uri_pattern(_SEGMENT)
"""Any first segment is accepted here. Which first segments exist depends on the mounts of the tree."""

Uri = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=2048,
        # Only for the schema. Invalid URIs raise an error of their own, which gives the reason.
        extra_json_schema={"pattern": URI_PATTERN},
    ),
]
