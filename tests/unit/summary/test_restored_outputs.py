"""Large tool outputs of stored messages, restored for a summary."""

from pathlib import Path

import holdfast
from holdfast import ToolPart
from holdfast.engine.commits.tool_outputs import OutputLimits, restore_outputs
from holdfast.model.messages import Message
from holdfast.store.database import Tx
from holdfast.store.drivers.sqlite.database import SqliteDatabase
from holdfast.store.tables import messages
from holdfast.store.tables.lineage import LogRange


def test_outputs_of_stored_messages_are_complete_within_limits(tmp_path: Path) -> None:
    sizes = [10_000, 70_000, 20_000, 60_000]  # the second exceeds the limit of one output, the last one the total
    with holdfast.connect(tmp_path) as client:
        for size in sizes:
            output = f"{'ab ' * (size // 3)}end"
            client.add_message("s", "tool", parts=[ToolPart(tool_name="read", output=output)])

    def read_restored(tx: Tx) -> list[Message]:
        (log_id,) = tx.one("SELECT log_id FROM sessions WHERE account_id = ?", (tx.account,)) or (0,)
        return restore_outputs(tx, messages.read(tx, [LogRange(log_id, 1, 4)], 10), OutputLimits(total=64_000))

    (file,) = tmp_path.glob("*.db")
    database = SqliteDatabase(str(file))
    parts = [part for message in database.read("default", read_restored) for part in message.parts]
    database.close()
    is_complete = [part["tool_output"].endswith(" end") for part in parts]
    is_marked_preview = [part["tool_output"].endswith(f": {part['tool_result_id']} ...]") for part in parts]
    assert is_complete == [True, False, True, False]
    assert is_marked_preview == [False, True, False, True]
