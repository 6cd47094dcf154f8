"""The operation that indexes stored files again."""

from typing import Annotated, Any, Literal

import msgspec

from holdfast.model.tree.reindexing import Reindexed
from holdfast.ops.addresses import Uri
from holdfast.ops.table import Operation, operation

ReindexMode = Literal["vectors_only", "semantic_and_vectors", "full"]


@operation("POST /content/reindex", audit="{uri}")
class ReindexFiles(Operation[Reindexed], frozen=True, kw_only=True):
    """Index a stored file again, or all files below a folder."""

    uri: Uri
    mode: ReindexMode = "vectors_only"
    """`vectors_only` writes the documents and their vectors again; the other modes parse the files and summarise the
    folders again, too."""
    wait: bool = True
    timeout: Annotated[float, msgspec.Meta(gt=0, le=86_400)] | None = None
    """The seconds to wait. A server ends the wait before the request times out."""
    recursive: bool = True
    """Include what is below a folder."""
    force: bool = False
    """Accepted for published clients: files are always indexed again."""
    tags: Any = None
    """Refused: `set_tags` changes tags."""
