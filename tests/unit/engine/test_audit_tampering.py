"""Whatever is changed in the rows of the audit, or in an export, `verify` names the place."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client
from holdfast.client.audit_files import verify_file
from holdfast.client.local import LocalTransport
from holdfast.config import Settings
from holdfast.engine import Engine
from holdfast.errors import InvalidArgumentError
from holdfast.model.audit import AuditVerification
from holdfast.model.identity import Principal
from holdfast.store.database import Database, Tx
from holdfast.store.drivers.sqlite.database import SqliteDatabase

ALICE = Principal("acme", "alice", "root")
KEY = "a key for tests"
LINES = 7
PLACE = 4
"""The line that is changed, in the middle."""

TEXT_COLUMNS = [
    *("id", "user_id", "role", "action", "resource", "agent_id", "address", "key_id", "version", "outcome"),
    *("salt", "digest", "link"),
]


@pytest.fixture
def client(database: Database) -> Iterator[Client]:
    engine = Engine(database, Settings(audit_key=KEY))
    client = Client(LocalTransport(engine, ALICE))
    for number in range(1, LINES):
        client.create_session(f"s{number}")
    assert client.verify_audit(key=KEY).is_intact
    yield client
    client.close()


def problem(result: AuditVerification) -> tuple[str, int] | None:
    return None if result.problem is None else (result.problem.kind, result.problem.number)


def change(database: Database, sql: str, *params: Any) -> None:
    database.write("acme", lambda tx: tx.execute(sql, params))


@pytest.mark.parametrize("column", TEXT_COLUMNS)
def test_a_changed_text_in_any_column_is_found_in_its_line(client: Client, database: Database, column: str) -> None:
    def flip(tx: Tx) -> None:
        (value,) = tx.all(f"SELECT {column} FROM audit WHERE account_id = 'acme' AND number = ?", (PLACE,))[0]
        flipped = chr(ord(value[0]) ^ 1) + value[1:] if value else "x"
        tx.execute(f"UPDATE audit SET {column} = ? WHERE account_id = 'acme' AND number = ?", (flipped, PLACE))

    database.write("acme", flip)
    assert problem(client.verify_audit()) == ("changed", PLACE)


@pytest.mark.parametrize(
    ("assignment", "kind"),
    [
        ("at = at + 1", "changed"),
        ("at = 9223372036854775807", "changed"),
        ("erased_at = 5", "changed"),
        ("account_id = 'acmf'", "missing"),
        ("number = 1000", "reordered"),
    ],
)
def test_a_changed_number_in_any_column_is_found_in_its_line(
    client: Client, database: Database, assignment: str, kind: str
) -> None:
    database.write("*", lambda tx: tx.execute(f"UPDATE audit SET {assignment} WHERE number = ?", (PLACE,)))
    assert problem(client.verify_audit()) == (kind, PLACE)


@pytest.mark.parametrize("column", TEXT_COLUMNS)
def test_a_text_that_is_not_utf8_is_found_in_its_line(tmp_path: Path, column: str) -> None:
    """A flipped bit of an ASCII character makes one. Only SQLite stores it."""
    database = SqliteDatabase(str(tmp_path / "holdfast.db"))
    database.migrate(0)
    client = Client(LocalTransport(Engine(database), ALICE))
    for number in range(1, LINES):
        client.create_session(f"s{number}")
    change(database, f"UPDATE audit SET {column} = CAST(x'e1' AS TEXT) WHERE number = ?", PLACE)
    assert problem(client.verify_audit()) == ("changed", PLACE)
    client.export_audit(tmp_path / "audit.jsonl")
    assert problem(verify_file(tmp_path / "audit.jsonl")) == ("changed", PLACE)
    assert len(client.list_audit().records) == LINES
    client.close()


def test_lines_are_listed_although_the_time_of_one_is_damaged(client: Client, database: Database) -> None:
    change(database, "UPDATE audit SET at = 9223372036854775807, outcome = 'x' WHERE number = ?", PLACE)
    assert len(client.list_audit().records) == LINES


def test_a_copy_of_a_line_that_was_inserted_to_be_sealed_is_found_and_stops_nothing(
    client: Client, database: Database
) -> None:
    columns = "account_id, id, at, user_id, role, action, resource, agent_id, salt, digest"
    change(database, f"INSERT INTO audit_unsealed ({columns}) SELECT {columns} FROM audit WHERE number = ?", PLACE)
    assert problem(client.verify_audit()) == ("changed", LINES + 1)
    client.create_session("next")
    result = client.verify_audit()
    assert (result.lines, result.unsealed) == (LINES + 2, 0)


DROPPED = [(1, ("missing", 1)), (PLACE, ("missing", PLACE)), (LINES, ("truncated", LINES))]


@pytest.mark.parametrize(("number", "expected"), DROPPED)
def test_a_dropped_row_is_found(client: Client, database: Database, number: int, expected: tuple[str, int]) -> None:
    change(database, "DELETE FROM audit WHERE account_id = 'acme' AND number = ?", number)
    assert problem(client.verify_audit()) == expected


def test_truncated_rows_are_found(client: Client, database: Database) -> None:
    change(database, "DELETE FROM audit WHERE account_id = 'acme' AND number > ?", PLACE)
    assert problem(client.verify_audit()) == ("truncated", PLACE + 1)


def test_swapped_rows_are_found(client: Client, database: Database) -> None:
    for old, new in ((PLACE, 0), (PLACE + 1, PLACE), (0, PLACE + 1)):
        change(database, "UPDATE audit SET number = ? WHERE account_id = 'acme' AND number = ?", new, old)
    assert problem(client.verify_audit()) == ("reordered", PLACE)


COLUMNS = ", ".join(column for column in [*TEXT_COLUMNS, "at"] if column != "id")


@pytest.mark.parametrize("number", [LINES + 1, LINES + 5])
def test_an_inserted_copy_is_found(client: Client, database: Database, number: int) -> None:
    change(
        database,
        f"INSERT INTO audit (account_id, number, id, {COLUMNS}) SELECT account_id, ?, 'aud_x', {COLUMNS} FROM audit"
        " WHERE account_id = 'acme' AND number = ?",
        number,
        PLACE,
    )
    assert problem(client.verify_audit()) in {("changed", LINES + 1), ("missing", LINES + 1)}


def test_an_inserted_line_with_a_valid_link_is_found_at_the_head(client: Client, database: Database) -> None:
    head = database.read("acme", lambda tx: tx.all("SELECT number, link FROM audit_heads WHERE account_id = 'acme'"))[0]
    client.create_session("later")
    assert client.verify_audit().is_intact  # seals the line
    change(database, "UPDATE audit_heads SET number = ?, link = ? WHERE account_id = 'acme'", *head)
    assert problem(client.verify_audit()) == ("inserted", LINES + 1)


@pytest.mark.parametrize("assignment", ["number = number + 1", "link = 'x'", "pruned_number = 2", "pruned_link = 'x'"])
def test_a_changed_head_is_found(client: Client, database: Database, assignment: str) -> None:
    database.write("*", lambda tx: tx.execute(f"UPDATE audit_heads SET {assignment} WHERE account_id = 'acme'"))
    assert problem(client.verify_audit()) is not None


def test_a_line_that_was_changed_before_it_was_sealed_is_found(client: Client, database: Database) -> None:
    """The digest is written with the line. Sealing keeps it."""
    copy = COLUMNS.replace(", link", "")
    change(
        database,
        f"INSERT INTO audit_unsealed (account_id, id, {copy}) SELECT account_id, 'aud_zz', {copy} FROM audit"
        " WHERE account_id = 'acme' AND number = ?",
        PLACE,
    )
    assert problem(client.verify_audit()) == ("changed", LINES + 1)


FILE_EDITS: dict[str, tuple[Callable[[list[bytes]], list[bytes]], tuple[str, int]]] = {
    # The first line of the file is its beginning, the last one its end.
    "drop the first": (lambda lines: [lines[0], *lines[2:]], ("missing", 1)),
    "drop one": (lambda lines: lines[:PLACE] + lines[PLACE + 1 :], ("missing", PLACE)),
    "drop the last": (lambda lines: [*lines[:-2], lines[-1]], ("truncated", LINES)),
    "drop the end": (lambda lines: lines[:-1], ("truncated", LINES + 1)),
    "truncate": (lambda lines: lines[: PLACE + 1], ("truncated", PLACE + 1)),
    "cut a line": (lambda lines: [*lines[:PLACE], lines[PLACE][:50]], ("changed", PLACE)),
    "swap two": (
        lambda lines: [*lines[:PLACE], lines[PLACE + 1], lines[PLACE], *lines[PLACE + 2 :]],
        ("reordered", PLACE),
    ),
    "copy one": (lambda lines: [*lines[: PLACE + 1], lines[PLACE], *lines[PLACE + 1 :]], ("inserted", PLACE)),
    "add after the end": (lambda lines: [*lines, lines[1]], ("changed", LINES + 1)),
}


@pytest.mark.parametrize("edit", FILE_EDITS)
def test_an_edited_export_is_not_intact(client: Client, tmp_path: Path, edit: str) -> None:
    file = tmp_path / "audit.jsonl"
    client.export_audit(file)
    assert verify_file(file, key=KEY).is_intact
    change_lines, expected = FILE_EDITS[edit]
    file.write_bytes(b"".join(change_lines(file.read_bytes().splitlines(keepends=True))))
    assert problem(verify_file(file)) == expected


@pytest.mark.rounds
def test_no_byte_of_an_export_can_be_flipped(client: Client, tmp_path: Path, *, is_soak: bool) -> None:
    """In the line that was changed, or where the chain breaks because of it."""
    file = tmp_path / "audit.jsonl"
    client.export_audit(file)
    content = file.read_bytes()
    line_of = [0]
    for byte in content:
        line_of.append(line_of[-1] + (byte == ord("\n")))
    for place in range(0, len(content), 1 if is_soak else 7):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0x20]) + content[place + 1 :])
        if line_of[place] == 0:
            try:
                found = problem(verify_file(file, key=KEY))
            except InvalidArgumentError:  # it is not an export
                continue
        else:
            found = problem(verify_file(file, key=KEY))
        assert found is not None, (place, content[max(0, place - 20) : place + 20])
        number = line_of[place]
        assert found[1] in {number, number + 1, 1, LINES}, (place, found)
