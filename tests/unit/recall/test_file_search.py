"""Searches of stored files: what they find, what a hit says, and where they look."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.engine import Engine
from holdfast.engine.recall.files import part_texts, stored_roots
from holdfast.errors import InvalidArgumentError
from holdfast.model.identity import Principal
from holdfast.ops.search import Find, Search
from holdfast.store.database import Tx
from holdfast.store.tables import usages
from holdfast.store.tables.tree import blobs, nodes, roots
from holdfast.testing.stored_files import StoredFile, store_file

ALICE = Principal("acme", "alice", "user", internal_id="alice")
BOB = Principal("acme", "bob", "user", internal_id="bob")
GUEST = Principal("acme", "guest", "guest", internal_id="guest")
DAY = 86_400_000_000
NOW = 1_750_000_000_000_000
MANUAL = StoredFile(
    root="resources",
    path="manual/manual.pdf",
    titles=["Safety", "Maintenance > Pump", "Maintenance > Filter", "Warranty"],
    parts=[
        "Wear gloves before you open the housing.",
        "The pump PX-200 is greased every 500 hours with the red cartridge. 泵",
        "Replace the filter when the pressure falls below two bar.",
        "The warranty covers the pump for three years.",
    ],
    abstract="How to run the machine",
    overview="Safety, maintenance of pump and filter, warranty",
    extracted=True,
    tags=["team=ops"],
)
FILES = [
    MANUAL,
    StoredFile(root="resources", path="manual", abstract="The machine", overview="Manuals of the machine and its pump"),
    StoredFile(root="resources", path="notes/lunch.md", parts=["On Friday there is soup."], abstract="Lunch"),
    StoredFile(
        root="system/skills", path="grease/SKILL.md", parts=["Grease the pump."], kind="skill", abstract="Grease"
    ),
    StoredFile(root="user/alice/resources", path="diary.md", parts=["My secret pump dream."], abstract="Diary"),
    StoredFile(root="user/alice/skills", path="swim/SKILL.md", parts=["Swim fast."], kind="skill", abstract="Swim"),
    StoredFile(root="user/bob/resources", path="bob.md", parts=["The pump of Bob is blue."], abstract="Bob"),
    StoredFile(root="staging/task_1", path="new.md", parts=["A pump that is being added."], abstract="New"),
]


@pytest.fixture
def filled(engine: Engine, run_tasks: Callable[..., None]) -> Engine:
    def fill(tx: Tx) -> None:
        for number, file in enumerate(FILES, 1):
            store_file(tx, file, number, NOW + number * DAY)

    engine.db.write("acme", fill)
    run_tasks()
    return engine


def find(engine: Engine, query: str, principal: Principal = ALICE, **fields: Any) -> Any:
    return engine.call(principal, Find(query=query, **fields))


def uris(engine: Engine, query: str, principal: Principal = ALICE, **fields: Any) -> list[str]:
    result = find(engine, query, principal, **fields)
    return [hit.uri for hit in [*result.resources, *result.skills]]


def test_a_hit_on_a_part_names_its_document_its_page_and_its_headings(filled: Engine) -> None:
    result = find(filled, "How often is the PX-200 greased?", limit=5, read_content=True)
    best = result.resources[0]
    assert (best.uri, best.document) == (
        "viking://resources/manual/manual.pdf#2",
        "viking://resources/manual/manual.pdf",
    )
    assert (best.part, best.page, best.title) == (2, 2, "Maintenance > Pump")
    assert (best.context_type, best.level, best.tags) == ("resource", 2, ["team=ops"])
    assert best.content == MANUAL.parts[1]
    assert best.abstract == MANUAL.parts[1]
    assert sum(reason.share for reason in best.reasons) == pytest.approx(best.score, abs=1e-3)
    assert {hit.context_type for hit in result.skills} == {"skill"}
    assert result.memories == []
    assert result.total == len(result.resources) + len(result.skills)
    scores = [hit.score for hit in result.resources]
    assert scores == sorted(scores, reverse=True)
    everything = [hit.uri for hit in [*result.resources, *result.skills]]
    assert len(everything) == len(set(everything))


def test_search_returns_files_beside_messages_and_packs_them_into_a_context(
    filled: Engine, add_messages: Callable[..., None]
) -> None:
    add_messages(["The pump makes a noise."], "s", ALICE)
    result = filled.call(ALICE, Search(query="pump PX-200 greased", mode="context"))
    assert result.messages
    assert result.resources[0].uri.endswith("manual.pdf#2")
    assert result.resources[0].content is None
    assert "red cartridge" in (result.rendered or "")
    assert {"resource", "skill"} <= set(result.query_plan.kinds)
    assert any(entry.category == "resource" for entry in result.entries)


def test_only_what_the_caller_may_read_and_what_is_current_is_found(filled: Engine) -> None:
    shared = {
        "viking://resources/manual/manual.pdf",
        "viking://resources/manual",
        "viking://resources/notes/lunch.md",
        "viking://system/skills/grease/SKILL.md",
    }
    diary, swim = "viking://user/alice/resources/diary.md", "viking://user/alice/skills/swim/SKILL.md"
    for principal, private in ((ALICE, {diary, swim}), (BOB, {"viking://user/bob/resources/bob.md"})):
        found = {uri.partition("#")[0] for uri in uris(filled, "pump soup swim", principal, limit=50)}
        assert found == shared | private
    assert uris(filled, "pump", GUEST) == []
    assert uris(filled, "pump", Principal("rival", "alice", "user", internal_id="alice")) == []


def test_a_moved_removed_restored_or_overwritten_file_is_right_at_once(filled: Engine) -> None:
    def change(run: Callable[[Tx], Any]) -> None:
        def write(tx: Tx) -> None:
            roots.lock(tx, ["resources", "user/alice/resources"])
            run(tx)

        filled.db.write("acme", write)

    def node(tx: Tx) -> nodes.Node:
        found = nodes.find_by_id(tx, 1)
        assert found is not None
        return found

    word = "cartridge"
    only: dict[str, Any] = {"context_type": "resource", "limit": 1}
    assert uris(filled, word, **only) == ["viking://resources/manual/manual.pdf#2"]
    change(lambda tx: nodes.move(tx, node(tx), "resources", "old.pdf", "old.pdf"))
    assert uris(filled, word, **only) == ["viking://resources/old.pdf#2"]
    change(lambda tx: nodes.remove(tx, node(tx), 7, NOW))
    assert not any("old.pdf" in uri for uri in uris(filled, word))
    change(lambda tx: nodes.restore(tx, node(tx)))
    assert uris(filled, word, **only) == ["viking://resources/old.pdf#2"]
    change(lambda tx: nodes.move(tx, node(tx), "user/alice/resources", "mine.pdf", "mine.pdf"))
    assert uris(filled, word, **only) == ["viking://user/alice/resources/mine.pdf#2"]
    assert not any("pdf" in uri for uri in uris(filled, word, BOB))
    newer = StoredFile(root="user/alice/resources", path="mine.pdf", parts=["A zeppelin."], abstract="Other")
    change(lambda tx: store_file(tx, newer, 1, NOW, content_id=99))
    assert not any("pdf" in uri for uri in uris(filled, word, limit=50, score_threshold=0.2))
    assert uris(filled, "zeppelin", **only) == ["viking://user/alice/resources/mine.pdf#1"]


@pytest.mark.parametrize(
    ("searched", "expected"),
    [
        ("viking://resources", {"manual/manual.pdf", "manual", "notes/lunch.md"}),
        ("viking://resources/manual", {"manual/manual.pdf", "manual"}),
        ("viking://resources/manual/manual.pdf", {"manual/manual.pdf"}),
        ("viking://resources/man", set()),
        ("viking://system", {"grease/SKILL.md"}),
        ("viking://~/resources", {"diary.md"}),
        ("viking://user/alice", {"diary.md", "swim/SKILL.md"}),
        ("viking://agent/skills", {"swim/SKILL.md"}),
        ("viking://agent/coder/skills/swim", {"swim/SKILL.md"}),
        ("viking://user/bob", set()),
        ("viking://user/alice/sessions", set()),
        (["viking://user/skills", "viking://resources/notes"], {"swim/SKILL.md", "notes/lunch.md"}),
    ],
)
def test_a_target_limits_a_search_to_what_is_below_it(filled: Engine, searched: Any, expected: set[str]) -> None:
    tops = tuple(f"{top}/" for top in stored_roots.readable_roots(ALICE).values())
    found = {
        uri.partition("#")[0] for uri in uris(filled, "pump grease swim soup machine", target_uri=searched, limit=100)
    }
    paths = {uri.removeprefix(top) for uri in found for top in tops if uri.startswith(top)}
    assert paths == expected


def test_a_part_can_be_a_target_and_one_file_is_returned_with_all_its_parts(filled: Engine) -> None:
    file = "viking://resources/manual/manual.pdf"
    assert uris(filled, "pump", target_uri=f"{file}#4") == [f"{file}#4"]
    assert len(uris(filled, "pump", target_uri=file, level=2)) == 4
    assert sum(uri.startswith(f"{file}#") for uri in uris(filled, "pump", target_uri="viking://resources")) == 3


def test_kinds_levels_tags_and_times_limit_a_search(filled: Engine) -> None:
    result = find(filled, "pump", context_type="skill")
    assert result.resources == []
    assert result.skills[0].uri == "viking://system/skills/grease/SKILL.md#1"
    overviews = find(filled, "pump", level=1).resources
    assert {hit.level for hit in overviews} == {1}
    assert all(hit.part is None for hit in overviews)
    assert "viking://resources/manual" in {hit.uri for hit in overviews}
    abstracts = find(filled, "pump", level=[0], read_content=True).resources
    assert {hit.level for hit in abstracts} == {0}
    assert all(hit.content == hit.abstract for hit in abstracts)
    tagged = uris(filled, "pump", tags=["team=ops"])
    assert {uri.partition("#")[0] for uri in tagged} == {"viking://resources/manual/manual.pdf"}
    assert uris(filled, "pump", tags=["team=op"]) == []

    def retag(tx: Tx) -> None:
        roots.lock(tx, ["resources"])
        nodes.set_tags(tx, 3, '["team=ops"]')

    filled.db.write("acme", retag)
    assert "viking://resources/notes/lunch.md" in {
        uri.partition("#")[0] for uri in uris(filled, "pump soup", tags=["team=ops"])
    }
    since = "2025-06-18T00:00:00Z"  # the third file and later ones
    assert not any("manual" in uri for uri in uris(filled, "pump", since=since, limit=50))
    assert all("manual" in uri for uri in uris(filled, "pump", until=since, limit=50))


def test_a_strong_folder_raises_what_is_in_it_and_the_reasons_say_so(filled: Engine) -> None:
    result = find(filled, "manuals of the machine pump", limit=20)
    signals = {hit.uri: {reason.signal for reason in hit.reasons} for hit in result.resources}
    assert "folder" in signals["viking://resources/manual/manual.pdf#2"]
    outside = {uri: found for uri, found in signals.items() if not uri.startswith("viking://resources/manual")}
    assert not any("folder" in found for found in outside.values())


def test_a_use_of_a_part_or_a_call_of_a_skill_raises_a_file(filled: Engine) -> None:
    def score(suffix: str) -> float:
        result = find(filled, "pump", limit=50, as_of="2026-01-01")
        scores: Iterator[float] = (hit.score for hit in [*result.resources, *result.skills] if hit.uri.endswith(suffix))
        return next(scores)

    before = score("manual.pdf#4"), score("grease/SKILL.md#1")
    used_at = 1_767_200_000_000_000

    def use(tx: Tx) -> None:
        usages.count(tx, "alice", {"viking://resources/manual/manual.pdf#2": used_at})
        tx.execute(
            "INSERT INTO skill_uses (account_id, owner_id, uri, calls, successes, last_used_at)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            ("acme", "alice", "viking://system/skills/grease", 4, 4, used_at),
        )

    filled.db.write("acme", use)
    assert score("manual.pdf#4") > before[0]
    assert score("grease/SKILL.md#1") > before[1]


def test_fields_of_published_clients_are_honoured_or_named(filled: Engine) -> None:
    with pytest.raises(InvalidArgumentError, match="query: is empty, and images are not compared"):
        find(filled, "", image_url="data:image/png;base64,AAAA")
    result = find(filled, "pump", image="x.png", filter={"op": "must"}, include_provenance=True)
    assert len(result.notes) == 2
    assert result.resources
    assert find(filled, "pump", search_type="keywords").resources
    assert uris(filled, "pump", since="2025-06-18T00:00:00Z", time_field="created_at")


def test_a_part_of_a_large_text_is_read_without_the_rest(filled: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [f"{'wäter ' * 60_000} {number}" for number in range(20)]
    big = StoredFile(root="resources", path="big.md", parts=[*parts, "the last needle"], abstract="Big")
    filled.db.write("acme", lambda tx: store_file(tx, big, 50, NOW))
    read = list[int]()
    original = blobs.read_chunks

    def counted(tx: Tx, digest: str, first: int = 0) -> Any:
        read.append(first)
        return original(tx, digest, first)

    monkeypatch.setattr(blobs, "read_chunks", counted)
    for _ in range(2):
        read.clear()
        (hit,) = find(filled, "needle", limit=1, read_content=True).resources
        assert (hit.uri, hit.content) == ("viking://resources/big.md#21", "the last needle")
    assert len(read) <= 2
    texts = filled.db.read("acme", lambda tx: part_texts.read_texts(tx, 50, [3, 21]))
    assert texts[3].content == parts[2][: part_texts.MAX_PART_CHARS]
