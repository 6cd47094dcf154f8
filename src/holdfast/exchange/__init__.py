"""Sessions as files: out of Holdfast as a tree that people can read, and in from there and from other programs.

>>> import holdfast, tempfile
>>> from pathlib import Path
>>> from holdfast.exchange import export_sessions, import_path
>>> here, there = holdfast.connect(":memory:"), holdfast.connect(":memory:")
>>> with here, there, tempfile.TemporaryDirectory() as folder:
...     added = here.add_message("chat_001", "user", "hello")
...     exported = export_sessions(here, Path(folder))
...     imported = import_path(there, Path(folder))
...     there.get_messages("chat_001") == here.get_messages("chat_001")
True
"""

from holdfast.exchange.exporting.export import export_sessions
from holdfast.exchange.importing.load import import_path
from holdfast.exchange.importing.recognition import FORMATS
from holdfast.exchange.reports import ExportedSession, ExportReport, ImportedSession, ImportReport, Progress

__all__ = [
    "FORMATS",
    "ExportReport",
    "ExportedSession",
    "ImportReport",
    "ImportedSession",
    "Progress",
    "export_sessions",
    "import_path",
]
