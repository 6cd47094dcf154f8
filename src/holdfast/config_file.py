"""The settings file. One that the user named is trusted; one that merely lies in the current folder may set little."""

import os
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from holdfast.errors import InvalidArgumentError, shown

NAME = "holdfast.toml"
MAX_FOUND_BYTES = 64 * 1024
MAX_FOUND_LINE = 1_000
"""In bytes. The time that tomllib takes grows with the square of the dots in a key: one line of 64 KiB takes 25 s."""
MAX_LISTED = 10

FOUND_FILE_MAY_SET = frozenset({"tool_output_threshold", "tool_output_preview", "log_format", "sqlite_idle_readers"})
"""What a file that nobody named may set: no value of these sends a key or a text anywhere, chooses a provider, costs
money, weakens a server, lets a summary forget, removes what is stored, or keeps the program from working. Any other
setting comes from the user alone: from the environment, an argument, or a file that was named."""

Check = Callable[[str, Any], None]
"""Raises `InvalidArgumentError` for a value that the setting of that name cannot have."""


class Source(msgspec.Struct, frozen=True):
    """Which file settings were read from, and what was not taken from it."""

    file: str | None = None
    named: bool = False
    """Whether the user named it; else it was found in the current folder."""
    used: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """The settings that only a file with a name may set."""
    warnings: tuple[str, ...] = ()

    def described(self) -> str:
        if self.file is None:
            return "settings are read from no file"
        if self.named:
            return f"settings are read from {self.file!r}"
        return f"settings are read from {self.file!r}, found in the current folder: {_listed(self.used) or 'none'}"


def read(file: str | Path | None, known: Iterable[str], check: Check) -> tuple[dict[str, Any], Source]:
    """The values of the file that is named by `file` or HOLDFAST_CONFIG, else of the one in the current folder."""
    named = file or os.environ.get("HOLDFAST_CONFIG")
    return _read_named(Path(named)) if named else _read_found(frozenset(known), check)


def _read_named(place: Path) -> tuple[dict[str, Any], Source]:
    if not place.is_file():
        raise InvalidArgumentError("config", f"there is no file {str(place)!r}")
    try:
        values = _parse(place.read_bytes())
    except OSError as error:
        raise InvalidArgumentError("config", f"{str(place)!r} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InvalidArgumentError("config", f"{str(place)!r} is not TOML: {error}") from None
    return values, Source(str(place.absolute()), named=True, used=tuple(values))


def _read_found(known: frozenset[str], check: Check) -> tuple[dict[str, Any], Source]:
    """What may be taken from a file that anybody may have put there. Whatever is in it, it stops nobody."""
    place = Path(NAME)
    try:
        if not place.is_file():
            return {}, Source()
        file = str(place.absolute())
        with place.open("rb") as opened:
            content = opened.read(MAX_FOUND_BYTES + 1)
    except OSError as error:
        return {}, Source(warnings=(f"{NAME!r} in the current folder was ignored: {error.strerror}",))
    if len(content) > MAX_FOUND_BYTES:
        return {}, _unused(file, f"it has more than {MAX_FOUND_BYTES} bytes")
    if max(map(len, content.split(b"\n"))) > MAX_FOUND_LINE:
        return {}, _unused(file, f"it has a line of more than {MAX_FOUND_LINE} bytes")
    try:
        found = _parse(content)
    except ValueError as error:
        return {}, _unused(file, f"it is not TOML: {shown(str(error))}")
    return _accept(file, found, known, check)


def _parse(content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _accept(file: str, found: dict[str, Any], known: frozenset[str], check: Check) -> tuple[dict[str, Any], Source]:
    used: dict[str, Any] = {}
    ignored = tuple(name for name in found if name in known and name not in FOUND_FILE_MAY_SET)
    warnings = []
    if ignored:
        warnings.append(
            f"{file!r}: ignored {_listed(ignored)}, which only a file that you name may set; if you trust this one,"
            f" name it: --config {NAME}, or its whole path in HOLDFAST_CONFIG"
        )
    unknown = [shown(name) for name in found if name not in known]
    if unknown:
        warnings.append(f"{file!r}: ignored {_listed(unknown)}, not a setting")
    for name in sorted(FOUND_FILE_MAY_SET & found.keys()):
        try:
            check(name, found[name])
        except InvalidArgumentError as error:
            warnings.append(f"{file!r}: ignored {error.message}")
        else:
            used[name] = found[name]
    return used, Source(file, used=tuple(used), ignored=ignored, warnings=tuple(warnings))


def _unused(file: str, why: str) -> Source:
    return Source(file, warnings=(f"{file!r} was ignored: {why}",))


def _listed(names: Iterable[str]) -> str:
    """Some of the names: whoever wrote the file decides how many there are."""
    every = list(names)
    more = f" and {len(every) - MAX_LISTED} more" if len(every) > MAX_LISTED else ""
    return ", ".join(every[:MAX_LISTED]) + more
