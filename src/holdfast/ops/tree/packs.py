"""Operations on packs: what an export reads, and the import of one that was uploaded."""

from typing import Annotated, Literal

import msgspec

from holdfast.model.tree.packs import OnConflict, PackImported, PackNodes
from holdfast.ops.addresses import Uri
from holdfast.ops.table import Operation, operation

TempFileId = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
VectorMode = Literal["auto", "recompute", "require"]
PageNodes = Annotated[int, msgspec.Meta(ge=1, le=1_000)]


@operation("GET /pack/nodes", answer="bounded")
class ListPackNodes(Operation[PackNodes], frozen=True, kw_only=True):
    """List a subtree as a pack has it: files and folders with their tags, versions and relations."""

    uri: Uri
    after: Annotated[str, msgspec.Meta(max_length=2_048)] = ""
    """List the nodes after this path."""
    limit: PageNodes = 500
    versions: bool = True
    """List all versions of files, not only the current ones."""


@operation("POST /pack/import", audit="{result.uri}")
class ImportPack(Operation[PackImported], frozen=True, kw_only=True):
    """Import a pack into a folder: all of it, or nothing if there is an error."""

    temp_file_id: TempFileId
    """The upload of the pack."""
    parent: Uri
    """The folder to import into. It is made if it is missing."""
    on_conflict: OnConflict = "fail"
    """What to do if something is at the address already: `fail`; `overwrite`, which adds a version to existing files;
    or `skip`, which leaves existing files as they are."""
    vector_mode: VectorMode = "auto"
    """A pack has no vectors: they are always computed again. `require` is refused."""


@operation("POST /pack/restore", audit="{result.uri}")
class RestorePack(Operation[PackImported], frozen=True, kw_only=True):
    """Bring back what a backup has, at the addresses where it was."""

    temp_file_id: TempFileId
    on_conflict: OnConflict = "fail"
    vector_mode: VectorMode = "auto"
