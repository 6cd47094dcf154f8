"""Messages as OpenAI and Anthropic have them, translated to Holdfast's. Pure functions."""

from holdfast.formats.contents import is_no_content, kind_of, not_a_dictionary
from holdfast.formats.fields import ROLES, AnyRole, ProviderFields
from holdfast.formats.items import ITEMS, LATER_ITEMS
from holdfast.formats.messages import is_item, is_plain, read_message

__all__ = [
    "ITEMS",
    "LATER_ITEMS",
    "ROLES",
    "AnyRole",
    "ProviderFields",
    "is_item",
    "is_no_content",
    "is_plain",
    "kind_of",
    "not_a_dictionary",
    "read_message",
]
