"""The clock of an SQLite database: it counts the time that passes on the machine, and never goes back."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.engine import Engine
from holdfast.model.identity import Principal
from holdfast.ops.sessions import AddMessage, GetMessages
from holdfast.store.database import read_time
from holdfast.store.drivers.sqlite.clock import MAX_GAP_MICROS, BootClock, system_boot_clock
from holdfast.store.drivers.sqlite.database import SqliteDatabase
from holdfast.store.tables import auto_commit_checks
from holdfast.testing.faults.disks import full_disk

SECOND, DAY = 1_000_000, 86_400_000_000
START = 1_800_000_000_000_000
ALICE = Principal("acme", "alice", "root")


class Machine:
    """A machine with a boot clock, which only passes, and a system clock, which can be set."""

    def __init__(self, file: Path, system_time: int = START, boot_id: str = "first boot", uptime: int = DAY) -> None:
        self.file = file
        self.system_time = system_time
        self.boot_id = boot_id
        self.uptime = uptime
        self.opened: list[SqliteDatabase] = []

    def pass_time(self, micros: int) -> None:
        self.uptime += micros
        self.system_time += micros

    def restart(self, boot_id: str, off: int = 0) -> None:
        self.boot_id, self.uptime = boot_id, 10 * SECOND
        self.system_time += off

    def open(self) -> SqliteDatabase:
        database = SqliteDatabase(str(self.file), boot_clock=BootClock(self.boot_id, lambda: self.uptime))
        database.migrate(self.system_time)
        self.opened.append(database)
        return database

    def read(self) -> int:
        """The database's time, as a process that has just opened the database reads it."""
        return read(self.open())


def read(database: SqliteDatabase) -> int:
    return database.read("*", read_time)


@pytest.fixture
def new_machine(tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    machines: list[Machine] = []

    def make(**values: object) -> Machine:
        machines.append(Machine(tmp_path / "holdfast.db", **values))  # type: ignore[arg-type]
        return machines[-1]

    yield make
    for database in (database for machine in machines for database in machine.opened):
        database.close()


@pytest.fixture
def machine(new_machine: Callable[..., Machine]) -> Machine:
    return new_machine()


def test_it_starts_at_the_systems_time_and_counts_with_the_boot_clock(machine: Machine) -> None:
    database = machine.open()
    assert read(database) == START
    machine.pass_time(5 * SECOND)
    assert (read(database), machine.read()) == (START + 5 * SECOND,) * 2


@pytest.mark.parametrize("jump", [20 * SECOND, -20 * SECOND, 3 * DAY, -3 * DAY])
def test_it_does_not_follow_changes_of_the_system_clock(machine: Machine, jump: int) -> None:
    database = machine.open()
    machine.system_time += jump
    assert (read(database), machine.read()) == (START, START)
    machine.pass_time(90 * SECOND)
    assert (read(database), machine.read()) == (START + 90 * SECOND,) * 2


def test_after_a_restart_it_continues_from_the_time_that_was_stored(machine: Machine) -> None:
    database = machine.open()
    machine.pass_time(2 * DAY)
    database.store_time(machine.system_time)
    machine.restart("second boot", off=40 * SECOND)
    assert machine.read() == START + 2 * DAY + 40 * SECOND
    machine.pass_time(SECOND)
    assert machine.read() == START + 2 * DAY + 41 * SECOND


def test_after_a_restart_it_is_not_behind_the_times_of_scheduled_checks(machine: Machine) -> None:
    """Else a check would be late by the time during which no process stored the database's time."""
    database = machine.open()
    machine.pass_time(10 * DAY)
    added_at = read(database)
    database.write("acme", lambda tx: auto_commit_checks.schedule(tx, 1, added_at + SECOND, added_at))
    machine.restart("second boot")
    assert machine.read() == added_at


@pytest.mark.parametrize(("off", "counted"), [(-30 * DAY, 0), (30 * DAY, MAX_GAP_MICROS)])
def test_a_system_clock_that_is_wrong_after_a_restart_adds_little(machine: Machine, off: int, counted: int) -> None:
    machine.open()
    machine.restart("second boot", off=off)
    assert machine.read() == START + counted


def test_a_boot_clock_behind_its_stored_reading_means_a_restart(machine: Machine) -> None:
    machine.open()
    machine.restart(machine.boot_id, off=10 * SECOND)
    assert machine.read() == START + 10 * SECOND


def test_a_file_that_was_copied_to_a_machine_with_a_longer_uptime_continues(
    new_machine: Callable[..., Machine],
) -> None:
    new_machine().open()
    other = new_machine(boot_id="other machine", uptime=400 * DAY, system_time=START + SECOND)
    assert other.read() == START + SECOND


def test_it_never_goes_back_between_processes_that_see_different_boot_clocks(
    new_machine: Callable[..., Machine],
) -> None:
    one, other = new_machine(), new_machine(boot_id="other namespace", uptime=5 * DAY)
    first, second = one.open(), other.open()
    one.pass_time(100 * SECOND)
    other.pass_time(100 * SECOND)
    for _ in range(3):
        before = max(read(first), read(second))
        first.store_time(one.system_time)
        second.store_time(other.system_time)
        assert min(read(first), read(second)) >= before
    assert max(read(first), read(second)) < START + 200 * SECOND + MAX_GAP_MICROS


def test_a_database_opens_after_a_restart_although_the_disk_is_full(tmp_path: Path) -> None:
    file = str(tmp_path / "holdfast.db")
    with full_disk() as disk:
        boot_clock = BootClock("first", lambda: DAY)
        first = Engine(SqliteDatabase(file, boot_clock=boot_clock), clock=lambda: START)
        first.call(ALICE, AddMessage(session_id="s", role="user", content="hi"))
        SqliteDatabase(file, boot_clock=boot_clock).migrate(START)  # opening it copies the log into the file
        disk.start_failing(after=0)
        second = Engine(SqliteDatabase(file, boot_clock=BootClock("second", lambda: SECOND)), clock=lambda: START)
        assert len(second.call(ALICE, GetMessages(session_id="s")).messages) == 1
        assert disk.calls > 0
        disk.stop_failing()
        second.close()
        first.close()


def test_the_boot_clock_of_this_system_counts_microseconds() -> None:
    clock = system_boot_clock()
    assert clock.boot_id
    first = clock.read()
    assert 0 <= clock.read() - first < 10 * SECOND
