"""Packs: listing in pages, exports while files change, and what an import leaves to be processed."""

from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.engine.resources.packs import listing
from holdfast.errors import ConflictError
from holdfast.ops.tree.packs import ListPackNodes

GUIDE = "viking://resources/guide"


def test_a_subtree_is_listed_in_pages_in_the_order_of_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    with holdfast.connect(":memory:", settings=holdfast.Settings(worker_threads=0)) as client:
        for number in range(3):
            for name in ("a b/c.md", "a/b.md", "a.md", "ü.md"):
                client.write(f"{GUIDE}/{name}", f"{number}")
        call: Any = client._transport.call
        whole = call(ListPackNodes(uri=GUIDE))
        assert [node.path for node in whole.nodes] == ["", "a", "a b", "a b/c.md", "a.md", "a/b.md", "ü.md"]
        for limit, page_bytes in ((1, 10**6), (2, 10**6), (500, 1)):
            monkeypatch.setattr(listing, "MAX_PAGE_BYTES", page_bytes)
            page = call(ListPackNodes(uri=GUIDE, limit=limit))
            found = [*page.nodes]
            while page.next_after is not None:
                page = call(ListPackNodes(uri=GUIDE, limit=limit, after=page.next_after))
                found += page.nodes
            assert found == whole.nodes


def test_a_file_that_becomes_another_one_during_an_export_is_a_conflict(tmp_path: Path) -> None:
    with holdfast.connect(":memory:", settings=holdfast.Settings(worker_threads=0)) as client:
        client.write(f"{GUIDE}/a.md", "a")
        client.write(f"{GUIDE}/b.md", "b")

        def remove(_done: int, _total: int, uri: str) -> None:
            if uri.endswith("a.md"):
                client.rm(f"{GUIDE}/b.md")

        client.export_pack(GUIDE, tmp_path / "removed", on_progress=remove)
        client.restore(f"{GUIDE}/b.md")
        assert client.import_pack(tmp_path / "removed", "viking://resources/copies").files == 2

        def replace(_done: int, _total: int, uri: str) -> None:
            if uri.endswith("a.md"):
                client.rm(f"{GUIDE}/b.md")
                client.write(f"{GUIDE}/b.md", "another file")

        with pytest.raises(ConflictError, match=r"b\.md has changed during the export"):
            client.export_pack(GUIDE, tmp_path / "replaced", on_progress=replace)
    assert [file.name for file in tmp_path.iterdir()] == ["removed"]


def test_an_imported_file_is_found_when_it_is_processed(tmp_path: Path) -> None:
    with holdfast.connect(":memory:") as client:
        client.write(f"{GUIDE}/crabs.md", "# Crabs\n\nThe limpet holds fast to the rock at low tide.\n", wait=True)
        client.export_pack(GUIDE, tmp_path / "pack")
        client.import_pack(tmp_path / "pack", "viking://resources/copies")
        client.wait_until_idle()
        found = client.find("limpet rock", target_uri="viking://resources/copies")
        assert found.resources[0].uri.startswith("viking://resources/copies/guide/crabs.md")
