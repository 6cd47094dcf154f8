"""The names of resources, from the names of their sources."""

import re
from typing import Literal
from urllib.parse import unquote, urlsplit

from holdfast.model.tree.files import VIEWS

MAX_ROOT_CHARS = 200
DEFAULT_NAME = "resource"
ARCHIVE_SUFFIX = ".zip"
_UNUSABLE = re.compile(r"[\x00-\x1f\x7f]")
_MEDIA: dict[str, Literal["images", "audio", "video"]] = {
    **dict.fromkeys(("png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff"), "images"),
    **dict.fromkeys(("mp3", "wav", "ogg", "flac", "m4a", "aac", "opus"), "audio"),
    **dict.fromkeys(("mp4", "mov", "avi", "mkv", "webm", "m4v"), "video"),
}


def file_name(source_name: str) -> str:
    r"""Return the name of a file without its folders and without characters that no name may have.

    >>> file_name("docs/guide.md"), file_name("C:\\docs\\guide.md"), file_name(" ")
    ('guide.md', 'guide.md', 'resource')
    """
    name = _UNUSABLE.sub(" ", re.split(r"[/\\]", source_name)[-1]).strip()[:MAX_ROOT_CHARS].strip()
    return DEFAULT_NAME if name in VIEWS or name in {"", ".", ".."} else name


def stem_of(name: str) -> str:
    """Return a name without its extension.

    >>> stem_of("guide.md"), stem_of(".bashrc"), stem_of("notes")
    ('guide', '.bashrc', 'notes')
    """
    stem, dot, _ = name.rpartition(".")
    return stem.strip() if dot and stem.strip() else name


def root_name(name: str, *, is_archive: bool) -> str:
    """Return the name of the folder of a resource.

    The name of a packed folder has no extension, whatever it contains.

    >>> root_name("guide.md", is_archive=False), root_name("v1.2", is_archive=True), root_name("a.zip", is_archive=True)
    ('guide', 'v1.2', 'a')
    """
    if is_archive and not name.lower().endswith(ARCHIVE_SUFFIX):
        return name
    return stem_of(name)


def media_folder(name: str) -> Literal["images", "audio", "video"] | None:
    """Return the folder of images, recordings or videos, for the name of such a file."""
    return _MEDIA.get(name.rpartition(".")[2].lower())


def name_of_url(url: str) -> str:
    """Return a name for what a URL leads to: the last name in its path, or its host.

    >>> name_of_url("https://docs.example/guide/install.html?x=1"), name_of_url("https://docs.example/")
    ('install.html', 'docs.example')
    """
    parts = urlsplit(url)
    last = parts.path.rstrip("/").rpartition("/")[2]
    return file_name(unquote(last) or parts.hostname or DEFAULT_NAME)
