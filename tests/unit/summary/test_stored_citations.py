"""Stored summaries of the first format, whose lines cite messages by id."""

from pathlib import Path

import apsw
import msgspec

import holdfast


def test_citations_by_id_are_read_as_citations_by_sequence_number(tmp_path: Path) -> None:
    with holdfast.connect(tmp_path) as client:
        session = client.session("s")
        message_id = session.add_message("user", "Never reboot db-1.example.com without asking.").message_id
        client.wait_for_task(str(session.commit().task_id))
    stored = {
        "constraints": [{"text": "Never reboot db-1.example.com without asking", "sources": [message_id]}],
        "facts": [{"text": 'He said "sources":["x"] to port 8443', "sources": [message_id, "my-own-id"]}],
    }
    connection = apsw.Connection(str(tmp_path / "holdfast.db"))
    # A row of an earlier version has no checksum.
    connection.execute(
        "UPDATE archives SET summary = ?, summary_checksum = NULL", (msgspec.json.encode(stored).decode(),)
    )
    connection.execute("INSERT INTO unchecked_tables VALUES ('archives')")
    connection.close()
    with holdfast.connect(tmp_path) as client:
        session = client.session("s")
        session.add_message("user", "What is the load of web-7?")
        client.wait_for_task(str(session.commit().task_id))
        overview = session.context().latest_archive_overview
    assert "- Never reboot db-1.example.com without asking [#1]" in overview
    assert '- He said "sources":["x"] to port 8443 [#1]' in overview
