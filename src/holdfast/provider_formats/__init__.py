"""Translates messages of OpenAI and Anthropic to messages of Holdfast. Pure functions."""

from holdfast.provider_formats.contents import is_droppable_field, not_a_dict_problem, type_of
from holdfast.provider_formats.fields import ROLES, AnyRole, ProviderFields
from holdfast.provider_formats.items import RESPONSE_ITEM_SUFFIXES, RESPONSE_ITEM_TYPES
from holdfast.provider_formats.messages import is_native_message, is_response_item, translate_message

__all__ = [
    "RESPONSE_ITEM_SUFFIXES",
    "RESPONSE_ITEM_TYPES",
    "ROLES",
    "AnyRole",
    "ProviderFields",
    "is_droppable_field",
    "is_native_message",
    "is_response_item",
    "not_a_dict_problem",
    "translate_message",
    "type_of",
]
