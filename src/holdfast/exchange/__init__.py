"""Import and export: write sessions to a folder of readable files, and read them from there or from other programs.

>>> import holdfast, tempfile
>>> from pathlib import Path
>>> from holdfast.exchange import export_sessions, import_path
>>> source, target = holdfast.connect(":memory:"), holdfast.connect(":memory:")
>>> with source, target, tempfile.TemporaryDirectory() as folder:
...     added = source.add_message("chat_001", "user", "hello")
...     exported = export_sessions(source, Path(folder))
...     imported = import_path(target, Path(folder))
...     target.get_messages("chat_001") == source.get_messages("chat_001")
True
"""

from holdfast.exchange.exporting.export import export_sessions
from holdfast.exchange.importing.load import import_path
from holdfast.exchange.importing.recognition import FORMATS
from holdfast.exchange.reports import ExportedSession, ExportReport, ImportedSession, ImportReport, ProgressCallback

Progress = ProgressCallback
"""The former name of `ProgressCallback`, kept for existing callers."""

__all__ = [
    "FORMATS",
    "ExportReport",
    "ExportedSession",
    "ImportReport",
    "ImportedSession",
    "Progress",
    "ProgressCallback",
    "export_sessions",
    "import_path",
]
