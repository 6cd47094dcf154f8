"""Messages as OpenAI and Anthropic have them, translated to Holdfast's. Pure functions."""

from holdfast.provider_formats.contents import is_no_content, kind_of, not_a_dictionary
from holdfast.provider_formats.fields import ROLES, AnyRole, ProviderFields
from holdfast.provider_formats.items import ITEMS, LATER_ITEMS
from holdfast.provider_formats.messages import is_item, is_plain, read_message

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
