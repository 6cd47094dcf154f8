"""Client methods that export a subtree to a pack, and import one."""

from pathlib import Path
from typing import Literal

from holdfast.client.files import ProgressCallback
from holdfast.client.pack_files import BACKUP_ROOTS, PackEntry, PackFile, PackPlan, Subtree, plan_pack
from holdfast.client.sync.tree.transfers import Transfers
from holdfast.errors import ConflictError, NotFoundError
from holdfast.model.tree.packs import PackExported, PackImported, PackNode
from holdfast.ops.tree.packs import ImportPack, ListPackNodes, RestorePack
from holdfast.ops.tree.uploads import ReadBytes


class Packs(Transfers):
    """Packs: files with a subtree, its versions and relations."""

    def export_pack(
        self,
        uri: str,
        target: str | Path,
        *,
        versions: bool = True,
        overwrite: bool = False,
        on_progress: ProgressCallback | None = None,
    ) -> PackExported:
        """Write a file or a folder, with its versions, tags and relations, to the file `target`.

        The target is complete, or it does not exist. Without `versions`, it has only the current content of each file.
        `on_progress` is called with the number of bytes done, the number of all bytes, and the address of the file.
        """
        subtree = self._list_subtree(uri, "", versions)
        plan = plan_pack([subtree], "folder" if subtree.first.is_folder else "file")
        return self._write_pack(plan, target, overwrite, on_progress)

    def backup_pack(
        self,
        target: str | Path,
        *,
        versions: bool = True,
        overwrite: bool = False,
        on_progress: ProgressCallback | None = None,
    ) -> PackExported:
        """Write all that the caller may change to the file `target`: the account's resources, own resources and skills.

        Sessions are not in it: `holdfast export` writes them.
        """
        subtrees = [self._list_subtree(uri, folder, versions) for uri, folder in BACKUP_ROOTS.items()]
        return self._write_pack(plan_pack(subtrees, "backup"), target, overwrite, on_progress)

    def import_pack(
        self,
        path: str | Path,
        parent: str,
        *,
        on_conflict: Literal["fail", "overwrite", "skip"] = "fail",
        on_progress: ProgressCallback | None = None,
    ) -> PackImported:
        """Import a pack into the folder `parent`: all of it, or nothing if there is an error.

        `on_conflict`: `fail` if its address exists; `overwrite` adds a version to existing files; `skip` leaves
        existing files as they are.
        """
        upload = self.upload(path, progress=on_progress)
        return self._transport.call(
            ImportPack(temp_file_id=upload.temp_file_id, parent=parent, on_conflict=on_conflict)
        )

    def restore_pack(
        self,
        path: str | Path,
        *,
        on_conflict: Literal["fail", "overwrite", "skip"] = "fail",
        on_progress: ProgressCallback | None = None,
    ) -> PackImported:
        """Bring back what a backup has, at the addresses where it was. `on_conflict` is as in `import_pack`."""
        upload = self.upload(path, progress=on_progress)
        return self._transport.call(RestorePack(temp_file_id=upload.temp_file_id, on_conflict=on_conflict))

    def _list_subtree(self, uri: str, folder: str, versions: bool) -> Subtree:
        page = first = self._transport.call(ListPackNodes(uri=uri, versions=versions))
        found: list[PackNode] = [*page.nodes]
        while page.next_after is not None:
            page = self._transport.call(ListPackNodes(uri=uri, versions=versions, after=page.next_after))
            found += page.nodes
        return Subtree(folder, first, found)

    def _write_pack(
        self, plan: PackPlan, target: str | Path, overwrite: bool, on_progress: ProgressCallback | None
    ) -> PackExported:
        with PackFile(Path(target), on_progress, overwrite=overwrite) as file:
            file.begin(plan)
            for entry in plan.entries:
                file.open_entry(entry)
                try:
                    self._copy_entry(entry, file)
                except NotFoundError:
                    raise ConflictError(
                        f"{entry.uri} was moved or removed during the export; export it again", resource=entry.uri
                    ) from None
                finally:
                    file.close_stream()
        nodes = plan.manifest.nodes
        return PackExported(
            uri=plan.manifest.uri,
            target=str(target),
            size=file.archive_bytes,
            files=sum(not node.is_folder for node in nodes),
            folders=sum(node.is_folder for node in nodes),
            versions=sum(len(node.versions) for node in nodes),
        )

    def _copy_entry(self, entry: PackEntry, file: PackFile) -> None:
        done = 0
        while done < entry.version.size or done == 0:
            part = self._transport.call(ReadBytes(uri=entry.uri, offset=done, version=entry.version.version))
            file.add(part)
            done += len(part.data)
            if not part.data:
                break
        file.check_entry()
