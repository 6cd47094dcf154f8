"""Files with flipped bits: every change of a message or an archive is named, and no raw error reaches a caller."""

import shutil
from pathlib import Path

import apsw
import pytest

import holdfast
from holdfast.cli import main
from holdfast.errors import DataDamagedError
from holdfast.testing.faults import damage
from holdfast.testing.faults.damage import Answers
from holdfast.testing.server import running_server

ROUNDS = 25


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("original") / "holdfast.db"
    damage.make_database(file)
    return file


@pytest.fixture(scope="module")
def before(original: Path) -> Answers:
    with holdfast.connect(original, settings=damage.NO_WORKERS) as client:
        return damage.read_everything(client)


def test_every_change_by_random_bits_is_named(original: Path, before: Answers, tmp_path: Path) -> None:
    rounds = [damage.run_round(original, before, tmp_path, seed) for seed in range(ROUNDS)]
    assert [(each.seed, each.silent) for each in rounds if each.silent] == []
    assert sum(bool(each.damages) for each in rounds) > ROUNDS // 2


def test_an_intact_file_has_no_damage(original: Path, before: Answers, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    shutil.copyfile(original, copy)
    assert damage.list_damage(copy) == []
    with holdfast.connect(copy, settings=damage.NO_WORKERS) as client:
        assert damage.unnamed_changes(before, damage.read_everything(client)) == []


def damage_bytes(file: Path, old: bytes, new: bytes) -> None:
    content = file.read_bytes()
    assert old in content
    assert len(old) == len(new)
    file.write_bytes(content.replace(old, new))


def test_text_that_is_not_unicode_is_named_and_the_others_are_served(original: Path, tmp_path: Path) -> None:
    file = tmp_path / "damaged.db"
    shutil.copyfile(original, file)
    damage_bytes(file, b"plain 7: the", b"plain 7: t\xffe")
    with holdfast.connect(file, settings=damage.NO_WORKERS) as client:
        messages = client.get_messages("plain").messages
        assert [message.seq for message in messages if message.damaged] == [7]
        assert [message.seq for message in messages] == list(range(1, damage.MESSAGES + 1))
        assert client.commit_session("plain").archived


def test_a_server_names_damage_and_serves_the_rest(original: Path, before: Answers, tmp_path: Path) -> None:
    file = tmp_path / "damaged.db"
    shutil.copyfile(original, file)
    damage_bytes(file, b"plain 7: the", b"plain 7: t\xffe")
    damage_bytes(file, b'{"colour":"blue"}', b'{"colour":"blue"{')
    with (
        running_server(file, worker_threads=1) as server,
        holdfast.connect(server.url) as client,
    ):
        after = damage.read_everything(client)
        damage.change_everything(client)
        assert '"failed"' not in server.log()  # no unexpected error
        assert '"data damaged"' in server.log()
    assert list(damage.silent_changes(before, after)) == []
    assert isinstance(after["plain info"], DataDamagedError)
    assert [message.seq for message in after["plain messages"] if message.damaged] == [7]


def test_doctor_lists_damage_and_repairs_it(original: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "damaged.db"
    shutil.copyfile(original, file)
    damage_bytes(file, b"plain 7: the", b"plain 7: t\xffe")
    options = ["--path", str(file)]
    assert main(["doctor", *options]) == 1  # the file is small, so that the bounded check finds it too
    assert main(["doctor", "--deep", *options]) == 1
    assert "message 7 of session plain is damaged" in capsys.readouterr().out
    assert main(["backup", str(tmp_path / "backup.db"), *options]) == 1
    assert "--allow-damage" in capsys.readouterr().err
    assert main(["backup", str(tmp_path / "backup.db"), "--allow-damage", *options]) == 0
    assert main(["doctor", "--fix", *options]) == 0
    assert "a placeholder takes its place" in capsys.readouterr().out
    assert main(["doctor", "--deep", *options]) == 0


def test_doctor_rebuilds_damaged_indexes(original: Path, tmp_path: Path) -> None:
    file = tmp_path / "damaged.db"
    shutil.copyfile(original, file)
    connection = apsw.Connection(str(file))
    connection.execute("PRAGMA writable_schema = ON; DELETE FROM document_text_docsize WHERE id = 3")
    connection.close()
    assert damage.list_damage(file) != []
    assert main(["doctor", "--fix", "--path", str(file)]) == 0
    assert main(["doctor", "--deep", "--path", str(file)]) == 0
    with holdfast.connect(file, settings=damage.NO_WORKERS) as client:
        assert len(client.get_messages("plain", q="deployment").messages) == damage.MESSAGES
    with holdfast.connect(file) as client:
        client.wait_until_idle()
        assert len(client.get_messages("plain", q="deployment").messages) == damage.MESSAGES
    assert damage.list_damage(file) == []
