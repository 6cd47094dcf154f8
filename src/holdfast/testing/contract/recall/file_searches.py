"""The contract of searches of stored files."""

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.testing.stored_files import StoredFile

StoreFiles = Callable[[Sequence[StoredFile]], None]
FILES = [
    StoredFile(
        root="resources",
        path="manual/manual.pdf",
        titles=["Safety", "Maintenance > Pump"],
        parts=["Wear gloves before you open the housing.", "The pump PX-200 is greased every 500 hours."],
        abstract="How to run the machine",
        overview="Safety and maintenance",
        extracted=True,
    ),
    StoredFile(root="resources", path="manual", abstract="Manuals", overview="Manuals of the machine"),
    StoredFile(root="system/skills", path="grease/SKILL.md", parts=["Grease the pump."], kind="skill", abstract="Oil"),
    StoredFile(root="user/bob/resources", path="bob.md", parts=["The pump of Bob is blue."], abstract="Bob"),
]
MANUAL = "viking://resources/manual/manual.pdf"


class FileSearchContract:
    """Needs a fixture `store_files`, which stores files of the account, which exists."""

    def test_a_part_of_a_file_is_found_with_its_document_its_headings_and_its_page(
        self, client: Any, store_files: StoreFiles
    ) -> None:
        client.add_message("s", "user", "The pump PX-200 is loud.")
        store_files(FILES)
        found = client.find("How often is the PX-200 greased?", read_content=True)
        best = found.resources[0]
        assert (best.uri, best.document, best.part) == (f"{MANUAL}#2", MANUAL, 2)
        assert (best.title, best.page, best.content) == ("Maintenance > Pump", 2, FILES[0].parts[1])
        assert found.skills[0].document == "viking://system/skills/grease/SKILL.md"
        assert "viking://resources/manual" in {hit.uri for hit in found.resources}
        assert not any("bob" in hit.uri for hit in found.resources)
        assert found.total == len(found.resources) + len(found.skills)
        result = client.search("pump PX-200 greased", mode="context")
        assert {"message", "resource", "skill"} <= {entry.category for entry in result.entries}
        assert FILES[0].parts[1] in result.rendered

    def test_a_search_of_files_is_limited_by_address_and_by_kind(self, client: Any, store_files: StoreFiles) -> None:
        client.add_message("s", "user", "The weather is fine.")
        store_files(FILES)
        assert client.find("pump", target_uri="viking://resources/missing").total == 0
        assert client.find("pump", target_uri="viking://user/bob/resources").total == 0
        below = client.search("pump", target_uri=["viking://session/other", "viking://resources/manual"])
        assert {hit.uri.partition("#")[0] for hit in below.resources} == {MANUAL, "viking://resources/manual"}
        assert (below.skills, below.messages) == ([], [])
        assert client.find("pump", context_type="skill", search_type="keywords").resources == []
        assert client.find("pump", filter={"unknown": 1}).notes
