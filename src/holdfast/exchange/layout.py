"""The layout of an exported folder: its paths and its manifest."""

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
    """Names the user whose sessions a folder holds, and the sessions."""

    holdfast_export: int = VERSION
    account_id: str
    user_id: str
    sessions: list[Name]
    """In order of creation."""


def sessions_folder(folder: Path, user_id: str) -> Path:
    return folder / "user" / file_name(user_id) / "sessions"


def tool_folder(session_folder: Path, tool_id: str) -> Path:
    return session_folder / TOOLS / file_name(tool_id)


def output_file_name(tool_result_id: str) -> str:
    return f"{tool_result_id}.txt"


def config_of(session: Meta | SessionInfo) -> SessionConfig:
    return SessionConfig(session.memory_policy, session.auto_commit_policy, session.memory_extraction_config)


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
            str(file),
            f"has version {manifest.holdfast_export}, but this Holdfast reads versions up to {VERSION}; upgrade it",
        )
    return manifest
