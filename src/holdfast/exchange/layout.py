"""The `viking://` tree in a folder: where its files are, and whose it is."""

from pathlib import Path

import msgspec

from holdfast.errors import InvalidArgumentError
from holdfast.exchange.file_names import file_name
from holdfast.model.base import Name
from holdfast.model.files import TOOLS, Meta
from holdfast.model.sessions import SessionConfig, SessionInfo
from holdfast.validation import prebuild_decoder

MANIFEST = ".export.json"
VERSION = 1


@prebuild_decoder
class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Whose export a folder is, and of which sessions."""

    holdfast_export: int = VERSION
    account_id: str
    user_id: str
    sessions: list[Name]
    """In the order in which they were created."""


def sessions_folder(folder: Path, user_id: str) -> Path:
    return folder / "user" / file_name(user_id) / "sessions"


def tool_folder(session: Path, tool_id: str) -> Path:
    return session / TOOLS / file_name(tool_id)


def output_file(tool_result_id: str) -> str:
    return f"{tool_result_id}.txt"


def config_of(told: Meta | SessionInfo) -> SessionConfig:
    return SessionConfig(told.memory_policy, told.auto_commit_policy, told.memory_extraction_config)


def read_manifest(file: Path) -> Manifest:
    problem = "is not the manifest of an export: {}"
    try:
        manifest = msgspec.json.decode(file.read_bytes(), type=Manifest)
    except OSError as error:
        raise InvalidArgumentError(str(file), problem.format(error.strerror)) from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(str(file), problem.format(error)) from None
    if manifest.holdfast_export > VERSION:
        raise InvalidArgumentError(
            str(file), f"is of version {manifest.holdfast_export}, this Holdfast reads up to {VERSION}; upgrade it"
        )
    return manifest
