"""File names for ids and tree nodes: valid on every platform, and distinct on a file system that ignores case."""

import hashlib
import re

from holdfast.model.tree.files import ABSTRACT, DONE, FAILED, META, OVERVIEW, RELATIONS

_PLAIN = re.compile(r"[a-z0-9_]([a-z0-9._@-]{0,126}[a-z0-9_@-])?")
_DOT_FILES = frozenset({ABSTRACT, OVERVIEW, META, RELATIONS, DONE, FAILED})
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


def file_name(id: str) -> str:
    """Return the id itself if it is plain and lower case, else its readable characters and a hash.

    >>> file_name("chat_001")
    'chat_001'
    >>> file_name("Chat:1"), file_name("chat:1")
    ('Chat_1~2f943b93da90942e', 'chat_1~74e97b2be403fbde')
    >>> file_name("nul.txt"), file_name("")
    ('nul_txt~7f3cbdd58ac559ed', '~e3b0c44298fc1c14')
    """
    if _PLAIN.fullmatch(id) and not _RESERVED.fullmatch(id):
        return id
    # Dots are replaced too: on Windows a reserved name followed by a dot is still reserved.
    readable = re.sub(r"[^A-Za-z0-9_@-]", "_", id[:60])
    return f"{readable}~{hashlib.sha256(id.encode()).hexdigest()[:16]}"


def node_file_name(name: str) -> str:
    """Return the file name of a node of the `viking://` tree.

    >>> node_file_name(".meta.json"), node_file_name("tool.json"), node_file_name(".git")
    ('.meta.json', 'tool.json', '_git~4d0a4dff1f762e59')
    """
    return name if name in _DOT_FILES else file_name(name)
