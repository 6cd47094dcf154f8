"""What an evaluation compares: settings, or the result of an earlier run."""

from pathlib import Path

import msgspec

from holdfast.config import Settings
from holdfast.errors import InvalidArgumentError
from holdfast.evaluation.comparison import read_report
from holdfast.evaluation.model import Report

SETTINGS_SUFFIXES = {".toml"}
RESULT_SUFFIXES = {".json"}
SHOWN = ("embedder", "embedding_model")
"""The settings that every result names."""


class Variant(msgspec.Struct, frozen=True):
    label: str
    """How tables name it."""
    settings: Settings | None
    report: Report | None
    """The result, if it is of an earlier run."""


def parse_variant(text: str, config: str | None) -> Variant:
    """Parse `embedder=static,worker_threads=1`, the name of a settings file, or that of the JSON of an earlier run.

    Settings that are not given are those of `config` and of the environment.
    """
    suffix = Path(text).suffix.lower()
    if suffix in RESULT_SUFFIXES:
        report = read_report(_read(text), text)
        return Variant(text, None, msgspec.structs.replace(report, settings=text))
    if suffix in SETTINGS_SUFFIXES:
        _read(text)
        return Variant(text, Settings.load(text), None)
    values = dict(_parse_assignment(text, item) for item in text.split(",") if item.strip())
    hidden = {name: "***" if name.endswith("_key") else value for name, value in values.items()}
    label = ",".join(f"{name}={value}" for name, value in hidden.items()) or "default settings"
    return Variant(label, Settings.load(config, **values), None)


def describe_settings(settings: Settings) -> str:
    """Name the settings that change what a search finds."""
    named = [(name, getattr(settings, name)) for name in SHOWN]
    return ", ".join(f"{name}={value}" for name, value in named if value is not None)


def _parse_assignment(text: str, item: str) -> tuple[str, str]:
    name, separator, value = item.partition("=")
    if not separator:
        raise InvalidArgumentError(
            "compare",
            f"{text!r} is neither settings such as embedder=static, nor a settings file (.toml), nor a result (.json)",
        )
    return name.strip(), value.strip()


def _read(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise InvalidArgumentError("compare", f"{name!r} cannot be read: {error.strerror}") from None
