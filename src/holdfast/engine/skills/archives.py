"""Uploads of skills: a file SKILL.md, or a zip archive of one or several folders."""

from typing import TYPE_CHECKING, NamedTuple

from holdfast import lazy
from holdfast.engine.skills.sources import NewFile, NewSkill, from_text, new_file
from holdfast.errors import InvalidArgumentError, TooLargeError, short_repr
from holdfast.model.tree.files import VIEWS
from holdfast.model.tree.skills import SkillProblem
from holdfast.model.uris import MAX_PATH_BYTES, encode_path
from holdfast.ops.tree.skills import MAX_TEXT_CHARS
from holdfast.skills.definition import SKILL_FILE

if TYPE_CHECKING:
    from holdfast.documents.archives import Archive, ArchiveEntry

MAX_UPLOAD_BYTES = 32 << 20
MAX_SKILL_BYTES = 64 << 20
"""How many bytes the files of an archive may have uncompressed."""
MAX_FILES = 2_000
EVERY = "*"
_ZIP_SIGNATURES = (b"PK\x03\x04", b"PK\x05\x06")
_SKIPPED_NAMES = frozenset({"__MACOSX", ".DS_Store", ".git", "Thumbs.db"})
_FIELD = "temp_file_id"


class _Folder(NamedTuple):
    """A folder of an archive with a SKILL.md."""

    path: str
    """Empty for the archive itself."""
    skill_file: "ArchiveEntry"


def read_upload(name: str, data: bytes, choices: list[str] | None) -> list[NewSkill]:
    """Return the skills of an upload: those with the names that were chosen, or the only one."""
    if not data.startswith(_ZIP_SIGNATURES):
        return [from_text(_FIELD, _decode(name, data), data)]
    # The parsers of documents take long to import: many clients add no skills.
    archive: Archive = lazy.load("holdfast.documents.archives").list_archive(data, name)
    entries = [entry for entry in archive.entries if _SKIPPED_NAMES.isdisjoint(entry.path.split("/"))]
    files = [entry for entry in entries if not entry.is_folder]
    if len(files) > MAX_FILES:
        raise TooLargeError(f"{_FIELD}: {name} has {len(files):,} files; a skill has at most {MAX_FILES:,}")
    if sum(entry.size for entry in files) > MAX_SKILL_BYTES:
        raise TooLargeError(f"{_FIELD}: the files of {name} have more than {MAX_SKILL_BYTES:,} bytes uncompressed")
    folders = _skill_folders(files)
    if not folders:
        raise InvalidArgumentError(_FIELD, f"{short_repr(name)} has no file {SKILL_FILE}; zip the folder of a skill")
    problems = [SkillProblem(rule="file", message=each.problem, field=_FIELD) for each in archive.problems[:100]]
    skills = [_read_skill(archive, folder, files, problems) for folder in folders]
    return _chosen(skills, choices)


def _skill_folders(files: "list[ArchiveEntry]") -> list[_Folder]:
    """Return the outermost folders with a SKILL.md. A file with this name in capitals comes first."""
    found: dict[str, ArchiveEntry] = {}
    for entry in files:
        folder, _, name = entry.path.rpartition("/")
        if name == SKILL_FILE or (name.upper() == SKILL_FILE.upper() and folder not in found):
            found[folder] = entry
    outermost: list[_Folder] = []
    for path in sorted(found, key=lambda each: (each.count("/") if each else -1, each)):
        parents = {"", *("/".join(path.split("/")[:depth]) for depth in range(1, path.count("/") + 1))}
        if path and any(folder.path in parents for folder in outermost):
            continue
        outermost.append(_Folder(path, found[path]))
    return outermost


def _read_skill(
    archive: "Archive", folder: _Folder, files: "list[ArchiveEntry]", problems: list[SkillProblem]
) -> NewSkill:
    data = b"".join(archive.read(folder.skill_file))
    others: list[NewFile] = []
    warnings = list(problems)
    prefix = f"{folder.path}/" if folder.path else ""
    for entry in files:
        if entry is folder.skill_file or not entry.path.startswith(prefix):
            continue
        path = entry.path[len(prefix) :]
        problem = _path_problem(path)
        if problem:
            warnings.append(SkillProblem(rule="file", message=f"{entry.path!r:.120} {problem}", field=_FIELD))
        else:
            others.append(new_file(encode_path(path.split("/")), b"".join(archive.read(entry))))
    skill = from_text(
        f"{_FIELD}.{folder.skill_file.path}"[:200],
        _decode(folder.skill_file.path, data),
        data,
        others,
        folder.path.rpartition("/")[2],
    )
    return skill._replace(warnings=[*skill.warnings, *warnings])


def _path_problem(path: str) -> str:
    """Return why a file cannot be stored in the folder of a skill, or an empty text."""
    if path == SKILL_FILE:
        return "is there in two spellings; one is used"
    names = path.split("/")
    if not VIEWS.isdisjoint(names):
        return "has a name that Holdfast generates; rename it"
    if any(name != name.strip() for name in names):
        return "has a name that begins or ends with a space; rename it"
    if len(encode_path(names).encode()) > MAX_PATH_BYTES // 2:
        return f"has a path of more than {MAX_PATH_BYTES // 2} bytes; use shorter names"
    return ""


def _chosen(skills: list[NewSkill], choices: list[str] | None) -> list[NewSkill]:
    names = [skill.name for skill in skills]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidArgumentError(_FIELD, f"has two skills with the name {short_repr(twice)}; rename one")
    if choices is None or choices == [EVERY]:
        return skills
    chosen = [skill for skill in skills if not {skill.name, skill.folder_name}.isdisjoint(choices)]
    known = {name for skill in chosen for name in (skill.name, skill.folder_name)}
    missing = next((choice for choice in choices if choice not in known and choice != EVERY), None)
    if missing is not None:
        raise InvalidArgumentError("skills", f"{short_repr(missing)} is not in the upload; it has {_shown(names)}")
    return skills if EVERY in choices else chosen


def require_choice(skills: list[NewSkill], choices: list[str] | None) -> None:
    """Raise an error if there are several skills, and none was chosen."""
    if choices is None and len(skills) > 1:
        names = _shown([skill.name for skill in skills])
        raise InvalidArgumentError(
            "skills", f"is missing, and the upload has several skills: {names}; choose some of them, or {EVERY} for all"
        )


def _shown(names: list[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")  # noqa: PLR2004 - enough for an error


def _decode(name: str, data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            _FIELD, f"{short_repr(name)} is no UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from None
    if len(text) > MAX_TEXT_CHARS:
        raise TooLargeError(f"{_FIELD}: {name} has more than {MAX_TEXT_CHARS:,} characters; use more than one file")
    return text
