"""The settings file. A file that the user names is trusted; one discovered in the current folder may set little."""

import os
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.errors import InvalidArgumentError, short_repr

NAME = "holdfast.toml"
MAX_DISCOVERED_BYTES = 64 * 1024
MAX_DISCOVERED_LINE_BYTES = 1_000
"""tomllib's time grows with the square of the dots in a key: one line of 64 KiB takes 25 s."""
MAX_NAMES_IN_WARNING = 10

DISCOVERED_FILE_MAY_SET = frozenset(
    {"tool_output_threshold", "tool_output_preview", "log_format", "sqlite_idle_readers"}
)
"""The settings that a discovered file may set. No value of these can send a key or a text anywhere, choose a provider,
cost money, weaken a server, drop content from a summary, delete stored data, or stop the program from working. All
other settings come only from the user: from the environment, an argument, or a named file."""

SettingCheck = Callable[[str, Any], None]
"""Takes the name of a setting and a value. Raises `InvalidArgumentError` if the value is not valid."""


class SettingsSource(msgspec.Struct, frozen=True):
    """The file that settings were read from, and which of its settings were used."""

    file: str | None = None
    named: bool = False
    """Whether the user named the file. Otherwise it was discovered in the current folder."""
    used: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """The settings that only a named file may set."""
    warnings: tuple[str, ...] = ()

    def describe(self) -> str:
        if self.file is None:
            return "settings are read from no file"
        if self.named:
            return f"settings are read from {self.file!r}"
        return f"settings are read from {self.file!r}, found in the current folder: {_join(self.used) or 'none'}"


def read(
    file: str | Path | None, setting_names: Iterable[str], check: SettingCheck
) -> tuple[dict[str, Any], SettingsSource]:
    """Read the file that `file` or HOLDFAST_CONFIG names, or else the one in the current folder."""
    named = file or os.environ.get("HOLDFAST_CONFIG")
    return _read_named(Path(named)) if named else _read_discovered(frozenset(setting_names), check)


def _read_named(path: Path) -> tuple[dict[str, Any], SettingsSource]:
    if not path.is_file():
        raise InvalidArgumentError("config", f"there is no file {str(path)!r}")
    try:
        values = _parse(path.read_bytes())
    except OSError as error:
        raise InvalidArgumentError("config", f"{str(path)!r} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InvalidArgumentError("config", f"{str(path)!r} is not TOML: {error}") from None
    return values, SettingsSource(str(path.absolute()), named=True, used=tuple(values))


def _read_discovered(setting_names: frozenset[str], check: SettingCheck) -> tuple[dict[str, Any], SettingsSource]:
    """Read the few settings that a discovered file may set. Nothing in the file can cause an error."""
    path = Path(NAME)
    try:
        if not path.is_file():
            return {}, SettingsSource()
        file = str(path.absolute())
        with path.open("rb") as opened:
            content = opened.read(MAX_DISCOVERED_BYTES + 1)
    except OSError as error:
        return {}, SettingsSource(warnings=(f"{NAME!r} in the current folder was ignored: {error.strerror}",))
    if len(content) > MAX_DISCOVERED_BYTES:
        return {}, _ignored_file(file, f"it has more than {MAX_DISCOVERED_BYTES} bytes")
    if max(map(len, content.split(b"\n"))) > MAX_DISCOVERED_LINE_BYTES:
        return {}, _ignored_file(file, f"it has a line of more than {MAX_DISCOVERED_LINE_BYTES} bytes")
    try:
        values = _parse(content)
    except ValueError as error:
        return {}, _ignored_file(file, f"it is not TOML: {short_repr(str(error))}")
    return _filter_values(file, values, setting_names, check)


def _parse(content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _filter_values(
    file: str, values: dict[str, Any], setting_names: frozenset[str], check: SettingCheck
) -> tuple[dict[str, Any], SettingsSource]:
    """Keep the valid values that a discovered file may set, and warn about all others."""
    used: dict[str, Any] = {}
    ignored = tuple(name for name in values if name in setting_names and name not in DISCOVERED_FILE_MAY_SET)
    warnings = []
    if ignored:
        warnings.append(
            f"{file!r}: ignored {_join(ignored)}, which only a file that you name may set; if you trust this one,"
            f" name it: --config {NAME}, or its absolute path in HOLDFAST_CONFIG"
        )
    unknown = [short_repr(name) for name in values if name not in setting_names]
    if unknown:
        warnings.append(f"{file!r}: ignored {_join(unknown)}, not a setting")
    for name in sorted(DISCOVERED_FILE_MAY_SET & values.keys()):
        try:
            check(name, values[name])
        except InvalidArgumentError as error:
            warnings.append(f"{file!r}: ignored {error.message}")
        else:
            used[name] = values[name]
    return used, SettingsSource(file, used=tuple(used), ignored=ignored, warnings=tuple(warnings))


def _ignored_file(file: str, reason: str) -> SettingsSource:
    return SettingsSource(file, warnings=(f"{file!r} was ignored: {reason}",))


def _join(names: Iterable[str]) -> str:
    """Join the first names. The file is untrusted and may have any number of them."""
    all_names = list(names)
    more = f" and {len(all_names) - MAX_NAMES_IN_WARNING} more" if len(all_names) > MAX_NAMES_IN_WARNING else ""
    return ", ".join(all_names[:MAX_NAMES_IN_WARNING]) + more
