"""An import that is killed at any boundary of its transactions leaves the tree as before or as after."""

import json
import random
import subprocess
import sys
import zipfile
from pathlib import Path

import holdfast
from holdfast.client.sync.client import Client

PROGRAM = Path(__file__).parent / "programs" / "importing.py"
LARGE = random.Random(0).randbytes((1 << 20) + 5)
GUIDE = "viking://resources/guide"
FILES = {"a.md": b"# A", "b/large.bin": LARGE, "b/c.md": b"# C"}


def upload_pack(client: Client, folder: Path) -> str:
    for number in range(2):
        client.write(f"{GUIDE}/a.md", f"# {number}")
    client.export_pack(GUIDE, folder / "guide.ovpack")
    return client.upload(folder / "guide.ovpack").temp_file_id


def make_guide(client: Client, folder: Path) -> list[str]:
    with zipfile.ZipFile(folder / "plain.ovpack", "w") as archive:
        for path, content in FILES.items():
            archive.writestr(f"guide/files/{path}", content)
    client.import_pack(folder / "plain.ovpack", "viking://resources")
    return client.ls("viking://resources", recursive=True, simple=True)


def test_an_import_that_is_killed_leaves_the_tree_as_before_or_as_after(target: str, tmp_path: Path) -> None:
    with holdfast.connect(target, settings=holdfast.Settings(worker_threads=0)) as client:
        complete = make_guide(client, tmp_path)
        temp_file_id = upload_pack(client, tmp_path)
        client.rm(GUIDE, recursive=True)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), target, temp_file_id], capture_output=True, text=True, timeout=60, check=True
    )
    left = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(left) > 8
    assert {len(each) for each in left} == {0, len(complete)}
    assert all(each in ([], complete) for each in left)
    with holdfast.connect(target) as client:
        assert client.ls("viking://resources", recursive=True, simple=True) == complete
        assert client.read_bytes(f"{GUIDE}/b/large.bin") == LARGE
        assert [each.size for each in client.history(f"{GUIDE}/a.md").versions] == [3, 3, 3]
