"""The layout of an exported folder: its paths and its manifest."""

from pathlib import Path

import msgspec

from holdfast.errors import InvalidArgumentError
from holdfast.exchange.file_names import file_name, node_file_name
from holdfast.model.base import Name
from holdfast.model.sessions import SessionConfig, SessionInfo
from holdfast.model.tree.files import TOOLS, Meta, output_file_name, tool_folder_name
from holdfast.model.uris import parse_uri
from holdfast.validation import prebuild_decoder

MANIFEST = ".export.json"
VERSION = 2
"""In version 1, the `messages.jsonl` of a session had all of its messages. Since then it has only the live ones."""


@prebuild_decoder
class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Names the user whose tree a folder holds, the sessions in it, and the other mounts in it."""

    holdfast_export: int = VERSION
    account_id: str
    user_id: str
    sessions: list[Name]
    """In order of creation."""
    other_mounts: list[str] = []
    """The URIs of the exported files and folders beside the sessions."""


def sessions_folder(folder: Path, user_id: str) -> Path:
    return folder / "user" / file_name(user_id) / "sessions"


def node_path(folder: Path, uri: str) -> Path:
    """The path of a node in an exported folder."""
    return folder.joinpath(*map(node_file_name, parse_uri(uri)))


def output_files(session_folder: Path, tool_id: str, tool_result_id: str) -> list[Path]:
    """The paths that a whole tool output may have: in this version, and in version 1."""
    folders = (node_file_name(tool_folder_name(tool_id)), file_name(tool_id))
    return [session_folder / TOOLS / name / output_file_name(tool_result_id) for name in folders]


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
