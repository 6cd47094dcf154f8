"""A skill is as before or as after: all its files change in one transaction."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

OLD, NEW = ({"name": "s", "content": f"# {version}"} for version in ("old", "new"))
PROGRAM = """
import os, signal, sys, zipfile
from pathlib import Path
import holdfast
from holdfast.store.tables.tree import contents

client = holdfast.connect(sys.argv[1])
calls, stop = 0, int(sys.argv[2])
insert = contents.insert

def insert_or_die(tx, content):
    global calls
    insert(tx, content)
    calls += 1
    if calls == stop:
        os.kill(os.getpid(), signal.SIGKILL)

contents.insert = insert_or_die
client.add_skill(Path(sys.argv[3]))
"""


@pytest.mark.parametrize("stop", [1, 3])
def test_a_kill_while_a_skill_is_replaced_leaves_it_as_before(tmp_path: Path, stop: int) -> None:
    database = str(tmp_path / "holdfast.db")
    with holdfast.connect(database) as client:
        client.add_skill(OLD)
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: s\n---\n# new")
    for number in range(3):
        (folder / f"{number}.txt").write_text(str(number))
    killed = subprocess.run(
        [sys.executable, "-c", PROGRAM, database, str(stop), str(folder)],
        env={**os.environ, "HOLDFAST_WORKER_THREADS": "0"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with holdfast.connect(database) as client:
        skill = client.get_skill("s")
        assert (skill.content or "").endswith("# old\n")
        assert [file.path for file in skill.files or []] == ["SKILL.md"]
        client.add_skill(folder)
        assert len(client.get_skill("s").files or []) == 4
